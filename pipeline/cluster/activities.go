package cluster

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
)

// Steps are the steps of one run without calls. Activities call them, from up to as many
// goroutines as the worker has places: Survey for each file, Divide once, Make for each
// window, Finish once, each after the one before has ended on all workers. A step may be
// done twice, also at the same time and elsewhere, with the same result. It keeps nothing
// in memory for the next, and ends early only with ctx.
type Steps interface {
	// Files is the number of files of the input.
	Files() int
	// Survey counts the rows of a file of the input.
	Survey(ctx context.Context, file int) error
	// Divide divides the rows into windows and parts.
	Divide(ctx context.Context) (Division, error)
	// Make makes the parts of a window.
	Make(ctx context.Context, window int) (Counts, error)
	// Finish publishes the dataset and returns its rows.
	Finish(ctx context.Context) (Counts, error)
}

// Opened is a run that this process has opened.
type Opened struct {
	Steps Steps
	// Worked counts a step that was done, for the report.
	Worked func(ctx context.Context, step string, took time.Duration) error
	Close  func() error
}

// Turn is one of several attempts at a run that asks a service. They follow each other,
// maybe on other workers.
type Turn struct {
	Term int64 // rises with each
	// Confirmed is when this worker gave its last sign of life that the server confirmed.
	// The next attempt begins Job.LostAfter later, at the earliest.
	Confirmed func() time.Time
	// Tell takes how far the run is, now and then.
	Tell func(Status)
}

// worked counts a step. Without it the report has less to say, and nothing else is
// lost.
func (o *Opened) worked(ctx context.Context, step string, took time.Duration, log *slog.Logger) {
	if step == finishActivity || ctx.Err() != nil {
		return
	}
	if err := o.Worked(ctx, strings.ToLower(step), took); err != nil && ctx.Err() == nil {
		log.Warn("the report will lack a step of this worker", "step", step, "error", err)
	}
}

// activities are the steps as workflows name them.
type activities struct {
	worker *Worker
	opened *openedRuns
	engine client.Client // nil in a test without a server
}

// beginActivity is the first step. It alone begins a run: a worker that is late,
// and does a step of a run that is finished, must not begin it again.
const beginActivity = "Open"

// finishActivity is the last step. It writes the report.
const finishActivity = "Finish"

// buyActivity does a run that asks a service, and buyStage is its only stage.
const (
	buyActivity = "Buy"
	buyStage    = "buy"
)

// step does part of a step of a run that this process has opened.
func (a *activities) step(ctx context.Context, job Job, do func(ctx context.Context, run *Opened) error) error {
	return a.watched(ctx, job, func() any { return nil }, func(working context.Context, _ *pulse) error {
		name, began := activity.GetInfo(ctx).ActivityType.Name, time.Now()
		run, release, err := a.opened.use(working, job, name == beginActivity)
		if err != nil {
			return err
		}
		defer release()
		if err = do(working, run); err == nil {
			run.worked(working, name, time.Since(began), a.worker.Log)
		}
		return err
	})
}

// watched does work with heartbeats, until the worker ends, the run is cancelled,
// or another worker has the work.
func (a *activities) watched(ctx context.Context, job Job, status func() any, do func(ctx context.Context, p *pulse) error) (err error) {
	defer a.measure(ctx, &err)()
	working, p, stop := a.beat(ctx, job, status)
	defer stop()
	if err = working.Err(); err == nil {
		err = do(working, p)
	}
	return asFailure(working, err, a.worker.Classify, func(text string) string {
		info := activity.GetInfo(ctx)
		a.worker.Log.Error("a step failed", "run", job.ID, "step", info.ActivityType.Name, "attempt", info.Attempt, "error", text)
		name, err := a.worker.Tell(job, text)
		if err != nil {
			a.worker.Log.Error("the state does not take the reason", "error", err)
		}
		return name
	})
}

// measure counts the step that begins now, and when its end is called that it
// ended with err.
func (a *activities) measure(ctx context.Context, err *error) (end func()) {
	if a.worker.Meter == nil {
		return func() {}
	}
	step, began := activity.GetInfo(ctx).ActivityType.Name, time.Now()
	a.worker.Meter.Began(step)
	return func() { a.worker.Meter.Ended(step, time.Since(began), *err != nil) }
}

// pulse sends heartbeats of a step, and knows when the server confirmed the last one. A
// step is given to another worker LostAfter after that, at the earliest.
type pulse struct {
	activities *activities
	ctx        context.Context // of the activity
	lostAfter  time.Duration
	status     func() any
	last       atomic.Pointer[time.Time] // when the last confirmed one was sent
}

// confirmed is when the last heartbeat was sent that the server confirmed.
func (p *pulse) confirmed() time.Time { return *p.last.Load() }

// every is the time between two heartbeats, and how long one may take.
func (p *pulse) every() time.Duration { return p.lostAfter / 6 }

// isCutOff reports whether heartbeats fail for so long that the step has to stop, before
// another worker begins it.
func (p *pulse) isCutOff() bool { return time.Since(p.confirmed()) > p.lostAfter/3 }

// beat sends one heartbeat. A server that does not answer may answer the next one.
func (p *pulse) beat() {
	sent := time.Now()
	if err := p.send(); err == nil {
		p.last.Store(&sent)
	} else if !isAway(err) {
		activity.RecordHeartbeat(p.ctx, p.status()) // cancels the context, as the server says
	}
}

func (p *pulse) send() error {
	if p.activities.engine == nil { // a test without a server
		activity.RecordHeartbeat(p.ctx, p.status())
		return nil
	}
	within, done := context.WithTimeout(p.ctx, p.every())
	defer done()
	return p.activities.engine.RecordActivityHeartbeat(within, activity.GetInfo(p.ctx).TaskToken, p.status())
}

// beat sends heartbeats until stop is called. The context ends if the worker ends, if the
// server says so in answer to a heartbeat, and if none is answered.
func (a *activities) beat(ctx context.Context, job Job, status func() any) (working context.Context, p *pulse, stop func()) {
	p = &pulse{activities: a, ctx: ctx, lostAfter: job.LostAfter, status: status}
	p.last.Store(new(time.Time))
	p.beat() // a worker that slept may have the task late
	working, cancel := context.WithCancelCause(ctx)
	quit, done := make(chan struct{}), make(chan struct{})
	ending := activity.GetWorkerStopChannel(ctx)
	go func() {
		defer close(done)
		ticker := time.NewTicker(p.every())
		defer ticker.Stop()
		for {
			select {
			case <-ending:
				cancel(errHandover)
				ending = nil // heartbeats go on until the step has stopped
			case <-ticker.C:
				if p.beat(); p.isCutOff() {
					cancel(errCutOff)
				}
			case <-quit:
				return
			}
		}
	}()
	return working, p, func() { close(quit); <-done; cancel(nil) }
}

// over does one file or window of a range after the other.
func over(ctx context.Context, part Range, do func(n int) error) error {
	for n := part.First; n < part.First+part.Count; n++ {
		if err := errors.Join(ctx.Err(), do(n)); err != nil {
			return err
		}
	}
	return nil
}

// Open returns the number of files of the input.
func (a *activities) Open(ctx context.Context, job Job) (files int, err error) {
	err = a.step(ctx, job, func(_ context.Context, run *Opened) error {
		files = run.Steps.Files()
		return nil
	})
	return files, err
}

// Survey counts the rows of some files.
func (a *activities) Survey(ctx context.Context, job Job, files Range) (made Counts, err error) {
	return made, a.step(ctx, job, func(ctx context.Context, run *Opened) error {
		return over(ctx, files, func(n int) error { return run.Steps.Survey(ctx, n) })
	})
}

// Divide divides the rows.
func (a *activities) Divide(ctx context.Context, job Job) (d Division, err error) {
	err = a.step(ctx, job, func(ctx context.Context, run *Opened) (err error) {
		d, err = run.Steps.Divide(ctx)
		return err
	})
	return d, err
}

// Make makes the parts of some windows.
func (a *activities) Make(ctx context.Context, job Job, windows Range) (made Counts, err error) {
	err = a.step(ctx, job, func(ctx context.Context, run *Opened) error {
		return over(ctx, windows, func(n int) error {
			counts, err := run.Steps.Make(ctx, n)
			made.Add(counts)
			return err
		})
	})
	return made, err
}

// Finish publishes the dataset.
func (a *activities) Finish(ctx context.Context, job Job) (total Counts, err error) {
	err = a.step(ctx, job, func(ctx context.Context, run *Opened) (err error) {
		total, err = run.Steps.Finish(ctx)
		return err
	})
	return total, err
}

// Buy does a run that asks a service, from where the attempt before it ended.
func (a *activities) Buy(ctx context.Context, job Job, term int64) (reached Status, err error) {
	var told atomic.Pointer[Status]
	status := func() any {
		if now := told.Load(); now != nil {
			return *now
		}
		return nil
	}
	err = a.watched(ctx, job, status, func(ctx context.Context, p *pulse) (err error) {
		reached, err = a.worker.Buy(ctx, job, Turn{Term: term, Confirmed: p.confirmed, Tell: func(now Status) { told.Store(&now) }})
		return err
	})
	reached.Stage = buyStage
	return reached, err
}
