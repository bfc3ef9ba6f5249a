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

// ask asks about the keys of a wave. One caller at a time does, and a successor
// goes on where it ended, as long as there is progress.
func (s *Status) ask(ctx workflow.Context, w Wave) error {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskQueue: callQueue(w.Job.Service), StartToCloseTimeout: askTimeout, HeartbeatTimeout: w.Job.LostAfter, WaitForCancellation: true,
		RetryPolicy: &temporal.RetryPolicy{MaximumAttempts: 1}, // the loop below is the policy
	})
	for idle := 1; ; idle++ {
		err := workflow.ExecuteActivity(ctx, "Ask", w.Job, w.Number).Get(ctx, &s.Calls)
		if err == nil || ctx.Err() != nil || temporal.IsCanceledError(err) || isFinal(err) {
			return err
		}
		if reached, told := lastCalls(err); told && reached.Closed > s.Calls.Closed {
			s.Calls, idle = reached, 0
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
