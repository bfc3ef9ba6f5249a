package service

import (
	"bytes"
	"errors"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/service/request"
	"github.com/leadetl/leadetl/resolution/service/state"
)

// result tells how far a keyword search is, or what it found.
func (s *Service) result(c *call) (*reply, error) {
	id, payload, problems := request.Result(c.object)
	if len(problems) > 0 {
		return nil, invalid(problems)
	}
	job, err := s.state.FindJob(c.Context(), c.account.id, id)
	switch {
	case errors.Is(err, state.ErrExpired):
		return nil, refuse(resolutionExpired, "The resolution is finished, and its result is no longer kept.")
	case errors.Is(err, state.ErrNotFound), err == nil && job.Operation != c.route.operation:
		return nil, refuse(resolutionNotFound, "There is no resolution of this kind and id.")
	case err != nil:
		return nil, err
	}
	if !job.Status.Finished() {
		writeUnfinished(c.out, job, payload)
		// Not stored under an Idempotency-Key: there is no outcome yet.
		return &reply{body: c.out.Bytes(), retryAfter: pollAfter}, nil
	}
	e := finished(job)
	e.payload = payload
	if e.problem != nil {
		e.problem.Instance, e.problem.RequestID = c.URL.EscapedPath(), c.id
	}
	e.write(c.out)
	if c.key != nil {
		_, err = s.state.Settle(c.Context(), state.Charge{
			Organization: c.account.id, Resolution: id, Operation: job.Operation, Reply: c.key.reply(c.out.Bytes()), At: s.now(),
		})
	}
	return &reply{body: c.out.Bytes()}, err
}

func writeUnfinished(b *bytes.Buffer, job *state.Job, payload []byte) {
	e := envelope{
		success: true, message: "The resolution is still processing. Try again later.",
		id: job.ID, status: outward(job.Operation), requested: job.Requested, payload: payload,
	}
	if job.Operation == resolution.KeywordToLeadCount {
		e.message = "The count is still queued. Try again later."
	}
	e.write(b)
}

// failures are the words a job fails with, and how they are told.
var failures = map[string]struct {
	*kind
	detail string
}{
	internalError.code: {internalError, "The search failed. Its credits were given back."},
	unavailable.code:   {unavailable, "The data could not be read. The credits were given back; try again later."},
}

// finished is the envelope of a finished job, without its payload.
func finished(job *state.Job) *envelope {
	e := &envelope{id: job.ID, status: string(job.Status), requested: job.Requested}
	switch job.Status {
	case state.Completed:
		e.success, e.outcome = true, job.Result
		e.message = "Keyword to lead resolution completed."
		if job.Operation == resolution.KeywordToLeadCount {
			e.message = "Keyword to lead count completed."
		}
	case state.Cancelled:
		e.message = "The resolution was cancelled. Its credits were given back."
		body := refuse(cancelledJob, "%s", e.message).body("", "")
		e.problem = &body
	default:
		f, known := failures[job.Error]
		if !known {
			f = failures[internalError.code]
		}
		e.message = f.detail
		body := refuse(f.kind, "%s", f.detail).body("", "")
		e.problem = &body
	}
	return e
}
