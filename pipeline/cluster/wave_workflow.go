package cluster

import (
	"errors"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
)

const (
	// askTimeout bounds one attempt to ask about a wave. A dead worker is
	// noticed by its silence, long before.
	askTimeout = 30 * 24 * time.Hour
	// idleAttempts is how many attempts in a row may bring no answer before the
	// run fails.
	idleAttempts = 10
)

// Wave is the input of the workflow of a wave.
type Wave struct {
	Job    Job   `json:"job"`
	Number int   `json:"number"`
	Parts  Range `json:"parts"`
}

// wave is the workflow of a wave: it asks each key of its parts once, and then
// builds the parts from the answers.
func wave(ctx workflow.Context, w Wave) (Status, error) {
	s := &Status{Stage: "gather", Wave: w.Number}
	if err := workflow.SetQueryHandler(ctx, statusQuery, func() (Status, error) { return *s, nil }); err != nil {
		return *s, err
	}
	var lots int
	if err := do(ctx, w.Job, "Lots", &lots, w.Job, w.Number); err != nil {
		return *s, err
	}
	if err := s.each(ctx, w.Job, "gather", "Gather", lots, []any{w.Number}); err != nil {
		return *s, err
	}
	s.stage("ask", 1)
	if err := s.ask(ctx, w); err != nil {
		return *s, err
	}
	if err := s.each(ctx, w.Job, "share", "Share", lots, []any{w.Number}); err != nil {
		return *s, err
	}
	return *s, s.each(ctx, w.Job, "build", "Build", w.Parts.Count, []any{w.Parts.First})
}

// ask asks about the keys of a wave: in lanes if the run has some, and then about
// those that are left.
func (s *Status) ask(ctx workflow.Context, w Wave) error {
	if w.Job.Lanes > 1 {
		if err := s.askInLanes(ctx, w); err != nil {
			return err
		}
	}
	return goOn(ctx, w, &s.Calls, "Ask", w.Job, w.Number)
}

// askInLanes has several callers ask at the same time, each in its lane. Where one
// stops before its end, because its share of the budget is used up or for a passing
// reason, its keys are left. Only a reason that stops the run is an error.
func (s *Status) askInLanes(ctx workflow.Context, w Wave) error {
	var lanes Lanes
	if err := doOn(ctx, callQueue(w.Job.Service), w.Job, "OpenLanes", &lanes, w.Job, w.Number); err != nil {
		return err
	}
	s.Before, s.Lanes = lanes.Spent, make([]Calls, lanes.Count)
	working, stop := workflow.WithCancel(ctx)
	all := workflow.NewWaitGroup(ctx)
	var failed error
	for n := range lanes.Count {
		all.Add(1)
		workflow.Go(working, func(ctx workflow.Context) {
			defer all.Done()
			err := goOn(ctx, w, &s.Lanes[n], "AskLane", w.Job, w.Number, lanes, n)
			s.Calls = inLanes(s.Before, s.Lanes)
			if err != nil && failed == nil && isFinal(err) {
				failed = err
				stop()
			}
		})
	}
	all.Wait(ctx)
	if failed == nil {
		failed = ctx.Err()
	}
	if failed == nil || lanes.Count == 0 {
		return failed
	}
	// The next run joins the lanes if this does not.
	steady, _ := workflow.NewDisconnectedContext(ctx)
	if err := doOn(steady, callQueue(w.Job.Service), w.Job, "JoinLanes", nil, w.Job); err != nil {
		workflow.GetLogger(ctx).Warn("the lanes stay open until the next run", "error", err)
	}
	return failed
}

// goOn does a step that makes calls, with one caller at a time. A successor goes on
// where it ended, as long as there is progress.
func goOn(ctx workflow.Context, w Wave, calls *Calls, activity string, args ...any) error {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskQueue: callQueue(w.Job.Service), StartToCloseTimeout: askTimeout, HeartbeatTimeout: w.Job.LostAfter, WaitForCancellation: true,
		RetryPolicy: &temporal.RetryPolicy{MaximumAttempts: 1}, // the loop below is the policy
	})
	for idle := 1; ; idle++ {
		err := workflow.ExecuteActivity(ctx, activity, args...).Get(ctx, calls)
		if err == nil || ctx.Err() != nil || temporal.IsCanceledError(err) || isFinal(err) {
			return err
		}
		if reached, told := lastCalls(err); told && reached.Closed > calls.Closed {
			*calls, idle = reached, 0
		}
		if isHandover(err) {
			idle = 0
			continue // to another worker, at once
		}
		if idle >= idleAttempts {
			return err
		}
		if err := workflow.Sleep(ctx, min(time.Second<<idle, time.Minute)); err != nil {
			return err
		}
	}
}

// lastCalls returns what an attempt had reached when it ended.
func lastCalls(err error) (reached Calls, told bool) {
	if lost, ok := errors.AsType[*temporal.TimeoutError](err); ok && lost.HasLastHeartbeatDetails() {
		return reached, lost.LastHeartbeatDetails(&reached) == nil
	}
	return reached, false
}
