package dashboard

import (
	"encoding/csv"
	"errors"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/service/credential"
	"github.com/leadetl/leadetl/resolution/service/request"
	"github.com/leadetl/leadetl/resolution/service/state"
	"github.com/leadetl/leadetl/resolution/service/wire"
)

// overviewDays is how many days the overview shows.
const overviewDays = 30

// use is a sum of usage.
type use struct {
	Name, ID                            string
	Requests, Limited, Charges, Credits int64
}

func (u *use) add(more state.Usage) {
	u.Requests += more.Requests
	u.Limited += more.Limited
	u.Charges += more.Charges
	u.Credits += more.Credits
}

// sums adds up usage by the key of each line, sorted by key.
func sums(all []state.Usage, key func(state.Usage) string) []use {
	by := map[string]*use{}
	for _, u := range all {
		name := key(u)
		if by[name] == nil {
			by[name] = &use{Name: name}
		}
		by[name].add(u)
	}
	var list []use
	for _, name := range slices.Sorted(maps.Keys(by)) {
		list = append(list, *by[name])
	}
	return list
}

type overview struct {
	Balance                   state.Balance
	Days                      int
	Total                     use
	Today                     use
	Chart                     *chart
	ByOperation, ByKey, ByDay []use
}

func (a *Account) overview(v *visit) error {
	ctx := v.r.Context()
	if err := a.Desk.StoreRequests(ctx); err != nil {
		return err
	}
	o := overview{Days: overviewDays}
	today := a.Now().UTC().Truncate(24 * time.Hour)
	from := today.AddDate(0, 0, 1-overviewDays)
	balance, err := a.State.Balance(ctx, v.caller.Account.ID)
	if err != nil {
		return err
	}
	all, err := a.State.Usage(ctx, v.caller.Account.ID, from, today)
	if err != nil {
		return err
	}
	o.Balance = balance
	for _, u := range all {
		o.Total.add(u)
		if u.Day.Equal(today) {
			o.Today.add(u)
		}
	}
	o.Chart = spending(all, from, overviewDays)
	o.ByOperation = sums(all, func(u state.Usage) string { return u.Operation })
	o.ByKey = sums(all, func(u state.Usage) string { return u.KeyLabel + "\n" + u.Key })
	for i, u := range o.ByKey {
		o.ByKey[i].Name, o.ByKey[i].ID, _ = strings.Cut(u.Name, "\n")
	}
	o.ByDay = sums(all, func(u state.Usage) string { return u.Day.Format(time.DateOnly) })
	slices.Reverse(o.ByDay)
	return v.show("overview", "Overview", "", o)
}

type apiAccess struct {
	Keys   []state.Key
	Scopes []string
	Made   string // the new key, shown once
	MadeID string
	Form   map[string]string // the submitted values, when they are invalid
	Own    string            // the key that signed in
	Now    time.Time
	Test   bool
}

func (a *Account) apiAccess(v *visit) error {
	return a.showKeys(v, http.StatusOK, &page{}, apiAccess{})
}

func (a *Account) showKeys(v *visit, status int, p *page, content apiAccess) error {
	keys, err := a.State.Keys(v.r.Context(), v.owner.ID)
	if err != nil {
		return err
	}
	if v.caller.Account.IsTest() { // test keys must not manage live ones
		keys = slices.DeleteFunc(keys, func(k state.Key) bool { return !k.Test })
	}
	slices.Reverse(keys)
	content.Keys, content.Scopes, content.Own, content.Now, content.Test = keys, a.Scopes, v.caller.Key.Public, a.Now(), v.caller.Account.IsTest()
	p.Title, p.Current, p.Content = "API Access", "/settings/api-access", content
	return v.showWith("api-access", status, p)
}

func (a *Account) makeKey(v *visit) error {
	form := v.r.PostForm
	refuse := func(why string) error {
		sent := map[string]string{"name": form.Get("name"), "networks": form.Get("networks"), "days": form.Get("days")}
		return a.showKeys(v, http.StatusBadRequest, &page{Problem: why}, apiAccess{Form: sent})
	}
	now := a.Now()
	k := state.Key{Organization: v.owner.ID, Label: form.Get("name"), Test: v.caller.Account.IsTest() || form.Get("kind") == "test", Created: now}
	if strings.TrimSpace(k.Label) == "" {
		return refuse("Give the key a name, by which you will know it.")
	}
	for _, o := range form["operation"] {
		if !slices.Contains(a.Scopes, o) {
			return refuse("There is no such operation.")
		}
		k.Operations = append(k.Operations, o)
	}
	for _, text := range strings.FieldsFunc(form.Get("networks"), func(r rune) bool { return r == ',' || r == ' ' || r == '\n' || r == '\r' }) {
		n, err := netip.ParsePrefix(text)
		if addr, notAddress := netip.ParseAddr(text); notAddress == nil {
			n, err = addr.Prefix(addr.BitLen())
		}
		if err != nil {
			return refuse("A network is written as 192.0.2.0/24 or 2001:db8::/32, and several are separated by commas.")
		}
		k.Networks = append(k.Networks, n.Masked())
	}
	if text := form.Get("days"); text != "" {
		days, err := strconv.Atoi(text)
		if err != nil || days < 1 || days > 3650 {
			return refuse("A key expires after 1 to 3,650 days, or never if you leave that empty.")
		}
		k.Expires = now.AddDate(0, 0, days)
	}
	key := credential.NewKey(k.Test).Reveal()
	k.Hash, k.Hint = a.Pepper.Hash(key), credential.Hint(key)
	made, err := a.State.AddKey(v.r.Context(), k)
	if errors.Is(err, resolution.ErrInvalid) {
		return refuse("A name has at most 100 characters, all of them printable.")
	}
	if err == nil {
		err = a.Desk.Roster.Refresh(v.r.Context())
	}
	if err != nil {
		return err
	}
	a.Log.Info("key made in the dashboard", "organization", v.owner.Public, "key", made.Public, "by", v.caller.Key.Public)
	return a.showKeys(v, http.StatusOK, &page{}, apiAccess{Made: key, MadeID: made.Public})
}

func (a *Account) revokeKey(v *visit) error {
	public := v.r.PostForm.Get("key")
	keys, err := a.State.Keys(v.r.Context(), v.owner.ID)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(keys, func(k state.Key) bool { return k.Public == public && (k.Test || !v.caller.Account.IsTest()) }) {
		return wire.Refuse(wire.NotFound, "There is no such key.")
	}
	if err := a.State.RevokeKey(v.r.Context(), public, a.Now()); err != nil {
		return err
	}
	if err := a.Desk.Roster.Refresh(v.r.Context()); err != nil {
		return err
	}
	a.Log.Info("key revoked in the dashboard", "organization", v.owner.Public, "key", public, "by", v.caller.Key.Public)
	return redirect(v.w, v.r, "/account/settings/api-access")
}

// listed is how many lines a page of a list has.
const listed = 50

type activity struct {
	Jobs    []state.Job
	More    string // id of the last line, when there are older ones
	Calls   []state.Entry
	IsFirst bool
}

func (a *Account) activity(v *visit) error {
	before, ok := uuid.Nil, true
	if text := v.r.URL.Query().Get("before"); text != "" {
		if before, ok = request.ParseID(text); !ok {
			return wire.ErrNothingHere
		}
	}
	jobs, err := a.State.Jobs(v.r.Context(), v.caller.Account.ID, "", before, listed+1)
	if err != nil {
		return err
	}
	content := activity{Jobs: jobs, IsFirst: before == uuid.Nil}
	if len(jobs) > listed {
		content.Jobs = jobs[:listed]
		content.More = request.FormatID(jobs[listed-1].ID)
	}
	if content.IsFirst {
		if content.Calls, err = a.State.LatestEntries(v.r.Context(), v.caller.Account.ID, true, listed); err != nil {
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

func (a *Account) deliveries(v *visit) error { return a.showDeliveries(v, deliveries{}) }

func (a *Account) showDeliveries(v *visit, content deliveries) error {
	query := v.r.URL.Query()
	content.Which = query.Get("state")
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
	return a.showDeliveries(v, deliveries{Secrets: plain})
}

func (a *Account) ledger(v *visit) error {
	entries, err := a.State.LatestEntries(v.r.Context(), v.caller.Account.ID, false, 2*listed)
	if err != nil {
		return err
	}
	return v.show("ledger", "Ledger", "/ledger", entries)
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
