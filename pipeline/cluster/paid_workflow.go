package cluster

import (
	"errors"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
)

const (
	// buyTimeout bounds one attempt at a run that asks a service. A dead worker is
	// noticed by its silence, long before.
	buyTimeout = 30 * 24 * time.Hour
	// idleAttempts is how many attempts in a row may bring nothing before the run
	// fails.
	idleAttempts = 10
)

// buy does a run that asks a service: one worker at a time does all of it. A
// successor continues where it ended, as long as there is progress. Each attempt has a
// higher term than those before, which locks them out.
func (s *Status) buy(ctx workflow.Context, job Job) error {
	s.Stage = buyStage
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskQueue: callQueue(job.Service), StartToCloseTimeout: buyTimeout, HeartbeatTimeout: job.LostAfter, WaitForCancellation: true,
		RetryPolicy: &temporal.RetryPolicy{MaximumAttempts: 1}, // the loop below is the policy
	})
	idle := 0
	for term := int64(1); ; term++ {
		var done Status
		err := workflow.ExecuteActivity(ctx, buyActivity, job, term).Get(ctx, &done)
		if err == nil {
			*s = done
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if temporal.IsCanceledError(err) || isFinal(err) {
			return err
		}
		if reached, told := lastStatus(err); told && reached.isAhead(*s) {
			*s, idle = reached, 0
		}
		if isHandover(err) {
			idle = 0
			continue // to another worker, at once
		}
		if idle++; idle >= idleAttempts {
			return err
		}
		if err := workflow.Sleep(ctx, min(time.Second<<(idle-1), time.Minute)); err != nil {
			return err
		}
	}
}

// lastStatus returns how far an attempt was when it ended.
func lastStatus(err error) (reached Status, told bool) {
	if lost, ok := errors.AsType[*temporal.TimeoutError](err); ok && lost.HasLastHeartbeatDetails() {
		return reached, lost.LastHeartbeatDetails(&reached) == nil
	}
	return reached, false
}

// isAhead reports whether a run has got further since other. An attempt counts rows
// anew, but what is bought and what is recorded stays.
func (s Status) isAhead(other Status) bool {
	return s.Calls.Calls > other.Calls.Calls || s.Made.Parts > other.Made.Parts
}
