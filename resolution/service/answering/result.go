package answering

import (
	"errors"

	"github.com/google/uuid"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/service/admission"
	"github.com/leadetl/leadetl/resolution/service/request"
	"github.com/leadetl/leadetl/resolution/service/state"
	"github.com/leadetl/leadetl/resolution/service/wire"
)

// Result answers with the state of a keyword search, or its outcome.
func (d *Desk) Result(c *admission.Call) (*wire.Reply, error) {
	id, payload, problems := request.Result(c.Body)
	if len(problems) > 0 {
		return nil, wire.Invalid(problems)
	}
	job, err := d.findJob(c, id)
	switch {
	case errors.Is(err, state.ErrExpired):
		return nil, wire.Refuse(wire.ResolutionExpired, "The resolution is finished, and its result is no longer kept.")
	case errors.Is(err, state.ErrNotFound), err == nil && job.Operation != c.Operation:
		return nil, wire.Refuse(wire.ResolutionNotFound, "There is no resolution of this kind and id.")
	case err != nil:
		return nil, err
	}
	if !job.Status.Finished() {
		writeUnfinished(c, job, payload)
		// Without an outcome, nothing is stored under an Idempotency-Key.
		return &wire.Reply{Body: c.Out.Bytes(), RetryAfter: pollAfter}, nil
	}
	e := wire.Finished(job)
	e.Test, e.Payload = c.Caller.Account.IsTest(), payload
	if e.Problem != nil {
		e.Problem.Instance, e.Problem.RequestID = c.Request.URL.EscapedPath(), c.ID
	}
	e.Write(c.Out)
	if c.Key != nil {
		_, err = d.State.Settle(c.Request.Context(), state.Charge{
			Organization: c.Caller.Account.ID, Reply: c.Key.Reply(c.Out.Bytes()), At: d.Now(),
		})
	}
	return &wire.Reply{Body: c.Out.Bytes()}, err
}

// findJob returns a job of the caller. A result past its retention is expired,
// even if it is not removed yet.
func (d *Desk) findJob(c *admission.Call, id uuid.UUID) (*state.Job, error) {
	job, err := d.State.FindJob(c.Request.Context(), c.Caller.Account.ID, id)
	if err == nil && job.Status.Finished() && (c.Began.Sub(job.Finished) >= d.Results || rehearsalOf(job) == wire.ResolutionExpired.Code) {
		return nil, state.ErrExpired
	}
	return job, err
}

func writeUnfinished(c *admission.Call, job *state.Job, payload []byte) {
	e := wire.Envelope{
		Success: true, Message: "The resolution is still processing. Try again later.", Test: c.Caller.Account.IsTest(),
		Id: job.ID, Status: outward(job.Operation), Requested: job.Requested, Payload: payload,
	}
	if job.Operation.Gives() == resolution.GivesCount {
		e.Message = "The count is still queued. Try again later."
	}
	e.Write(c.Out)
}
