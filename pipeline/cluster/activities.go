package cluster

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"go.temporal.io/sdk/activity"
)

// Steps are the steps of one run. Several goroutines call them. Each step may be
// done twice, also at the same time and elsewhere, and comes to the same.
type Steps interface {
	Files() int
	// Survey counts the rows of a file of the input.
	Survey(ctx context.Context, file int) error
	// Divide divides the rows into windows and parts.
	Divide(ctx context.Context) (Division, error)
	// Finish publishes the dataset and returns its rows.
	Finish(ctx context.Context) (Counts, error)
}

// FreeSteps are the other steps of a run without calls.
type FreeSteps interface {
	// Make makes the parts of a window.
	Make(ctx context.Context, window int) (Counts, error)
}

// PaidSteps are the other steps of a run that asks a service.
type PaidSteps interface {
	// Spread sorts the keys of a window's parts.
	Spread(ctx context.Context, window int) error
	// Build makes a part from the answers.
	Build(ctx context.Context, part int) (Counts, error)
	Waves
}

// Waves are the steps of a wave: a number of parts whose keys are asked together.
type Waves interface {
	// Lots is how many lots the keys of a wave are divided into.
	Lots(ctx context.Context, wave int) (int, error)
	// Gather works out which keys of a lot have to be asked.
	Gather(ctx context.Context, wave, lot int) error
	// Ask asks about all keys of a wave, and calls beat now and then.
	Ask(ctx context.Context, wave int, beat func(Calls)) (Calls, error)
	InLanes
	// Share gives each part the answers that it needs.
	Share(ctx context.Context, wave, lot int) error
}

// InLanes are the steps of several workers that ask about a wave at the same time.
type InLanes interface {
	// OpenLanes opens lanes, if the wave is large enough for some.
	OpenLanes(ctx context.Context, wave int) (Lanes, error)
	// AskLane asks about the keys of a lane, counted from 0. It ends when the lane's
	// share of the budget is used up.
	AskLane(ctx context.Context, wave int, lanes Lanes, lane int, beat func(Calls)) (Calls, error)
	// JoinLanes takes over what lanes have, when no lane goes on.
	JoinLanes(ctx context.Context) error
}

// Opened is a run that this process has opened.
type Opened struct {
	Steps Steps
	Free  FreeSteps // nil for a run that asks a service
	Paid  PaidSteps // nil for a run that asks none
	// Worked counts a step that was done, for the report; nil counts nothing.
	Worked func(ctx context.Context, step string, took time.Duration) error
	Close  func() error
}

// worked counts a step. Without it the report has less to say, and nothing else is
// lost.
func (o *Opened) worked(ctx context.Context, step string, took time.Duration, log *slog.Logger) {
	if o.Worked == nil || step == finishActivity || ctx.Err() != nil {
		return
	}
	if err := o.Worked(ctx, strings.ToLower(step), took); err != nil && ctx.Err() == nil {
		log.Warn("the report will lack a step of this worker", "step", step, "error", err)
	}
}

// activities are the steps as workflows name them.
type activities struct {
	opened   *openedRuns
	classify func(error) Fault
	tell     func(job Job, text string) (name string, err error)
	meter    Meter
	log      *slog.Logger
}

// beginActivity is the first step. It alone begins a run: a worker that is late,
// and does a step of a run that is finished, must not begin it again.
const beginActivity = "Open"

// finishActivity is the last step. It writes the report.
const finishActivity = "Finish"

// step does part of a step, with heartbeats, until the worker ends, the run is
// cancelled, or another worker has the step.
func (a *activities) step(ctx context.Context, job Job, status func() any, do func(ctx context.Context, run *Opened) error) (err error) {
	defer a.measure(ctx, &err)()
	working, stop := a.beat(ctx, job, status)
	defer stop()
	name, began := activity.GetInfo(ctx).ActivityType.Name, time.Now()
	run, release, err := a.opened.use(working, job, name == beginActivity)
	if err == nil {
		if err = do(working, run); err == nil {
			run.worked(working, name, time.Since(began), a.log)
		}
		release()
	}
	return asFailure(working, err, a.classify, func(text string) string {
		info := activity.GetInfo(ctx)
		a.log.Error("a step failed", "run", job.ID, "step", info.ActivityType.Name, "attempt", info.Attempt, "error", text)
		name, err := a.tell(job, text)
		if err != nil {
			a.log.Error("the state does not take the reason", "error", err)
		}
		return name
	})
}

// measure counts the step that begins now, and when its end is called that it
// ended with err.
func (a *activities) measure(ctx context.Context, err *error) (end func()) {
	if a.meter == nil {
		return func() {}
	}
	step, began := activity.GetInfo(ctx).ActivityType.Name, time.Now()
	a.meter.Began(step)
	return func() { a.meter.Ended(step, time.Since(began), *err != nil) }
}

// beat sends heartbeats until stop is called. The context ends if the worker
// ends, and if the server says so in answer to a heartbeat.
func (a *activities) beat(ctx context.Context, job Job, status func() any) (working context.Context, stop func()) {
	working, cancel := context.WithCancelCause(ctx)
	quit, done := make(chan struct{}), make(chan struct{})
	ending := activity.GetWorkerStopChannel(ctx)
	go func() {
		defer close(done)
		ticker := time.NewTicker(max(job.LostAfter/3, time.Second))
		defer ticker.Stop()
		for {
			select {
			case <-ending:
				cancel(errHandover)
				ending = nil // heartbeats go on until the step has stopped
			case <-ticker.C:
				activity.RecordHeartbeat(ctx, status())
			case <-quit:
				return
			}
		}
	}()
	return working, func() { close(quit); <-done; cancel(nil) }
}

// latest is the last report of a step at work.
type latest struct{ value atomic.Pointer[Calls] }

func (l *latest) set(calls Calls) { l.value.Store(&calls) }

func (l *latest) get() any {
	if calls := l.value.Load(); calls != nil {
		return *calls
	}
	return nil
}

// over does one file, window, lot or part of a range after the other.
func over(ctx context.Context, part Range, do func(n int) error) error {
	for n := part.First; n < part.First+part.Count; n++ {
		if err := errors.Join(ctx.Err(), do(n)); err != nil {
			return err
		}
	}
	return nil
}

// silent is the status of a step that reports nothing.
func silent() any { return nil }

// Open returns the number of files of the input.
func (a *activities) Open(ctx context.Context, job Job) (files int, err error) {
	err = a.step(ctx, job, silent, func(_ context.Context, run *Opened) error {
		files = run.Steps.Files()
		return nil
	})
	return files, err
}

// Survey counts the rows of some files.
func (a *activities) Survey(ctx context.Context, job Job, files Range) (made Counts, err error) {
	return made, a.step(ctx, job, silent, func(ctx context.Context, run *Opened) error {
		return over(ctx, files, func(n int) error { return run.Steps.Survey(ctx, n) })
	})
}

// Divide divides the rows.
func (a *activities) Divide(ctx context.Context, job Job) (d Division, err error) {
	err = a.step(ctx, job, silent, func(ctx context.Context, run *Opened) (err error) {
		d, err = run.Steps.Divide(ctx)
		return err
	})
	return d, err
}

// Make makes the parts of some windows.
func (a *activities) Make(ctx context.Context, job Job, windows Range) (made Counts, err error) {
	err = a.step(ctx, job, silent, func(ctx context.Context, run *Opened) error {
		return over(ctx, windows, func(n int) error {
			counts, err := run.Free.Make(ctx, n)
			made.Add(counts)
			return err
		})
	})
	return made, err
}

// Finish publishes the dataset.
func (a *activities) Finish(ctx context.Context, job Job) (total Counts, err error) {
	err = a.step(ctx, job, silent, func(ctx context.Context, run *Opened) (err error) {
		total, err = run.Steps.Finish(ctx)
		return err
	})
	return total, err
}

// Spread sorts the keys of some windows.
func (a *activities) Spread(ctx context.Context, job Job, windows Range) (made Counts, err error) {
	return made, a.step(ctx, job, silent, func(ctx context.Context, run *Opened) error {
		return over(ctx, windows, func(n int) error { return run.Paid.Spread(ctx, n) })
	})
}

// Lots returns the number of lots of a wave.
func (a *activities) Lots(ctx context.Context, job Job, wave int) (lots int, err error) {
	err = a.step(ctx, job, silent, func(ctx context.Context, run *Opened) (err error) {
		lots, err = run.Paid.Lots(ctx, wave)
		return err
	})
	return lots, err
}

// Gather works out what some lots have to ask.
func (a *activities) Gather(ctx context.Context, job Job, lots Range, wave int) (made Counts, err error) {
	return made, a.step(ctx, job, silent, func(ctx context.Context, run *Opened) error {
		return over(ctx, lots, func(n int) error { return run.Paid.Gather(ctx, wave, n) })
	})
}

// Ask asks about the keys of a wave.
func (a *activities) Ask(ctx context.Context, job Job, wave int) (calls Calls, err error) {
	var reached latest
	err = a.step(ctx, job, reached.get, func(ctx context.Context, run *Opened) (err error) {
		calls, err = run.Paid.Ask(ctx, wave, reached.set)
		return err
	})
	return calls, err
}

// OpenLanes opens the lanes of a wave.
func (a *activities) OpenLanes(ctx context.Context, job Job, wave int) (l Lanes, err error) {
	err = a.step(ctx, job, silent, func(ctx context.Context, run *Opened) (err error) {
		l, err = run.Paid.OpenLanes(ctx, wave)
		return err
	})
	return l, err
}

// AskLane asks about the keys of a lane.
func (a *activities) AskLane(ctx context.Context, job Job, wave int, lanes Lanes, lane int) (calls Calls, err error) {
	var reached latest
	err = a.step(ctx, job, reached.get, func(ctx context.Context, run *Opened) (err error) {
		calls, err = run.Paid.AskLane(ctx, wave, lanes, lane, func(now Calls) {
			now.Lane = lane + 1
			reached.set(now)
		})
		calls.Lane = lane + 1
		return err
	})
	return calls, err
}

// JoinLanes takes over what lanes have.
func (a *activities) JoinLanes(ctx context.Context, job Job) (made Counts, err error) {
	return made, a.step(ctx, job, silent, func(ctx context.Context, run *Opened) error { return run.Paid.JoinLanes(ctx) })
}

// Share gives parts the answers of some lots.
func (a *activities) Share(ctx context.Context, job Job, lots Range, wave int) (made Counts, err error) {
	return made, a.step(ctx, job, silent, func(ctx context.Context, run *Opened) error {
		return over(ctx, lots, func(n int) error { return run.Paid.Share(ctx, wave, n) })
	})
}

// Build makes some parts of a wave, which begins with part first.
func (a *activities) Build(ctx context.Context, job Job, parts Range, first int) (made Counts, err error) {
	err = a.step(ctx, job, silent, func(ctx context.Context, run *Opened) error {
		return over(ctx, parts, func(n int) error {
			counts, err := run.Paid.Build(ctx, first+n)
			made.Add(counts)
			return err
		})
	})
	return made, err
}
