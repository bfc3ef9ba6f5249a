package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

// handoverTime is how long the steps of a worker that ends may take to stop:
// calls in flight are awaited.
const handoverTime = 2 * time.Minute

// Worker does steps of runs.
type Worker struct {
	// Open opens a run, which only with begin may not have been begun yet. Its
	// context ends with the worker.
	Open func(ctx context.Context, job Job, begin bool) (*Opened, error)
	// Buy does a run that asks a service, from where the attempt before it ended.
	Buy func(ctx context.Context, job Job, turn Turn) (Status, error)
	// Classify says what an error means.
	Classify func(error) Fault
	// Tell stores the text of an error in the state, and returns its name.
	Tell func(job Job, text string) (name string, err error)
	// Slots is how many steps it does at a time, and CallSlots how many runs that
	// ask a service.
	Slots, CallSlots int
	// Service is the one that this worker has the key of, "" for none.
	Service string
	Meter   Meter // may be nil
	Log     *slog.Logger
}

// Meter counts steps.
type Meter interface {
	Began(step string)
	Ended(step string, took time.Duration, failed bool)
}

// Run does steps until ctx ends. Then it hands over what is at work.
func (w *Worker) Run(ctx context.Context, engine client.Client) error {
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	fatal := make(chan error, 2)
	runs := &openedRuns{open: w.Open, life: life, runs: map[Job]*openedRun{}}
	doing := &activities{worker: w, opened: runs, engine: engine}
	queues := []worker.Worker{newWorker(engine, stepQueue, w.Slots, fatal)}
	register(queues[0], doing)
	if w.Service != "" {
		calls := newWorker(engine, callQueue(w.Service), w.CallSlots, fatal)
		registerCalls(calls, doing)
		queues = append(queues, calls)
	}
	var err error
	started := 0
	for _, q := range queues {
		if err = q.Start(); err != nil {
			break
		}
		started++
	}
	if err == nil {
		select {
		case <-ctx.Done():
		case err = <-fatal:
			err = fmt.Errorf("%w: %w", ErrUnreachable, err)
		}
	}
	var stopping sync.WaitGroup
	for _, q := range queues[:started] {
		stopping.Go(q.Stop) // which waits for its steps
	}
	stopping.Wait()
	return errors.Join(err, runs.close())
}

// registry is what workflows and activities are registered with: a worker, or
// the environment of a test.
type registry interface {
	RegisterWorkflowWithOptions(w any, options workflow.RegisterOptions)
	RegisterActivityWithOptions(a any, options activity.RegisterOptions)
}

// register registers the workflow and the steps without calls.
func register(at registry, doing *activities) {
	at.RegisterWorkflowWithOptions(run, workflow.RegisterOptions{Name: runWorkflow})
	for name, do := range map[string]any{
		beginActivity: doing.Open, "Survey": doing.Survey, "Divide": doing.Divide, "Make": doing.Make, finishActivity: doing.Finish,
	} {
		at.RegisterActivityWithOptions(do, activity.RegisterOptions{Name: name})
	}
}

// registerCalls registers what makes calls.
func registerCalls(at registry, doing *activities) {
	at.RegisterActivityWithOptions(doing.Buy, activity.RegisterOptions{Name: buyActivity})
}

// newWorker returns a worker for one queue, which does up to slots activities at
// a time.
func newWorker(engine client.Client, queue string, slots int, fatal chan<- error) worker.Worker {
	return worker.New(engine, queue, worker.Options{
		MaxConcurrentActivityExecutionSize: slots,
		WorkerStopTimeout:                  handoverTime,
		DisableEagerActivities:             true, // they would bypass other workers
		OnFatalError: func(err error) {
			select {
			case fatal <- err:
			default:
			}
		},
	})
}
