package dashboard

import (
	"errors"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/leadetl/leadetl/internal/figures"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/service/credential"
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
	Total, Today, Month       use
	MonthName                 string
	Left                      string // how long the credits last, in words
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
	month := today.AddDate(0, 0, 1-today.Day())
	o.MonthName = month.Format("January")
	balance, err := a.State.Balance(ctx, v.caller.Account.ID)
	if err != nil {
		return err
	}
	all, err := a.State.Usage(ctx, v.caller.Account.ID, earlier(from, month), today)
	if err != nil {
		return err
	}
	o.Balance = balance
	for _, u := range all {
		if !u.Day.Before(month) {
			o.Month.add(u)
		}
	}
	all = slices.DeleteFunc(all, func(u state.Usage) bool { return u.Day.Before(from) })
	o.Left = left(balance.Available, all, today)
	for _, u := range all {
		o.Total.add(u)
		if u.Day.Equal(today) {
			o.Today.add(u)
		}
	}
	o.Chart = spending(all, from, overviewDays, "operation")
	o.ByOperation = sums(all, func(u state.Usage) string { return u.Operation })
	o.ByKey = sums(all, func(u state.Usage) string { return u.KeyLabel + "\n" + u.Key })
	for i, u := range o.ByKey {
		o.ByKey[i].Name, o.ByKey[i].ID, _ = strings.Cut(u.Name, "\n")
	}
	o.ByDay = sums(all, func(u state.Usage) string { return u.Day.Format(time.DateOnly) })
	slices.Reverse(o.ByDay)
	return v.show("overview", "Overview", "", o)
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// left says how long credits last if they are spent as they were since the first day of
// spending, "" without any spending.
func left(credits int64, all []state.Usage, today time.Time) string {
	var spent int64
	first := today
	for _, u := range all {
		if spent += u.Credits; u.Credits > 0 {
			first = earlier(first, u.Day)
		}
	}
	if spent == 0 {
		return ""
	}
	const most = 1000
	days := float64(credits) * (today.Sub(first).Hours()/24 + 1) / float64(spent)
	if days > most {
		return "more than 1,000 days left at this pace"
	}
	return figures.Plural(int64(days), "day") + " left at this pace"
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
		sent := map[string]string{"name": form.Get("name"), "networks": form.Get("networks"), "days": form.Get("days"), "limit": form.Get("limit")}
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
	if text := form.Get("limit"); text != "" {
		credits, err := strconv.ParseInt(text, 10, 64)
		if err != nil || credits < 1 {
			return refuse("A spending limit is a number of credits, or none if you leave it empty.")
		}
		k.Limit = credits
	}
	key := credential.NewKey(k.Test).Reveal()
	k.Hash, k.Hint = a.Pepper.Hash(key), credential.Hint(key)
	made, err := a.State.AddKey(v.r.Context(), k)
	if errors.Is(err, resolution.ErrInvalid) {
		return refuse("A name has at most 100 characters, all of them printable, and a spending limit at most a trillion credits.")
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
