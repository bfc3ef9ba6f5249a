package dashboard

import (
	"encoding/csv"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/service/request"
	"github.com/leadetl/leadetl/resolution/service/state"
	"github.com/leadetl/leadetl/resolution/service/wire"
)

// listed is how many lines a page of a list has.
const listed = 50

type activity struct {
	Jobs    []state.Job
	More    string // id of the last line, when there are older ones
	Which   string
	Totals  []state.Searches
	Calls   []state.Entry
	IsFirst bool
}

func (a *Account) activity(v *visit) error {
	query := v.r.URL.Query()
	content := activity{Which: query.Get("status")}
	before, ok := uuid.Nil, true
	if text := query.Get("before"); text != "" {
		before, ok = request.ParseID(text)
	}
	switch state.Status(content.Which) {
	case "", state.Queued, state.Processing, state.Completed, state.Failed, state.Cancelled:
	default:
		ok = false
	}
	if !ok {
		return wire.ErrNothingHere
	}
	ctx, organization := v.r.Context(), v.caller.Account.ID
	var err error
	if content.Jobs, err = a.State.Jobs(ctx, organization, state.Status(content.Which), before, listed+1); err != nil {
		return err
	}
	if len(content.Jobs) > listed {
		content.Jobs = content.Jobs[:listed]
		content.More = request.FormatID(content.Jobs[listed-1].ID)
	}
	if content.Totals, err = a.State.Searches(ctx, organization); err != nil {
		return err
	}
	if content.IsFirst = before == uuid.Nil && content.Which == ""; content.IsFirst {
		if content.Calls, _, err = a.State.LatestEntries(ctx, organization, state.Entries{Single: true}, listed); err != nil {
			return err
		}
	}
	return v.show("activity", "Resolutions", "/activity", content)
}

func (a *Account) cancel(v *visit) error {
	id, ok := request.ParseID(v.r.PostForm.Get("resolution"))
	if !ok {
		return wire.ErrNothingHere
	}
	if err := a.Desk.CancelOf(v.r.Context(), v.caller.Account.ID, id); err != nil {
		return err
	}
	return redirect(v.w, v.r, "/account/activity")
}

type deliveries struct {
	All     []state.Delivery
	More    string
	Which   string
	Secrets []string // shown on request
}

func (a *Account) deliveries(v *visit) error {
	query := v.r.URL.Query()
	content := deliveries{Which: query.Get("state")}
	content.Secrets, _ = v.noted().([]string)
	switch content.Which {
	case "", state.Pending, state.Delivered, state.Dead:
	default:
		return wire.ErrNothingHere
	}
	all, err := a.State.Deliveries(v.r.Context(), v.caller.Account.ID, content.Which, query.Get("before"), listed+1)
	if err != nil {
		return err
	}
	content.All = all
	if len(all) > listed {
		content.All, content.More = all[:listed], all[listed-1].WebhookID
	}
	return v.show("deliveries", "Callbacks", "/deliveries", content)
}

func (a *Account) replay(v *visit) error {
	if err := a.Desk.Replay(v.r.Context(), v.caller.Account.ID, v.r.PostForm.Get("webhook")); err != nil {
		return err
	}
	return redirect(v.w, v.r, "/account/deliveries")
}

func (a *Account) secret(v *visit) error {
	var plain []string
	for _, secret := range a.Desk.Roster.CallbackSecrets(v.owner.ID) {
		plain = append(plain, secret.Reveal())
	}
	return v.redirectOnce("/account/deliveries", plain)
}

type ledger struct {
	Entries         []state.Entry
	More            int64 // where older ones begin, 0 without any
	Kind, Operation string
	Kinds           []state.Kind
	Spent           []state.Usage // by operation
	SpentHere       int64         // on the chosen operation, or all
	Granted         int64
	Balance         state.Balance
}

func (a *Account) ledger(v *visit) error {
	query := v.r.URL.Query()
	l := ledger{
		Kind: query.Get("kind"), Operation: query.Get("operation"),
		Kinds: []state.Kind{state.Grant, state.Adjust, state.Reserve, state.Capture, state.Release},
	}
	which := state.Entries{Kind: state.Kind(l.Kind), Operation: resolution.Operation(l.Operation)}
	if text := query.Get("before"); text != "" {
		var err error
		if which.Before, err = strconv.ParseInt(text, 10, 64); err != nil || which.Before < 1 {
			return wire.ErrNothingHere
		}
	}
	ctx, organization := v.r.Context(), v.caller.Account.ID
	var err error
	if l.Entries, l.More, err = a.State.LatestEntries(ctx, organization, which, 2*listed); err != nil {
		return err
	}
	if l.Balance, err = a.State.Balance(ctx, organization); err != nil {
		return err
	}
	if l.Spent, err = a.State.Spent(ctx, organization); err != nil {
		return err
	}
	l.Granted = l.Balance.Available + l.Balance.Reserved // and all that was spent
	for _, u := range l.Spent {
		l.Granted += u.Credits
		if l.Operation == "" || l.Operation == u.Operation {
			l.SpentHere += u.Credits
		}
	}
	return v.show("ledger", "Ledger", "/ledger", l)
}

// ledgerFile answers with the whole ledger, the oldest entry first.
func (a *Account) ledgerFile(v *visit) error {
	h := v.w.Header()
	h.Set("Content-Type", "text/csv; charset=utf-8")
	h.Set("Content-Disposition", `attachment; filename="ledger-`+v.owner.Public+`.csv"`)
	to := csv.NewWriter(v.w)
	_ = to.Write([]string{"entry", "time", "kind", "credits", "available", "reserved", "operation", "resolution_id", "key", "key_name", "note"})
	for after := int64(0); ; {
		entries, err := a.State.Ledger(v.r.Context(), v.caller.Account.ID, after, 1000)
		if err != nil {
			panic(http.ErrAbortHandler) // part of the answer is sent: cut it off
		}
		for _, e := range entries {
			id := ""
			if e.Resolution != uuid.Nil {
				id = request.FormatID(e.Resolution)
			}
			_ = to.Write([]string{
				strconv.FormatInt(e.Seq, 10), e.At.Format(wire.TimeFormat), string(e.Kind), strconv.FormatInt(e.Credits, 10), strconv.FormatInt(e.Available, 10),
				strconv.FormatInt(e.Reserved, 10), string(e.Operation), id, e.Key, cell(e.KeyLabel), cell(e.Note),
			})
			after = e.Seq
		}
		to.Flush()
		_ = http.NewResponseController(v.w).SetWriteDeadline(time.Now().Add(time.Minute)) // extends the deadline for the next part, because the file may be long
		if len(entries) < 1000 {
			return nil
		}
	}
}

// cell prevents a spreadsheet from reading a text as a formula.
// Source: owasp.org, CSV Injection.
func cell(text string) string {
	if text != "" && strings.ContainsRune("=+-@\t\r", rune(text[0])) {
		return "'" + text
	}
	return text
}
