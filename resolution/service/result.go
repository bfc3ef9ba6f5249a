package service

import (
	"errors"

	"github.com/google/uuid"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/service/request"
	"github.com/leadetl/leadetl/resolution/service/state"
	"github.com/leadetl/leadetl/resolution/service/wire"
)

// result answers with the state of a keyword search, or its outcome.
func (s *Service) result(c *call) (*wire.Reply, error) {
	id, payload, problems := request.Result(c.object)
	if len(problems) > 0 {
		return nil, wire.Invalid(problems)
	}
	job, err := s.findJob(c, id)
	switch {
	case errors.Is(err, state.ErrExpired):
		return nil, wire.Refuse(wire.ResolutionExpired, "The resolution is finished, and its result is no longer kept.")
	case errors.Is(err, state.ErrNotFound), err == nil && job.Operation != c.route.operation:
		return nil, wire.Refuse(wire.ResolutionNotFound, "There is no resolution of this kind and id.")
	case err != nil:
		return nil, err
	}
	if !job.Status.Finished() {
		writeUnfinished(c, job, payload)
		// Without an outcome, nothing is stored under an Idempotency-Key.
		return &wire.Reply{Body: c.out.Bytes(), RetryAfter: pollAfter}, nil
	}
	e := finished(job)
	e.Test, e.Payload = c.account.isTest(), payload
	if e.Problem != nil {
		e.Problem.Instance, e.Problem.RequestID = c.request.URL.EscapedPath(), c.id
	}
	e.Write(c.out)
	if c.key != nil {
		_, err = s.state.Settle(c.request.Context(), state.Charge{
			Organization: c.account.id, Resolution: id, Operation: job.Operation, Reply: c.key.reply(c.out.Bytes()), At: s.now(),
		})
	}
	return &wire.Reply{Body: c.out.Bytes()}, err
}

// findJob returns a job of the caller. A result past its retention is expired,
// even if it is not removed yet.
func (s *Service) findJob(c *call, id uuid.UUID) (*state.Job, error) {
	job, err := s.state.FindJob(c.request.Context(), c.account.id, id)
	if err == nil && job.Status.Finished() && c.began.Sub(job.Finished) >= s.options.Retention.Results {
		return nil, state.ErrExpired
	}
	return job, err
}

func writeUnfinished(c *call, job *state.Job, payload []byte) {
	e := wire.Envelope{
		Success: true, Message: "The resolution is still processing. Try again later.", Test: c.account.isTest(),
		Id: job.ID, Status: outward(job.Operation), Requested: job.Requested, Payload: payload,
	}
	if job.Operation == resolution.KeywordToLeadCount {
		e.Message = "The count is still queued. Try again later."
	}
	e.Write(c.out)
}

// failures are the error codes of jobs, with their answers.
var failures = map[string]struct {
	kind   *wire.Kind
	detail string
}{
	wire.InternalError.Code: {wire.InternalError, "The search failed. Its credits were given back."},
	wire.Unavailable.Code:   {wire.Unavailable, "The data could not be read. The credits were given back; try again later."},
}

// finished returns the envelope of a finished job, without its payload.
func finished(job *state.Job) *wire.Envelope {
	e := &wire.Envelope{Id: job.ID, Status: string(job.Status), Requested: job.Requested}
	switch job.Status {
	case state.Completed:
		e.Success, e.Outcome = true, job.Result
		e.Message = "Keyword to lead resolution completed."
		if job.Operation == resolution.KeywordToLeadCount {
			e.Message = "Keyword to lead count completed."
		}
	case state.Cancelled:
		e.Message = "The resolution was cancelled. Its credits were given back."
		body := wire.Refuse(wire.CancelledJob, "%s", e.Message).Body("", "")
		e.Problem = &body
	default:
		f, known := failures[job.Error]
		if !known {
			f = failures[wire.InternalError.Code]
		}
		e.Message = f.detail
		body := wire.Refuse(f.kind, "%s", f.detail).Body("", "")
		e.Problem = &body
	}
	return e
}
