package answering

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/service/admission"
	"github.com/leadetl/leadetl/resolution/service/metrics"
	"github.com/leadetl/leadetl/resolution/service/state"
	"github.com/leadetl/leadetl/resolution/service/wire"
)

// pollAfter is the Retry-After of an unfinished job.
const pollAfter = 5 * time.Second

// work is the task of a job, in the form in which it is stored.
type work struct {
	Search resolution.KeywordSearch // its days and edition are state.Job.Sees
	Page   resolution.SearchPage
	// Unit is the price of a delivered lead when the job was accepted.
	Unit int64
	// Rehearsal is the outcome that a test key asked for.
	Rehearsal string `json:",omitempty"`
}

// Create accepts a keyword search. Job, reservation and reply are stored in one
// transaction before the answer is sent; a worker runs the search later.
func (d *Desk) Create(c *admission.Call) (*wire.Reply, error) {
	operation := c.Operation
	asked, problems := d.Requests.Keyword(operation, c.Body, c.Began)
	if len(problems) > 0 {
		return nil, wire.Invalid(problems)
	}
	outcome := rehearsal(c, asked.Search.Keywords...)
	if err := d.rehearse(c.Request.Context(), outcome, d.Costs.of(operation)); err != nil {
		return nil, err
	}
	receiver, err := d.checkCallback(c.Request.Context(), asked.CallbackURL)
	if err != nil {
		return nil, err
	}
	todo := work{Search: asked.Search, Page: asked.Page, Rehearsal: outcome}
	reserved := d.Costs.of(operation)
	if operation.Gives() == resolution.GivesLeads {
		todo.Unit = d.Costs.lead(asked.Page)
		reserved = todo.Unit * int64(asked.Page.Limit)
	}
	if err := d.Roster.Afford(c.Request.Context(), c.Caller, reserved); err != nil {
		return nil, err
	}
	job := state.Job{
		Organization: c.Caller.Account.ID, Key: c.Caller.KeyID(), Operation: operation, Requested: c.Began,
		Payload: asked.Payload, CallbackURL: asked.CallbackURL, Receiver: receiver, Reserved: reserved,
		// All pages of one search see the same data and the same days.
		Search: asked.Fingerprint,
		Sees:   state.Snapshot{Taken: c.Began, Start: asked.Search.Start, End: asked.Search.End, Edition: d.Searcher.Edition()},
	}
	if job.ID, err = uuid.NewV7(); err != nil {
		return nil, err
	}
	if job.Work, err = json.Marshal(todo); err != nil {
		return nil, err
	}
	writeCreated(c, job)
	left, err := d.State.CreateJob(c.Request.Context(), job, d.ActiveJobs, c.Key.Reply(c.Out.Bytes()))
	if err != nil {
		return nil, d.notCreated(c, err)
	}
	c.Caller.Account.Available.Store(left)
	d.wakeWorker()
	return &wire.Reply{Body: c.Out.Bytes(), Billed: true, Remaining: left}, nil
}

func (d *Desk) notCreated(c *admission.Call, err error) error {
	if errors.Is(err, state.ErrTooManyActive) {
		d.Metrics.RateLimited.WithLabelValues(metrics.ActiveLimit).Inc()
		p := wire.Refuse(wire.TooManyActive, "The organization has %d unfinished resolutions already. Wait until one is finished.", d.ActiveJobs)
		p.RetryAfter = pollAfter
		return p
	}
	if too, is := errors.AsType[*state.InsufficientError](err); is {
		return insufficient(c, too)
	}
	return err
}

// outward is the status that the interface shows for an unfinished job:
// processing for a list, queued for a count.
func outward(o resolution.Operation) string {
	if o.Gives() == resolution.GivesCount {
		return string(state.Queued)
	}
	return string(state.Processing)
}

// writeCreated answers a creation. A count's answer also repeats the request's
// fields at the top level, because the interface can be read either way.
func writeCreated(c *admission.Call, job state.Job) {
	e := wire.Envelope{
		Success: true, Test: c.Caller.Account.IsTest(), Id: job.ID, Status: outward(job.Operation), Requested: job.Requested,
		CallbackURL: job.CallbackURL, Payload: job.Payload,
	}
	what := "Keyword to lead resolution"
	if job.Operation.Gives() == resolution.GivesCount {
		what = "Keyword to lead count"
		e.Repeated = c.Body.Pick(repeats)
	}
	e.Message = what + " started. Ask for the result with its resolution_id."
	if job.CallbackURL != "" {
		e.Message = what + " started. The result will be sent to the callback URL."
	}
	e.Write(c.Out)
}

// repeats are the fields a count's answer repeats.
var repeats = []string{
	"keywords", "cities", "states", "zips", "lead_type", "date_start", "date_end", "limit", "limit_of_hems", "page",
	"deanonymize", "super_enrichment", "callback_url", "metadata", "job_title_inclusions", "job_title_exclusions",
}
