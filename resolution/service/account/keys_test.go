package account_test

import (
	"errors"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leadetl/leadetl/resolution/service/account"
	"github.com/leadetl/leadetl/resolution/service/credential"
	"github.com/leadetl/leadetl/resolution/service/request"
	"github.com/leadetl/leadetl/resolution/service/sqlite"
	"github.com/leadetl/leadetl/resolution/service/state"
	"github.com/leadetl/leadetl/resolution/service/wire"
)

var now = time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)

const day = 24 * time.Hour

// organization is one with credits, and who makes its keys.
type organization struct {
	*testing.T
	store *sqlite.Store
	keys  account.Keys
	id    int64
}

func newOrganization(t *testing.T) *organization {
	t.Helper()
	o := &organization{T: t}
	pepper, err := credential.LoadPepper(t.Context(), filepath.Join(t.TempDir(), "pepper"), true)
	o.must(err)
	o.store, err = sqlite.Serve(t.TempDir())
	o.must(err)
	t.Cleanup(func() { o.must(o.store.Close()) })
	made, err := o.store.CreateOrganization(t.Context(), "Acme", 100, nil, now)
	o.must(err)
	o.id = made.ID
	o.keys = account.Keys{State: o.store, Pepper: pepper, Now: func() time.Time { return now }}
	return o
}

func (o *organization) must(err error) {
	o.Helper()
	if err != nil {
		o.Fatal(err)
	}
}

// make makes a key, as the key by or, if it is nil, as an operator.
func (o *organization) make(by *state.Key, asked account.NewKey) (*state.Key, error) {
	asked.Organization = o.id
	_, k, err := o.keys.Make(o.Context(), by, asked)
	return &k, err
}

func (o *organization) made(by *state.Key, asked account.NewKey) *state.Key {
	o.Helper()
	k, err := o.make(by, asked)
	o.must(err)
	return k
}

func (o *organization) spend(k *state.Key, credits int64) error {
	_, err := o.store.Settle(o.Context(), state.Charge{Organization: k.Organization, Key: k.ID, Credits: credits, Operation: "enrichment", At: now})
	return err
}

var yes, no = true, false

func networks(texts ...string) (all []netip.Prefix) {
	for _, text := range texts {
		all = append(all, netip.MustParsePrefix(text))
	}
	return all
}

// TestMakesKeys: by default a key makes keys if nothing limits it.
func TestMakesKeys(t *testing.T) {
	o := newOrganization(t)
	for _, c := range []struct {
		name  string
		asked account.NewKey
		want  bool
	}{
		{"plain", account.NewKey{}, true},
		{"for tests", account.NewKey{Test: true}, true},
		{"with a limit", account.NewKey{Limit: 3}, false},
		{"that expires", account.NewKey{Life: day}, false},
		{"for an operation", account.NewKey{Operations: []string{"account"}}, false},
		{"for a network", account.NewKey{Networks: networks("192.0.2.0/24")}, false},
		{"plain, without the right", account.NewKey{MakesKeys: &no}, false},
		{"with a limit and the right", account.NewKey{Limit: 3, MakesKeys: &yes}, true},
	} {
		k := o.made(nil, c.asked)
		_, err := o.make(k, account.NewKey{Test: c.asked.Test})
		refused, is := errors.AsType[*wire.Problem](err)
		if k.MakesKeys != c.want || (err == nil) != c.want || is && refused.Kind != wire.Forbidden {
			t.Errorf("%s: makes keys %t, %v; want %t", c.name, k.MakesKeys, err, c.want)
		}
	}
}

// TestAtMostWhatTheMakerHas: a key gives away nothing that it lacks.
func TestAtMostWhatTheMakerHas(t *testing.T) {
	o := newOrganization(t)
	narrow := o.made(nil, account.NewKey{
		Operations: []string{"enrichment", "account"}, Networks: networks("192.0.2.0/24", "2001:db8::/32"), Life: 10 * day, Limit: 5, MakesKeys: &yes,
	})
	o.must(o.spend(narrow, 2))
	for _, c := range []struct {
		name    string
		asked   account.NewKey
		refused string // field
	}{
		{"nothing more", account.NewKey{}, ""},
		{"less", account.NewKey{Operations: []string{"enrichment"}, Networks: networks("192.0.2.128/25"), Life: day, Limit: 1}, ""},
		{"as much", account.NewKey{Operations: []string{"account", "enrichment", "account"}, Networks: networks("2001:db8::/32", "192.0.2.7/24"), Life: 10 * day, Limit: 3}, ""},
		{"another operation", account.NewKey{Operations: []string{"enrichment", "email_to_hem"}}, "/operations"},
		{"no operation of ours", account.NewKey{Operations: []string{"everything"}}, "/operations"},
		{"a wider network", account.NewKey{Networks: networks("192.0.2.0/23")}, "/networks"},
		{"every network", account.NewKey{Networks: networks("0.0.0.0/0")}, "/networks"},
		{"another network", account.NewKey{Networks: networks("192.0.2.0/24", "198.51.100.1/32")}, "/networks"},
		{"a longer life", account.NewKey{Life: 11 * day}, "/life"},
		{"the limit of its maker, which spent some", account.NewKey{Limit: 5}, "/limit"},
	} {
		k, err := o.make(narrow, c.asked)
		p, is := errors.AsType[*wire.Problem](err)
		if c.refused != "" {
			if !is || !slices.ContainsFunc(p.Fields, func(f request.Problem) bool { return f.Pointer == c.refused && f.Detail != "" }) {
				t.Errorf("%s: %v, want a refusal of %s", c.name, err, c.refused)
			}
			continue
		}
		if err != nil || len(k.Operations) == 0 || len(k.Networks) == 0 || k.Expires.After(narrow.Expires) || k.Expires.IsZero() || k.Limit < 1 || k.Limit > 3 ||
			k.MakesKeys || k.Maker != narrow.ID || k.MakerPublic != narrow.Public || strings.Join(k.Operations, " ") == "account enrichment account" {
			t.Errorf("%s: %+v, %v", c.name, k, err)
		}
	}
	// What they spend together stays within the limit of the first.
	child, second := o.made(narrow, account.NewKey{Limit: 3, MakesKeys: &yes}), o.made(narrow, account.NewKey{Limit: 3})
	grandchild := o.made(child, account.NewKey{})
	o.must(errors.Join(o.spend(second, 1), o.spend(grandchild, 1), o.spend(narrow, 1)))
	for _, k := range []*state.Key{narrow, child, second, grandchild} {
		if too, is := errors.AsType[*state.InsufficientError](o.spend(k, 1)); !is || !too.OfKey || too.Balance != 0 {
			t.Errorf("key %d spends more than the first key may: %v", k.ID, too)
		}
		if left, limited, err := o.store.KeyLeft(t.Context(), k.ID); left != 0 || !limited || err != nil {
			t.Errorf("key %d has %d left, %t, %v", k.ID, left, limited, err)
		}
	}
	if _, err := o.make(narrow, account.NewKey{}); err == nil {
		t.Error("a key without credits made another")
	}
	o.must(o.store.LimitKey(t.Context(), narrow.Public, 0))
	o.must(o.spend(second, 1))
	o.must(o.store.RevokeKey(t.Context(), narrow.Public, false, now))
	if _, err := o.make(narrow, account.NewKey{}); !errors.Is(err, state.ErrNotFound) {
		t.Errorf("a revoked key made another: %v", err)
	}
}

// TestRevoke: who may revoke which key, and what stays of what it made.
func TestRevoke(t *testing.T) {
	o := newOrganization(t)
	whole, test := o.made(nil, account.NewKey{Label: "whole"}), o.made(nil, account.NewKey{Test: true})
	narrow, plain := o.made(whole, account.NewKey{Limit: 3, MakesKeys: &yes}), o.made(whole, account.NewKey{MakesKeys: &no})
	child := o.made(narrow, account.NewKey{MakesKeys: &yes})
	grandchild := o.made(child, account.NewKey{})
	for _, c := range []struct {
		name string
		by   *state.Key
		key  *state.Key
		want *wire.Kind
	}{
		{"a narrow key its maker", narrow, whole, wire.Forbidden},
		{"a narrow key a sibling", narrow, plain, wire.Forbidden},
		{"a key without the right another", plain, narrow, wire.Forbidden},
		{"a test key a live one", test, plain, wire.NotFound},
		{"a narrow key what its key made", narrow, grandchild, nil},
		{"a key without the right itself", plain, plain, nil},
		{"a whole key any", whole, test, nil},
	} {
		_, err := o.keys.Revoke(t.Context(), c.by, o.id, c.key.Public, false)
		p, is := errors.AsType[*wire.Problem](err)
		if k, _ := o.store.FindKey(t.Context(), 0, c.key.Public); is != (c.want != nil) || is && p.Kind != c.want || k.Revoked.IsZero() != is {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	if _, err := o.keys.Revoke(t.Context(), nil, o.id+1000, whole.Public, false); !errors.Is(err, state.ErrNotFound) {
		t.Errorf("a key of another organization: %v", err)
	}
	stay, err := o.keys.Revoke(t.Context(), nil, 0, whole.Public, false)
	if err != nil || len(stay) != 2 || stay[0].ID != narrow.ID || stay[1].ID != child.ID {
		t.Errorf("%v, %v stay", stay, err)
	}
	if stay, err = o.keys.Revoke(t.Context(), nil, 0, whole.Public, true); err != nil || len(stay) != 0 {
		t.Errorf("%v, %v stay of all", stay, err)
	}
}
