package service

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

// maxFailures is how many attempts at a job may fail.
const maxFailures = 3

// maxDeaths is how many attempts at a job may end with their process, so that a
// search that kills its process is not tried forever. It is larger than
// maxFailures, because a killed process takes other searches with it. A drain
// returns its jobs to the queue and counts as neither.
const maxDeaths = 20

// idle is how often an idle worker looks for a job whose lease has expired:
// nothing wakes it for those.
const idle = time.Second

// retryDelays are the pauses after the first and the second failure.
var retryDelays = [maxFailures - 1]time.Duration{time.Second, 10 * time.Second}

// wakeWorker tells one idle worker that there is a job.
func (s *Service) wakeWorker() {
	select {
	case s.work <- struct{}{}:
	default: // there is a wake-up for every worker already
	}
}

// runJobs works on jobs until taking ends. A running job may continue until
// working ends; then it goes back into the queue.
func (s *Service) runJobs(taking, working context.Context) {
	for taking.Err() == nil {
		now := s.now()
		job, err := s.state.LeaseJob(taking, now, now.Add(s.options.Lease))
		if err != nil && taking.Err() == nil {
			s.log.Error("take a job", "error", err)
		}
		if job == nil {
			select {
			case <-s.work:
			case <-time.After(idle):
			case <-taking.Done():
			}
			continue
		}
		s.wakeWorker() // there may be more jobs
		s.runJob(working, job)
	}
}

// runJob makes one attempt at a job, and renews its lease meanwhile.
func (s *Service) runJob(working context.Context, job *state.Job) {
	ctx, stop := context.WithCancelCause(working)
	var renewing sync.WaitGroup
	renewing.Go(func() {
		if err := s.keepLease(ctx, job); err != nil {
			stop(err)
		}
	})
	began := s.now()
	log := s.log.With("resolution", request.FormatID(job.ID), "operation", job.Operation, "lease", job.Lease)
	result, err := s.search(ctx, job)
	lost := context.Cause(ctx)
	stop(nil)
	renewing.Wait()

	switch {
	case errors.Is(lost, state.ErrLeaseLost), errors.Is(lost, state.ErrFinished):
		return // it was cancelled, or another worker has it
	case err != nil && working.Err() != nil:
		s.leave(log, s.state.ReturnJob(context.WithoutCancel(working), job.ID, job.Lease))
		return
	case err != nil && job.Failures+1 < maxFailures && wire.MayPass(err):
		log.Warn("job failed and will be tried again", "error", err)
		until := s.now().Add(retryDelays[job.Failures])
		s.leave(log, s.state.PostponeJob(context.WithoutCancel(working), job.ID, job.Lease, until))
		return
	case err != nil:
		log.Error("job failed", "error", err)
	}
	// A result is stored even while the service stops.
	switch err := s.finish(context.WithoutCancel(working), job, result, err); {
	case errors.Is(err, state.ErrLeaseLost), errors.Is(err, state.ErrFinished):
		return
	case err != nil:
		log.Error("finish a job", "error", err)
		return
	}
	s.metrics.JobDuration.WithLabelValues(string(job.Operation)).Observe(s.now().Sub(began).Seconds())
	if err == nil {
		s.metrics.Answered(job.Operation, result.Data, result.Credits.Spent)
	}
}

// leave logs why a job could not be put back into the queue, unless the job no
// longer belongs to this worker.
func (s *Service) leave(log *slog.Logger, err error) {
	if err != nil && !errors.Is(err, state.ErrFinished) && !errors.Is(err, state.ErrLeaseLost) {
		log.Error("put a job back", "error", err) // it is tried again when its lease expires
	}
}

// keepLease renews a job's lease until ctx ends. The error says that the job no
// longer belongs to this worker.
func (s *Service) keepLease(ctx context.Context, job *state.Job) error {
	tick := time.NewTicker(s.options.Lease / 3)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		err := s.state.RenewLease(ctx, job.ID, job.Lease, s.now().Add(s.options.Lease))
		if errors.Is(err, state.ErrLeaseLost) || errors.Is(err, state.ErrFinished) {
			return err
		}
	}
}

// search runs the search of a job. A panic becomes an error.
func (s *Service) search(ctx context.Context, job *state.Job) (o wire.Outcome, err error) {
	defer func() {
		if p := recover(); p != nil {
			s.log.Error("panic in a search", "resolution", request.FormatID(job.ID), "stack", string(debug.Stack()))
			err = errPanic
		}
	}()
	if job.Deaths >= maxDeaths {
		return wire.Outcome{}, errDeaths
	}
	var todo work
	if err := json.Unmarshal(job.Work, &todo); err != nil {
		return wire.Outcome{}, fmt.Errorf("what the job is to do: %w", err)
	}
	todo.Search.Start, todo.Search.End, todo.Search.Edition = job.Sees.Start, job.Sees.End, job.Sees.Edition
	ctx, cancel := context.WithTimeout(ctx, s.options.JobTimeout)
	defer cancel()
	o, err = s.searchIn(ctx, job, todo)
	if errors.Is(err, resolution.ErrNoEdition) {
		todo.Search.Edition = ""
		o, err = s.searchIn(ctx, job, todo)
	}
	return o, err
}

var (
	errPanic  = errors.New("the search did not return")
	errDeaths = fmt.Errorf("%d attempts ended without a result", maxDeaths)
)

func (s *Service) searchIn(ctx context.Context, job *state.Job, todo work) (wire.Outcome, error) {
	if job.Operation == resolution.KeywordToLeadCount {
		found, err := s.options.Searcher.Count(ctx, todo.Search, todo.Page.HEMs)
		return wire.CountOutcome(found, job.Reserved), err
	}
	found, err := s.options.Searcher.Search(ctx, todo.Search, todo.Page)
	return wire.ListOutcome(found, todo.Page, todo.Unit), err
}

// finish stores the end of a job in one transaction: its result or error, its
// price and its callback.
func (s *Service) finish(ctx context.Context, job *state.Job, o wire.Outcome, failure error) error {
	end := state.Finish{ID: job.ID, Lease: job.Lease, Status: state.Completed, At: s.now()}
	if failure == nil {
		end.Result, end.Spent = o.JSON(), o.Credits.Spent
	} else {
		end.Status, end.Error = state.Failed, failureWord(failure)
	}
	job.Status, job.Result, job.Error = end.Status, end.Result, end.Error
	var err error
	if end.Callback, err = s.finishedCallback(job, end.At); err != nil {
		return err
	}
	err = s.state.FinishJob(ctx, end)
	if err == nil && end.Callback != nil {
		s.sender.Wake()
	}
	return err
}

func failureWord(err error) string {
	if wire.MayPass(err) {
		return wire.Unavailable.Code
	}
	return wire.InternalError.Code
}
