package cluster

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
)

const (
	// maxActivities is how many activities the files or windows of one
	// step are divided among. A history of more events than some 10,000 is slow.
	maxActivities = 500
	// atOnce is how many of them are handed to workers at a time.
	atOnce = 100
	// stepTimeout bounds an activity without calls.
	stepTimeout = 30 * time.Minute
	// stepAttempts is how often a step is tried before the run fails.
	stepAttempts = 10
)

// run is the workflow of a run. Its code decides on nothing but the order of
// steps: all else is in the state.
func run(ctx workflow.Context, job Job) (Status, error) {
	s := &Status{Stage: "open"}
	if err := workflow.SetQueryHandler(ctx, statusQuery, func() (Status, error) { return *s, nil }); err != nil {
		return *s, err
	}
	if job.Service != "" {
		return *s, s.buy(ctx, job)
	}
	var files int
	if err := do(ctx, job, beginActivity, &files, job); err != nil {
		return *s, err
	}
	if err := s.each(ctx, job, "survey", "Survey", files); err != nil {
		return *s, err
	}
	var d Division
	if err := do(ctx, job, "Divide", &d, job); err != nil {
		return *s, err
	}
	s.Rows, s.Read = d.Rows, Read{Bytes: 1, Total: 1, All: true}
	if err := s.each(ctx, job, "make", "Make", d.Windows); err != nil {
		return *s, err
	}
	s.stage("finish", 1)
	var total Counts
	if err := do(ctx, job, finishActivity, &total, job); err != nil {
		return *s, err
	}
	s.Made = total
	return *s, nil
}

// stage begins a step with n files or windows.
func (s *Status) stage(name string, n int) { s.Stage, s.Done, s.Of = name, 0, n }

// each does a step for each of n files or windows, some of them in one activity.
func (s *Status) each(ctx workflow.Context, job Job, stage, activity string, n int) error {
	s.stage(stage, n)
	size := (n + maxActivities - 1) / maxActivities
	places := workflow.NewSemaphore(ctx, atOnce)
	working, stop := workflow.WithCancel(ctx)
	all := workflow.NewWaitGroup(ctx)
	var failed error
	for first := 0; first < n && failed == nil; first += size {
		if err := places.Acquire(working, 1); err != nil {
			break // cancelled
		}
		part := Range{First: first, Count: min(size, n-first)}
		all.Add(1)
		workflow.Go(working, func(ctx workflow.Context) {
			defer all.Done()
			defer places.Release(1)
			var made Counts
			err := do(ctx, job, activity, &made, job, part)
			if err != nil && failed == nil {
				failed = err
				stop()
			}
			if err == nil {
				s.Done += part.Count
				s.Made.Add(made)
			}
		})
	}
	all.Wait(ctx)
	if failed == nil {
		failed = ctx.Err()
	}
	return failed
}

// do does one step on some worker.
func do(ctx workflow.Context, job Job, activity string, result any, args ...any) error {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: stepTimeout, HeartbeatTimeout: job.LostAfter, WaitForCancellation: true,
		RetryPolicy: &temporal.RetryPolicy{MaximumAttempts: stepAttempts, MaximumInterval: time.Minute, NonRetryableErrorTypes: []string{finalFailure}},
	})
	return workflow.ExecuteActivity(ctx, activity, args...).Get(ctx, result)
}
