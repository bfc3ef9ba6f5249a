package answering

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/service/request"
	"github.com/leadetl/leadetl/resolution/service/state"
	"github.com/leadetl/leadetl/resolution/service/wire"
)

// MaxFailures is how many attempts at a job may fail.
const MaxFailures = 3

// MaxDeaths is how many attempts at a job may end with their process, so that a
// search that kills its process is not tried forever. It is larger than
// MaxFailures, because a killed process takes other searches with it. A drain
// returns its jobs to the queue and counts as neither.
const MaxDeaths = 20

// idle is how often an idle worker looks for a job whose lease has expired:
// nothing wakes it for those.
const idle = time.Second

// retryDelays are the pauses after the first and the second failure.
var retryDelays = [MaxFailures - 1]time.Duration{time.Second, 10 * time.Second}

// wakeWorker tells one idle worker that there is a job.
func (d *Desk) wakeWorker() {
	select {
	case d.work <- struct{}{}:
	default: // there is a wake-up for every worker already
	}
}

// RunJobs works on jobs until taking ends. A running job may continue until
// working ends; then it goes back into the queue.
func (d *Desk) RunJobs(taking, working context.Context) {
	for taking.Err() == nil {
		now := d.Now()
		job, err := d.State.LeaseJob(taking, now, now.Add(d.Lease))
		if err != nil && taking.Err() == nil {
			d.Log.Error("take a job", "error", err)
		}
		if job == nil {
			select {
			case <-d.work:
			case <-time.After(idle):
			case <-taking.Done():
			}
			continue
		}
		d.wakeWorker() // there may be more jobs
		d.RunJob(working, job)
	}
}

// RunJob makes one attempt at a job, and renews its lease meanwhile.
func (d *Desk) RunJob(working context.Context, job *state.Job) {
	ctx, stop := context.WithCancelCause(working)
	var renewing sync.WaitGroup
	renewing.Go(func() {
		if err := d.keepLease(ctx, job); err != nil {
			stop(err)
		}
	})
	began := d.Now()
	log := d.Log.With("resolution", request.FormatID(job.ID), "operation", job.Operation, "lease", job.Lease)
	result, err := d.search(ctx, job)
	lost := context.Cause(ctx)
	stop(nil)
	renewing.Wait()

	switch {
	case errors.Is(lost, state.ErrLeaseLost), errors.Is(lost, state.ErrFinished):
		return // it was cancelled, or another worker has it
	case err != nil && working.Err() != nil:
		d.leave(log, d.State.ReturnJob(context.WithoutCancel(working), job.ID, job.Lease))
		return
	case err != nil && job.Failures+1 < MaxFailures && wire.MayPass(err):
		log.Warn("job failed and will be tried again", "error", err)
		until := d.Now().Add(retryDelays[job.Failures])
		d.leave(log, d.State.PostponeJob(context.WithoutCancel(working), job.ID, job.Lease, until))
		return
	case err != nil:
		log.Error("job failed", "error", err)
	}
	// A result is stored even while the service stops.
	switch err := d.finish(context.WithoutCancel(working), job, result, err); {
	case errors.Is(err, state.ErrLeaseLost), errors.Is(err, state.ErrFinished):
		return
	case err != nil:
		log.Error("finish a job", "error", err)
		return
	}
	d.Metrics.JobDuration.WithLabelValues(string(job.Operation)).Observe(d.Now().Sub(began).Seconds())
	if err == nil {
		d.Metrics.Answered(job.Operation, result.Data, result.Credits.Spent)
	}
}

// leave logs why a job could not be put back into the queue, unless the job no
// longer belongs to this worker.
func (d *Desk) leave(log *slog.Logger, err error) {
	if err != nil && !errors.Is(err, state.ErrFinished) && !errors.Is(err, state.ErrLeaseLost) {
		log.Error("put a job back", "error", err) // it is tried again when its lease expires
	}
}

// keepLease renews a job's lease until ctx ends. The error says that the job no
// longer belongs to this worker.
func (d *Desk) keepLease(ctx context.Context, job *state.Job) error {
	tick := time.NewTicker(d.Lease / 3)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		err := d.State.RenewLease(ctx, job.ID, job.Lease, d.Now().Add(d.Lease))
		if errors.Is(err, state.ErrLeaseLost) || errors.Is(err, state.ErrFinished) {
			return err
		}
	}
}

// search runs the search of a job. A panic becomes an error.
func (d *Desk) search(ctx context.Context, job *state.Job) (o wire.Outcome, err error) {
	defer func() {
		if p := recover(); p != nil {
			d.Log.Error("panic in a search", "resolution", request.FormatID(job.ID), "stack", string(debug.Stack()))
			err = errPanic
		}
	}()
	if job.Deaths >= MaxDeaths {
		return wire.Outcome{}, errDeaths
	}
	var todo work
	if err := json.Unmarshal(job.Work, &todo); err != nil {
		return wire.Outcome{}, fmt.Errorf("what the job is to do: %w", err)
	}
	if todo.Rehearsal == failedSearch {
		return wire.Outcome{}, errRehearsed
	}
	todo.Search.Start, todo.Search.End, todo.Search.Edition = job.Sees.Start, job.Sees.End, job.Sees.Edition
	ctx, cancel := context.WithTimeout(ctx, d.JobTimeout)
	defer cancel()
	o, err = d.searchIn(ctx, job, todo)
	if errors.Is(err, resolution.ErrNoEdition) {
		todo.Search.Edition = ""
		o, err = d.searchIn(ctx, job, todo)
	}
	return o, err
}

var (
	errPanic     = errors.New("the search did not return")
	errDeaths    = fmt.Errorf("%d attempts ended without a result", MaxDeaths)
	errRehearsed = errors.New("a test key asked for a search that fails")
)

func (d *Desk) searchIn(ctx context.Context, job *state.Job, todo work) (wire.Outcome, error) {
	if job.Operation.Gives() == resolution.GivesCount {
		found, err := d.Searcher.Count(ctx, todo.Search, todo.Page.HEMs)
		return wire.CountOutcome(found, job.Reserved), err
	}
	found, err := d.Searcher.Search(ctx, todo.Search, todo.Page)
	return wire.ListOutcome(found, todo.Page, todo.Unit), err
}

// finish stores the end of a job in one transaction: its result or error, its
// price and its callback.
func (d *Desk) finish(ctx context.Context, job *state.Job, o wire.Outcome, failure error) error {
	end := state.Finish{ID: job.ID, Lease: job.Lease, Status: state.Completed, At: d.Now()}
	if failure == nil {
		end.Result, end.Spent = o.JSON(), o.Credits.Spent
	} else {
		end.Status, end.Error = state.Failed, failureWord(failure)
	}
	job.Status, job.Result, job.Error = end.Status, end.Result, end.Error
	var err error
	if end.Callback, err = d.Roster.FinishedCallback(job, end.At); err != nil {
		return err
	}
	if end.Callback != nil {
		end.Callback.GivenUp = rehearsalOf(job) == deadCallback
	}
	err = d.State.FinishJob(ctx, end)
	if err == nil && end.Callback != nil {
		d.Posted()
	}
	return err
}

func failureWord(err error) string {
	if wire.MayPass(err) {
		return wire.Unavailable.Code
	}
	return wire.InternalError.Code
}
