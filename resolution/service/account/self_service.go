package account

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/leadetl/leadetl/resolution/service/limit"
	"github.com/leadetl/leadetl/resolution/service/request"
	"github.com/leadetl/leadetl/resolution/service/state"
	"github.com/leadetl/leadetl/resolution/service/wire"
)

// State is what organizations see and change of their own account.
type State interface {
	Balance(ctx context.Context, organization int64) (state.Balance, error)
	Usage(ctx context.Context, organization int64, from, to time.Time) ([]state.Usage, error)
	CountRequests(ctx context.Context, counts []state.Requests) error
	Jobs(ctx context.Context, organization int64, status state.Status, before uuid.UUID, limit int) ([]state.Job, error)
	FindJob(ctx context.Context, organization int64, id uuid.UUID) (*state.Job, error)
	CancelJob(ctx context.Context, id uuid.UUID, at time.Time, callback *state.Callback) error
	Deliveries(ctx context.Context, organization int64, state, before string, limit int) ([]state.Delivery, error)
	ReplayDelivery(ctx context.Context, organization int64, webhookID string, now time.Time) error
}

// Desk answers what organizations ask about their own account, and does what
// the pages of the dashboard and operators do with one. All fields but Requests
// and Rates are required.
type Desk struct {
	State    State
	Roster   *Roster
	Now      func() time.Time
	Posted   func() // called after a callback became due
	Keys     Keys
	Requests Requests
	// Rates are how often an organization may call, by the class of the call.
	Rates map[string]limit.Rate
}

// Asked is a request about the caller's own account.
type Asked struct {
	Caller Caller
	Query  url.Values
	Body   request.Object
	At     time.Time
}

// own are the members that every answer about an account begins with.
type own struct {
	Success bool `json:"success"`
	Test    bool `json:"test,omitempty"`
}

func (a Asked) own() own { return own{true, a.Caller.Account.IsTest()} }

type rateView struct {
	Requests int     `json:"requests"`
	Seconds  float64 `json:"seconds"`
	Burst    int     `json:"burst"`
}

// Balance answers with the credits of the caller, as the ledger has them now, and with how
// often it may call.
func (d *Desk) Balance(ctx context.Context, a Asked) (any, error) {
	b, err := d.State.Balance(ctx, a.Caller.Account.ID)
	rates := map[string]rateView{}
	for class, r := range d.Rates {
		rates[class] = rateView{r.Events, r.Per.Seconds(), r.Burst}
	}
	return struct {
		own
		Available int64               `json:"available"`
		Reserved  int64               `json:"reserved"`
		Rates     map[string]rateView `json:"rate_limits"`
	}{a.own(), b.Available, b.Reserved, rates}, err
}

// maxUsageDays is the most days that one call can ask usage for.
const maxUsageDays = 366

type usageView struct {
	Date      string `json:"date"`
	Operation string `json:"operation"`
	Key       string `json:"key,omitempty"` // public id
	KeyName   string `json:"key_name,omitempty"`
	Requests  int64  `json:"requests"`
	Limited   int64  `json:"rate_limited"`
	Charges   int64  `json:"charges"`
	Credits   int64  `json:"credits"`
}

// Usage answers with what the caller used, by day, operation and key.
func (d *Desk) Usage(ctx context.Context, a Asked) (any, error) {
	from, to, problems := usageDays(a.Query, a.At)
	if len(problems) > 0 {
		return nil, wire.Invalid(problems)
	}
	if err := d.StoreRequests(ctx); err != nil {
		return nil, err
	}
	rows, err := d.State.Usage(ctx, a.Caller.Account.ID, from, to)
	if err != nil {
		return nil, err
	}
	list := []usageView{}
	for _, u := range rows {
		list = append(list, usageView{u.Day.Format(time.DateOnly), u.Operation, u.Key, u.KeyLabel, u.Requests, u.Limited, u.Charges, u.Credits})
	}
	return struct {
		own
		From  string      `json:"date_start"`
		To    string      `json:"date_end"`
		Usage []usageView `json:"usage"`
	}{a.own(), from.Format(time.DateOnly), to.Format(time.DateOnly), list}, nil
}

// usageDays are the days that a query asks for, the last 30 by default.
func usageDays(query url.Values, now time.Time) (from, to time.Time, problems []request.Problem) {
	read := func(name string, or time.Time) time.Time {
		text := query.Get(name)
		if text == "" {
			return or
		}
		day, err := time.Parse(time.DateOnly, text)
		if err != nil {
			problems = append(problems, request.Problem{Pointer: "/" + name, Code: "invalid_time", Detail: "must be a date, YYYY-MM-DD"})
		}
		return day
	}
	to = read("date_end", now.UTC().Truncate(24*time.Hour))
	from = read("date_start", to.AddDate(0, 0, -29))
	if len(problems) == 0 && (from.After(to) || to.Sub(from) >= maxUsageDays*24*time.Hour) {
		problems = append(problems, request.Problem{Pointer: "/date_start", Code: "out_of_range", Detail: "must be at most date_end, and at most a year before it"})
	}
	return from, to, problems
}

// PageOf reads the limit of a list and the state to filter it by, of which name is the parameter.
func PageOf(query url.Values, name string, states ...string) (limit int, which string, problems []request.Problem) {
	limit, which = 100, query.Get(name)
	if text := query.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > 1000 {
			problems = append(problems, request.Problem{Pointer: "/limit", Code: "out_of_range", Detail: "must be from 1 to 1000"})
		}
		limit = n
	}
	if which != "" && !slices.Contains(states, which) {
		problems = append(problems, request.Problem{Pointer: "/" + name, Code: "invalid_value", Detail: "must be one of the states that are listed"})
	}
	return limit, which, problems
}

type resolutionView struct {
	ID          string `json:"id"`
	Operation   string `json:"operation"`
	Status      string `json:"status"`
	Requested   string `json:"requested_at"`
	Finished    string `json:"finished_at,omitempty"`
	CallbackURL string `json:"callback_url,omitempty"`
	Reserved    int64  `json:"credits_reserved"`
	Spent       int64  `json:"credits_spent"`
	Error       string `json:"error_code,omitempty"`
}

// Resolutions lists the caller's keyword searches, the newest first.
func (d *Desk) Resolutions(ctx context.Context, a Asked) (any, error) {
	query := a.Query
	limit, status, problems := PageOf(query, "status", string(state.Queued), string(state.Processing), string(state.Completed), string(state.Failed), string(state.Cancelled))
	before := uuid.Nil
	if text := query.Get("before"); text != "" {
		var ok bool
		if before, ok = request.ParseID(text); !ok {
			problems = append(problems, request.Problem{Pointer: "/before", Code: "invalid_id", Detail: "must be the id of a resolution"})
		}
	}
	if len(problems) > 0 {
		return nil, wire.Invalid(problems)
	}
	jobs, err := d.State.Jobs(ctx, a.Caller.Account.ID, state.Status(status), before, limit+1)
	if err != nil {
		return nil, err
	}
	more := len(jobs) > limit
	list := []resolutionView{}
	for _, j := range jobs[:min(len(jobs), limit)] {
		v := resolutionView{
			ID: request.FormatID(j.ID), Operation: string(j.Operation), Status: string(j.Status), Requested: j.Requested.Format(wire.TimeFormat),
			CallbackURL: j.CallbackURL, Reserved: j.Reserved, Spent: j.Spent, Error: j.Error,
		}
		if j.Status.Finished() {
			v.Finished, v.Reserved = j.Finished.Format(wire.TimeFormat), 0
		}
		list = append(list, v)
	}
	return struct {
		own
		Resolutions []resolutionView `json:"resolutions"`
		HasMore     bool             `json:"has_more"`
	}{a.own(), list, more}, nil
}

// CancelResolution ends an unfinished keyword search of the caller and releases its
// credits.
func (d *Desk) CancelResolution(ctx context.Context, a Asked) (any, error) {
	id, _, problems := request.Result(a.Body)
	if len(problems) > 0 {
		return nil, wire.Invalid(problems)
	}
	if err := d.CancelOf(ctx, a.Caller.Account.ID, id); err != nil {
		return nil, err
	}
	if _, err := d.Roster.FreshBalance(ctx, a.Caller.Account); err != nil {
		return nil, err
	}
	return struct {
		own
		ID     string       `json:"id"`
		Status state.Status `json:"status"`
	}{a.own(), request.FormatID(id), state.Cancelled}, nil
}

// CancelOf ends an unfinished keyword search of an organization.
func (d *Desk) CancelOf(ctx context.Context, organization int64, id uuid.UUID) error {
	job, err := d.State.FindJob(ctx, organization, id)
	if err == nil {
		err = d.Cancel(ctx, job)
	}
	if errors.Is(err, state.ErrNotFound) {
		return wire.Refuse(wire.ResolutionNotFound, "There is no resolution of this id.")
	}
	return Refused(err)
}

// Cancel ends an unfinished job and posts its callback. For a finished job it
// returns state.ErrFinished.
func (d *Desk) Cancel(ctx context.Context, job *state.Job) error {
	at := d.Now()
	if job.Status.Finished() {
		return state.ErrFinished
	}
	job.Status = state.Cancelled
	post, err := d.Roster.FinishedCallback(job, at)
	if err != nil {
		return err
	}
	if err := d.State.CancelJob(ctx, job.ID, at, post); err != nil {
		return err
	}
	if post != nil {
		d.Posted()
	}
	return nil
}

type callbackView struct {
	ID         string `json:"webhook_id"`
	Resolution string `json:"resolution_id"`
	Receiver   string `json:"receiver"`
	Status     string `json:"status"`
	Attempts   int    `json:"attempts"`
	Answer     int    `json:"last_status,omitempty"`
	Failure    string `json:"last_failure,omitempty"`
	Created    string `json:"created_at"`
	Due        string `json:"next_attempt_at,omitempty"`
	Finished   string `json:"finished_at,omitempty"`
}

// Callbacks lists the caller's callbacks, the newest first.
func (d *Desk) Callbacks(ctx context.Context, a Asked) (any, error) {
	query := a.Query
	limit, status, problems := PageOf(query, "status", state.Pending, state.Delivered, state.Dead)
	if len(problems) > 0 {
		return nil, wire.Invalid(problems)
	}
	all, err := d.State.Deliveries(ctx, a.Caller.Account.ID, status, query.Get("before"), limit+1)
	if err != nil {
		return nil, err
	}
	more := len(all) > limit
	list := []callbackView{}
	for _, d := range all[:min(len(all), limit)] {
		v := callbackView{
			ID: d.WebhookID, Resolution: request.FormatID(d.Resolution), Receiver: d.Receiver, Status: d.State, Attempts: d.Attempts,
			Answer: d.Status, Failure: d.Failure, Created: d.Created.Format(wire.TimeFormat),
		}
		if d.State == state.Pending {
			v.Due = d.Due.Format(wire.TimeFormat)
		} else {
			v.Finished = d.Finished.Format(wire.TimeFormat)
		}
		list = append(list, v)
	}
	return struct {
		own
		Callbacks []callbackView `json:"callbacks"`
		HasMore   bool           `json:"has_more"`
	}{a.own(), list, more}, nil
}

// ReplayCallback posts a callback of the caller again, under its old webhook id.
func (d *Desk) ReplayCallback(ctx context.Context, a Asked) (any, error) {
	webhook, problems := request.Replay(a.Body)
	if len(problems) > 0 {
		return nil, wire.Invalid(problems)
	}
	if err := d.Replay(ctx, a.Caller.Account.ID, webhook); err != nil {
		return nil, err
	}
	return struct {
		own
		ID     string `json:"webhook_id"`
		Status string `json:"status"`
	}{a.own(), webhook, state.Pending}, nil
}

// Replay makes a callback due, of any organization if organization is 0.
func (d *Desk) Replay(ctx context.Context, organization int64, webhook string) error {
	err := d.State.ReplayDelivery(ctx, organization, webhook, d.Now())
	if errors.Is(err, state.ErrNotFound) {
		return wire.Refuse(wire.NotFound, "There is no callback of this webhook_id.")
	}
	if err != nil {
		return Refused(err)
	}
	d.Posted()
	return nil
}

// StoreRequests stores the requests counted so far.
func (d *Desk) StoreRequests(ctx context.Context) error {
	counts := d.Requests.Take()
	if len(counts) == 0 {
		return nil
	}
	err := d.State.CountRequests(ctx, counts)
	if err != nil {
		d.Requests.Return(counts)
	}
	return err
}
