package wire

import (
	"encoding/hex"

	"github.com/google/uuid"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/service/state"
)

// failures are the error codes of jobs, with their answers.
var failures = map[string]struct {
	kind   *Kind
	detail string
}{
	InternalError.Code: {InternalError, "The search failed. Its credits were given back."},
	Unavailable.Code:   {Unavailable, "The data could not be read. The credits were given back; try again later."},
}

// Finished returns the envelope of a finished job, without its payload.
func Finished(job *state.Job) *Envelope {
	e := &Envelope{Id: job.ID, Status: string(job.Status), Requested: job.Requested}
	switch job.Status {
	case state.Completed:
		e.Success, e.Outcome = true, job.Result
		e.Message = "Keyword to lead resolution completed."
		if job.Operation.Gives() == resolution.GivesCount {
			e.Message = "Keyword to lead count completed."
		}
	case state.Cancelled:
		e.Message = "The resolution was cancelled. Its credits were given back."
		body := Refuse(CancelledJob, "%s", e.Message).Body("", "")
		e.Problem = &body
	default:
		f, known := failures[job.Error]
		if !known {
			f = failures[InternalError.Code]
		}
		e.Message = f.detail
		body := Refuse(f.kind, "%s", f.detail).Body("", "")
		e.Problem = &body
	}
	return e
}

// NewCallback completes a callback with its id and its body: the finished
// envelope, the kind of the event, and the operation that it answers.
func NewCallback(c state.Callback, finished []byte, of resolution.Operation, what state.Status) (*state.Callback, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return nil, err
	}
	c.WebhookID = "msg_" + hex.EncodeToString(id[:])
	c.Body = event(finished, "resolution."+string(what), of, c.Due)
	return &c, nil
}
