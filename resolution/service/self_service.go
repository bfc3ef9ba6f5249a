package service

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/leadetl/leadetl/internal/figures"
	"github.com/leadetl/leadetl/resolution/service/dashboard"
	"github.com/leadetl/leadetl/resolution/service/limit"
	"github.com/leadetl/leadetl/resolution/service/request"
	"github.com/leadetl/leadetl/resolution/service/state"
	"github.com/leadetl/leadetl/resolution/service/wire"
)

// reply answers a call about the caller's own account.
func (c *call) reply(answer any) (*wire.Reply, error) {
	wire.WriteJSON(c.out, answer)
	return &wire.Reply{Body: c.out.Bytes()}, nil
}

// own are the members that every answer about an account begins with.
type own struct {
	Success bool `json:"success"`
	Test    bool `json:"test,omitempty"`
}

func (c *call) own() own { return own{true, c.account.isTest()} }

// ownBalance answers with the credits of the caller, as the ledger has them now.
func (s *Service) ownBalance(c *call) (*wire.Reply, error) {
	b, err := s.state.Balance(c.request.Context(), c.account.id)
	if err != nil {
		return nil, err
	}
	return c.reply(struct {
		own
		Available int64 `json:"available"`
		Reserved  int64 `json:"reserved"`
	}{c.own(), b.Available, b.Reserved})
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

// ownUsage answers with what the caller used, by day, operation and key.
func (s *Service) ownUsage(c *call) (*wire.Reply, error) {
	from, to, problems := usageDays(c.request.URL.Query(), c.began)
	if len(problems) > 0 {
		return nil, wire.Invalid(problems)
	}
	if err := s.countRequests(c.request.Context()); err != nil {
		return nil, err
	}
	rows, err := s.state.Usage(c.request.Context(), c.account.id, from, to)
	if err != nil {
		return nil, err
	}
	list := []usageView{}
	for _, u := range rows {
		list = append(list, usageView{u.Day.Format(time.DateOnly), u.Operation, u.Key, u.KeyLabel, u.Requests, u.Limited, u.Charges, u.Credits})
	}
	return c.reply(struct {
		own
		From  string      `json:"date_start"`
		To    string      `json:"date_end"`
		Usage []usageView `json:"usage"`
	}{c.own(), from.Format(time.DateOnly), to.Format(time.DateOnly), list})
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

// pageOf reads the limit of a list and the state to filter it by.
func pageOf(query url.Values, states ...string) (limit int, which string, problems []request.Problem) {
	limit, which = 100, query.Get("status")
	if text := query.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > 1000 {
			problems = append(problems, request.Problem{Pointer: "/limit", Code: "out_of_range", Detail: "must be from 1 to 1000"})
		}
		limit = n
	}
	if which != "" && !slices.Contains(states, which) {
		problems = append(problems, request.Problem{Pointer: "/status", Code: "invalid_value", Detail: "must be one of the states that are listed"})
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

// ownResolutions lists the caller's keyword searches, the newest first.
func (s *Service) ownResolutions(c *call) (*wire.Reply, error) {
	query := c.request.URL.Query()
	limit, status, problems := pageOf(query, string(state.Queued), string(state.Processing), string(state.Completed), string(state.Failed), string(state.Cancelled))
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
	jobs, err := s.state.Jobs(c.request.Context(), c.account.id, state.Status(status), before, limit+1)
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
	return c.reply(struct {
		own
		Resolutions []resolutionView `json:"resolutions"`
		HasMore     bool             `json:"has_more"`
	}{c.own(), list, more})
}

// cancelOwn ends an unfinished keyword search of the caller and releases its
// credits.
func (s *Service) cancelOwn(c *call) (*wire.Reply, error) {
	id, _, problems := request.Result(c.object)
	if len(problems) > 0 {
		return nil, wire.Invalid(problems)
	}
	if err := s.cancelJob(c.request.Context(), c.account.id, id); err != nil {
		return nil, err
	}
	if _, err := s.freshBalance(c.request.Context(), c.account); err != nil {
		return nil, err
	}
	return s.remember(c, struct {
		own
		ID     string       `json:"id"`
		Status state.Status `json:"status"`
	}{c.own(), request.FormatID(id), state.Cancelled})
}

func (s *Service) cancelJob(ctx context.Context, organization int64, id uuid.UUID) error {
	job, err := s.state.FindJob(ctx, organization, id)
	if err == nil {
		err = s.operator.Cancel(ctx, job)
	}
	switch {
	case errors.Is(err, state.ErrNotFound):
		return wire.Refuse(wire.ResolutionNotFound, "There is no resolution of this id.")
	case errors.Is(err, state.ErrExpired), errors.Is(err, state.ErrFinished):
		return wire.Refuse(wire.AlreadyFinished, "The resolution is finished and cannot be cancelled.")
	}
	return err
}

// remember answers a change, and stores the answer under its Idempotency-Key.
func (s *Service) remember(c *call, answer any) (*wire.Reply, error) {
	r, err := c.reply(answer)
	if err == nil && c.key != nil {
		_, err = s.state.Settle(c.request.Context(), state.Charge{Organization: c.account.id, Reply: c.key.reply(r.Body), At: s.now()})
	}
	return r, err
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

// ownCallbacks lists the caller's callbacks, the newest first.
func (s *Service) ownCallbacks(c *call) (*wire.Reply, error) {
	query := c.request.URL.Query()
	limit, status, problems := pageOf(query, state.Pending, state.Delivered, state.Dead)
	if len(problems) > 0 {
		return nil, wire.Invalid(problems)
	}
	all, err := s.state.Deliveries(c.request.Context(), c.account.id, status, query.Get("before"), limit+1)
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
	return c.reply(struct {
		own
		Callbacks []callbackView `json:"callbacks"`
		HasMore   bool           `json:"has_more"`
	}{c.own(), list, more})
}

// replayOwn posts a callback of the caller again, under its old webhook id.
func (s *Service) replayOwn(c *call) (*wire.Reply, error) {
	webhook, problems := request.Replay(c.object)
	if len(problems) > 0 {
		return nil, wire.Invalid(problems)
	}
	if err := s.replay(c.request.Context(), c.account.id, webhook); err != nil {
		return nil, err
	}
	return s.remember(c, struct {
		own
		ID     string `json:"webhook_id"`
		Status string `json:"status"`
	}{c.own(), webhook, state.Pending})
}

func (s *Service) replay(ctx context.Context, organization int64, webhook string) error {
	err := s.state.ReplayDelivery(ctx, organization, webhook, s.now())
	switch {
	case errors.Is(err, state.ErrNotFound):
		return wire.Refuse(wire.NotFound, "There is no callback of this webhook_id.")
	case errors.Is(err, state.ErrGone):
		return wire.Refuse(wire.ResolutionExpired, "The body of this callback is no longer kept.")
	case err != nil:
		return err
	}
	s.sender.Wake()
	return nil
}

// dashboardRate is how often an organization may load pages of the dashboard.
var dashboardRate = limit.Rate{Events: 120, Per: time.Minute, Burst: 60}

// newDashboard makes the dashboard of organizations.
func (s *Service) newDashboard() *dashboard.Account {
	pages := limit.New(dashboardRate)
	return dashboard.New(dashboard.Account{
		State: s.state, Pepper: s.options.Pepper, Now: s.now, Log: s.log, Scopes: Scopes(),
		SignIn: s.signIn, Again: s.signedIn,
		Admit: func(c dashboard.Caller) error {
			if d := pages.Take(c.Public, s.now()); !d.Allowed {
				p := wire.Refuse(wire.RateLimited, "The organization loads pages faster than %s. Wait a moment.", d.Rate)
				p.RetryAfter = d.RetryAfter
				return p
			}
			return nil
		},
		Secrets: func(organization int64) (plain []string) {
			for _, secret := range s.rosters.callbackSecrets(organization) {
				plain = append(plain, secret.Reveal())
			}
			return plain
		},
		Cancel: func(ctx context.Context, organization int64, resolution string) error {
			id, ok := request.ParseID(resolution)
			if !ok {
				return wire.ErrNothingHere
			}
			return s.cancelJob(ctx, organization, id)
		},
		Replay:  s.replay,
		Changed: s.rosters.refresh, Counted: s.countRequests,
	})
}

// signIn returns the caller that a key belongs to. Wrong keys count against
// their address.
func (s *Service) signIn(r *http.Request, key string) (dashboard.Caller, error) {
	c := &call{request: r, began: s.now(), header: http.Header{}, route: s.paths["/account/balance"]}
	if err := s.authenticateWith(c, key); err != nil {
		return dashboard.Caller{}, err
	}
	if c.apiKey == nil { // a token is not for browsers
		return dashboard.Caller{}, errInvalid
	}
	return s.caller(c), nil
}

// signedIn returns a caller as it is now, if its key is still valid here.
func (s *Service) signedIn(r *http.Request, before dashboard.Caller) (dashboard.Caller, error) {
	c := &call{request: r, began: s.now(), route: s.paths["/account/balance"]}
	k, found := s.rosters.present.Load().keys[before.Hash]
	if !found || !k.record.Revoked.IsZero() || !k.record.Expires.IsZero() && !c.began.Before(k.record.Expires) {
		return dashboard.Caller{}, errInvalid
	}
	c.account, c.apiKey = k.account, k.record
	if err := s.permit(c); err != nil {
		return dashboard.Caller{}, err
	}
	return s.caller(c), nil
}

func (s *Service) caller(c *call) dashboard.Caller {
	a := c.account
	o := dashboard.Caller{Organization: a.id, Owner: a.owner, Public: a.public, Test: a.isTest(), Key: c.apiKey.Public, Hash: c.apiKey.Hash}
	if owner := s.rosters.present.Load().byID[a.owner]; owner != nil {
		o.Name, o.Public = *owner.name.Load(), owner.public
	}
	return o
}

// newConsole makes the pages of operators.
func (s *Service) newConsole() *dashboard.Operator {
	o := &s.options
	limits := []dashboard.Setting{
		{Name: "single-record calls of an organization", Value: o.Limits.Single.String()},
		{Name: "new keyword searches of an organization", Value: o.Limits.Create.String()},
		{Name: "results and account calls of an organization", Value: o.Limits.Result.String()},
		{Name: "wrong credentials from an address", Value: o.Limits.FailedAuth.String()},
		{Name: "unfinished keyword searches of an organization", Value: strconv.Itoa(o.Limits.ActiveJobs)},
		{Name: "bytes kept of an organization in a day", Value: figures.Size(o.Limits.KeptBytes)},
		{Name: "keyword searches at work", Value: strconv.Itoa(o.JobWorkers)},
		{Name: "callbacks at work, and to one receiver", Value: strconv.Itoa(o.CallbackConcurrency) + ", " + strconv.Itoa(o.CallbackPerReceiver)},
	}
	var prices []dashboard.Setting
	for _, name := range slices.Sorted(maps.Keys(o.Costs)) {
		prices = append(prices, dashboard.Setting{Name: name, Value: strconv.FormatInt(o.Costs[name], 10)})
	}
	return dashboard.NewOperator(dashboard.Operator{
		State: s.state, Key: o.SystemKey, Now: s.now, Log: s.log, Limits: limits, Prices: prices,
		Wrong: s.countGuess,
		Names: s.rosters.names, Credited: s.rosters.credited, Replay: s.replay,
	})
}
