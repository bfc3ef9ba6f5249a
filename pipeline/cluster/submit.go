package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
)

// ErrOtherRun means that another run has the output.
var ErrOtherRun = errors.New("another run writes to this output")

// Run is a run on the server, as its client sees it.
type Run struct {
	engine client.Client
	job    Job
	flow   client.WorkflowRun
	// Attached says that the run was going on already.
	Attached bool
}

// memoSettings is the key of the settings' name in the memo of a workflow.
const memoSettings = "settings"

// Submit begins a run, or attaches to it if it is going on with the same
// settings. With other settings it is ErrOtherRun. The settings are stored already.
func Submit(ctx context.Context, engine client.Client, job Job) (*Run, error) {
	if job.Submission == "" {
		return nil, errors.New("a job without the id of its submission")
	}
	flow, err := engine.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID: workflowID(job.ID), TaskQueue: stepQueue, Memo: map[string]any{memoSettings: job.Settings},
		WorkflowIDReusePolicy:                    enums.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		WorkflowIDConflictPolicy:                 enums.WORKFLOW_ID_CONFLICT_POLICY_FAIL,
		WorkflowExecutionErrorWhenAlreadyStarted: true,
	}, runWorkflow, job)
	if err == nil {
		return &Run{engine: engine, job: job, flow: flow}, nil
	}
	if _, going := errors.AsType[*serviceerror.WorkflowExecutionAlreadyStarted](err); !going {
		return nil, unreachable(err)
	}
	found, err := engine.DescribeWorkflowExecution(ctx, workflowID(job.ID), "")
	if err != nil {
		return nil, unreachable(err)
	}
	info := found.GetWorkflowExecutionInfo()
	if info.GetTaskQueue() != stepQueue {
		return nil, fmt.Errorf("%w, begun with another version of leadetl; wait until its workers have finished it, or end it with: temporal workflow terminate --workflow-id %s", ErrOtherRun, workflowID(job.ID))
	}
	var settings string
	if err := decode(info.GetMemo().GetFields()[memoSettings], &settings); err != nil || settings != job.Settings {
		return nil, fmt.Errorf("%w, with other settings; wait for it, or cancel it with Ctrl-C of its client or: temporal workflow cancel --workflow-id %s", ErrOtherRun, workflowID(job.ID))
	}
	return &Run{engine: engine, job: job, flow: engine.GetWorkflow(ctx, workflowID(job.ID), info.GetExecution().GetRunId()), Attached: true}, nil
}

// decode reads a payload.
func decode(p *common.Payload, to any) error {
	return converter.GetDefaultDataConverter().FromPayload(p, to)
}

// unreachable classifies an error of a request.
func unreachable(err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrUnreachable, err)
}

// ID names the run on the server's pages.
func (r *Run) ID() string { return r.flow.GetID() }

// Wait waits for the end of the run. read returns the text of a failure from
// the state. A server that is away for a while does not end the wait.
func (r *Run) Wait(ctx context.Context, read func(name string) (string, error)) (Status, error) {
	for {
		var s Status
		err := r.flow.Get(ctx, &s)
		switch {
		case err == nil:
			return s, nil
		case ctx.Err() != nil:
			return s, ctx.Err()
		case isAway(err):
			if err := pause(ctx, time.Second); err != nil {
				return s, err
			}
		default:
			return s, failureOf(err, read)
		}
	}
}

// isAway reports whether a request failed because the server does not answer.
func isAway(err error) bool {
	_, unavailable := errors.AsType[*serviceerror.Unavailable](err)
	_, late := errors.AsType[*serviceerror.DeadlineExceeded](err)
	return unavailable || late || errors.Is(err, context.DeadlineExceeded)
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Cancel asks the run to stop: calls in flight are awaited and stored.
func (r *Run) Cancel(ctx context.Context) error {
	return unreachable(r.engine.CancelWorkflow(ctx, r.flow.GetID(), r.flow.GetRunID()))
}

// Status asks the run how far it is. A worker has to answer.
func (r *Run) Status(ctx context.Context) (Status, error) {
	s, err := r.query(ctx, r.flow.GetID(), r.flow.GetRunID())
	if err != nil || s.Stage != buyStage {
		return s, err
	}
	return r.reached(ctx, s), nil
}

func (r *Run) query(ctx context.Context, id, run string) (s Status, err error) {
	value, err := r.engine.QueryWorkflow(ctx, id, run, statusQuery)
	if err != nil {
		return s, err
	}
	return s, value.Get(&s)
}

// reached returns what the worker that asks the service last said in a heartbeat, or
// before if it has said nothing yet.
func (r *Run) reached(ctx context.Context, before Status) Status {
	found, err := r.engine.DescribeWorkflowExecution(ctx, r.flow.GetID(), r.flow.GetRunID())
	if err != nil {
		return before
	}
	for _, a := range found.GetPendingActivities() {
		var now Status
		if p := a.GetHeartbeatDetails().GetPayloads(); len(p) == 1 && decode(p[0], &now) == nil {
			return now
		}
	}
	return before
}

// pollerSeen is how old the last request of a worker may be: each waits a minute
// at most for work.
const pollerSeen = 75 * time.Second

// Workers returns how many workers listen, and how many of them call the
// service of the run.
func (r *Run) Workers(ctx context.Context) (all, calling int, err error) {
	if all, err = r.pollers(ctx, stepQueue); err != nil || r.job.Service == "" {
		return all, 0, err
	}
	calling, err = r.pollers(ctx, callQueue(r.job.Service))
	return all, calling, err
}

func (r *Run) pollers(ctx context.Context, queue string) (int, error) {
	found, err := r.engine.DescribeTaskQueue(ctx, queue, enums.TASK_QUEUE_TYPE_ACTIVITY)
	if err != nil {
		return 0, unreachable(err)
	}
	seen := map[string]bool{}
	for _, p := range found.GetPollers() {
		if time.Since(p.GetLastAccessTime().AsTime()) < pollerSeen {
			seen[p.GetIdentity()] = true
		}
	}
	return len(seen), nil
}

// Missing says which worker is missing, "" if none is.
func (r *Run) Missing(all, calling int) string {
	switch {
	case all == 0:
		return fmt.Sprintf("no worker of this version listens on %s; start one with: leadetl worker --on ADDRESS", stepQueue)
	case r.job.Service != "" && calling == 0:
		return fmt.Sprintf("no worker with the key of the service listens on %s; start one with: leadetl worker --on ADDRESS --resolver URL", callQueue(r.job.Service))
	}
	return ""
}
