package dashboard

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/service/account"
	"github.com/leadetl/leadetl/resolution/service/state"
	"github.com/leadetl/leadetl/resolution/service/wire"
)

// keyList is one page of the keys of an organization.
type keyList struct {
	Keys   []listedKey
	Search string
	More   int64 // where older ones begin, 0 without any
	Now    time.Time
}

// listedKey is a key with those that it made.
type listedKey struct {
	state.Key
	Made []state.Key // that are valid
}

// Valid reports whether the key is accepted now.
func (l keyList) Valid(k listedKey) bool { return k.Key.Valid(l.Now) }

// MayRevoke reports whether a key can be revoked on the page: operators revoke all.
func (l keyList) MayRevoke(listedKey) bool { return true }

// IsOwn reports whether the page is shown to a key: operators have none.
func (l keyList) IsOwn(listedKey) bool { return false }

// keyReader reads the keys of an organization.
type keyReader interface {
	Keys(ctx context.Context, c state.KeyChoice) ([]state.Key, error)
	MadeKeys(ctx context.Context, key int64) ([]state.Key, error)
}

// keysOf reads the page of keys that a request asks for.
func keysOf(r *http.Request, from keyReader, organization int64, test bool, now time.Time) (l keyList, err error) {
	query := r.URL.Query()
	l.Search, l.Now = query.Get("search"), now
	which := state.KeyChoice{Organization: organization, Test: test, Search: l.Search, Limit: listed + 1}
	if text := query.Get("before"); text != "" {
		if which.Before, err = strconv.ParseInt(text, 10, 64); err != nil || which.Before < 1 {
			return l, wire.ErrNothingHere
		}
	}
	keys, err := from.Keys(r.Context(), which)
	if err != nil {
		return l, err
	}
	if len(keys) > listed {
		keys, l.More = keys[:listed], keys[listed-1].ID
	}
	for _, k := range keys {
		one := listedKey{Key: k}
		made, err := from.MadeKeys(r.Context(), k.ID)
		if err != nil {
			return l, err
		}
		for _, m := range made {
			if m.Valid(now) {
				one.Made = append(one.Made, m)
			}
		}
		l.Keys = append(l.Keys, one)
	}
	return l, nil
}

// madeKey is a key that was made, shown once.
type madeKey struct{ Key, Public string }

type apiAccess struct {
	keyList
	New          madeKey
	Scopes       []string
	Form         url.Values // as submitted, when it is invalid
	Own          state.Key  // that signed in
	Left         int64      // what it may still spend, if it is Limited
	Limited, All bool       // All: it may revoke every key
	Test         bool
}

// MayRevoke reports whether the signed-in key may revoke one.
func (p apiAccess) MayRevoke(k listedKey) bool {
	return p.All || k.ID == p.Own.ID || k.Maker == p.Own.ID
}

// IsOwn reports whether a key is the one that signed in.
func (p apiAccess) IsOwn(k listedKey) bool { return k.ID == p.Own.ID }

func (a *Account) apiAccess(v *visit) error {
	var content apiAccess
	content.New, _ = v.noted().(madeKey)
	return a.showKeys(v, http.StatusOK, &page{}, content)
}

func (a *Account) showKeys(v *visit, status int, p *page, content apiAccess) (err error) {
	content.Test = v.caller.Account.IsTest() // test keys must not manage live ones
	if content.keyList, err = keysOf(v.r, a.State, v.owner.ID, content.Test, a.Now()); err != nil {
		return err
	}
	content.Own = *v.caller.Key
	if content.Left, content.Limited, err = a.Desk.Keys.State.KeyLeft(v.r.Context(), content.Own.ID); err != nil {
		return err
	}
	content.All = content.Own.MakesKeys && !content.Own.Narrowed()
	for _, o := range account.Scopes() {
		if content.Own.May(o) {
			content.Scopes = append(content.Scopes, o)
		}
	}
	p.Title, p.Current, p.Content = "API Access", "/settings/api-access", content
	return v.showWith("api-access", status, p)
}

func (a *Account) makeKey(v *visit) error {
	asked, why := newKey(v.r.PostForm)
	asked.Organization, asked.Test = v.owner.ID, asked.Test || v.caller.Account.IsTest()
	var key string
	var made state.Key
	var err error
	if why == "" {
		key, made, err = a.Desk.Keys.Make(v.r.Context(), v.caller.Key, asked)
	}
	if p, is := errors.AsType[*wire.Problem](err); is && p.Kind == wire.ValidationError {
		for _, field := range p.Fields {
			why += field.Detail + " "
		}
	}
	if errors.Is(err, resolution.ErrInvalid) {
		why = "A name has at most 100 characters, all of them printable, and a spending limit at most a trillion credits."
	}
	if why != "" {
		return a.showKeys(v, http.StatusBadRequest, &page{Problem: why}, apiAccess{Form: v.r.PostForm})
	}
	if err == nil {
		err = a.Desk.Roster.Refresh(v.r.Context())
	}
	if err != nil {
		return err
	}
	a.Log.Info("key made in the dashboard", "organization", v.owner.Public, "key", made.Public, "by", v.caller.Key.Public)
	return v.redirectOnce("/account/settings/api-access", madeKey{key, made.Public})
}

// newKey reads the form of a new key. why says what is wrong with it.
func newKey(form url.Values) (k account.NewKey, why string) {
	k = account.NewKey{Label: form.Get("name"), Test: form.Get("kind") == "test", Operations: form["operation"]}
	if strings.TrimSpace(k.Label) == "" {
		return k, "Give the key a name, by which you will know it."
	}
	for _, text := range strings.FieldsFunc(form.Get("networks"), func(r rune) bool { return r == ',' || r == ' ' || r == '\n' || r == '\r' }) {
		n, err := netip.ParsePrefix(text)
		if addr, notAddress := netip.ParseAddr(text); notAddress == nil {
			n, err = addr.Prefix(addr.BitLen())
		}
		if err != nil {
			return k, "A network is written as 192.0.2.0/24 or 2001:db8::/32, and several are separated by commas."
		}
		k.Networks = append(k.Networks, n)
	}
	if text := form.Get("days"); text != "" {
		days, err := strconv.Atoi(text)
		if err != nil || days < 1 || days > 3650 {
			return k, "A key expires after 1 to 3,650 days, or never if you leave that empty."
		}
		k.Life = time.Duration(days) * 24 * time.Hour
	}
	if text := form.Get("limit"); text != "" {
		credits, err := strconv.ParseInt(text, 10, 64)
		if err != nil || credits < 1 {
			return k, "A spending limit is a number of credits, or none if you leave it empty."
		}
		k.Limit = credits
	}
	if text := form.Get("makes_keys"); text != "" {
		makes := text == "yes"
		k.MakesKeys = &makes
	}
	return k, ""
}

func (a *Account) revokeKey(v *visit) error {
	form := v.r.PostForm
	if _, err := a.Desk.Keys.Revoke(v.r.Context(), v.caller.Key, v.owner.ID, form.Get("key"), form.Get("made") != ""); err != nil {
		return err
	}
	if err := a.Desk.Roster.Refresh(v.r.Context()); err != nil {
		return err
	}
	a.Log.Info("key revoked in the dashboard", "organization", v.owner.Public, "key", form.Get("key"), "with_made", form.Get("made") != "", "by", v.caller.Key.Public)
	return redirect(v.w, v.r, "/account/settings/api-access")
}
