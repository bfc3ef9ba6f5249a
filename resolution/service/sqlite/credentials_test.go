package sqlite

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/service/state"
)

func TestKeys(t *testing.T) {
	s := serve(t, t.TempDir())
	org := organization(t, s, "Acme", 0)
	first := state.Key{Organization: org, Label: " nightly job ", Hash: [32]byte{1}, Hint: "wxyz", Created: noon, Expires: noon.Add(time.Hour)}
	k, err := s.AddKey(t.Context(), first)
	if err != nil {
		t.Fatal(err)
	}
	want := first
	want.ID, want.Public, want.Label = k.ID, k.Public, "nightly job"
	if !reflect.DeepEqual(k, want) || k.ID == 0 || !isPublicID("key_", k.Public) {
		t.Errorf("added %+v, want %+v with an id", k, want)
	}
	for _, c := range []struct {
		name string
		key  state.Key
		want error
	}{
		{"no organization", state.Key{Organization: org + 1, Hash: [32]byte{2}, Created: noon}, state.ErrNotFound},
		{"same hash", state.Key{Organization: org, Hash: [32]byte{1}, Created: noon}, state.ErrExists},
		{"long label", state.Key{Organization: org, Hash: [32]byte{2}, Created: noon, Label: strings.Repeat("x", 101)}, resolution.ErrInvalid},
		{"label of two lines", state.Key{Organization: org, Hash: [32]byte{2}, Created: noon, Label: "a\nb"}, resolution.ErrInvalid},
	} {
		if _, err := s.AddKey(t.Context(), c.key); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
	if err := s.RevokeKey(t.Context(), k.Public, false, noon.Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if err := s.RevokeKey(t.Context(), k.Public, false, noon.Add(time.Hour)); err != nil {
		t.Errorf("revoked again: %v", err)
	}
	if err := s.RevokeKey(t.Context(), "key_0123456789abcdef", false, noon); !errors.Is(err, state.ErrNotFound) {
		t.Errorf("revoked nothing: %v, want ErrNotFound", err)
	}
	want.Revoked = noon.Add(time.Minute) // the first time counts
	if keys, err := s.Keys(t.Context(), state.KeyChoice{Organization: org}); err != nil || len(keys) != 1 || !reflect.DeepEqual(keys[0], want) {
		t.Errorf("got %+v (%v), want %+v", keys, err, want)
	}
}

func TestRotateSecret(t *testing.T) {
	s := serve(t, t.TempDir())
	o, err := s.CreateOrganization(t.Context(), "Acme", 0, []byte("1"), noon)
	if err != nil {
		t.Fatal(err)
	}
	other, err := s.CreateOrganization(t.Context(), "Beta", 0, []byte("other"), noon)
	if err != nil {
		t.Fatal(err)
	}
	at := func(minutes int) time.Time { return noon.Add(time.Duration(minutes) * time.Minute) }
	for _, c := range []struct {
		secret         string
		now, oldUntil  int // minutes
		seen           int
		want           string
		wantAfterwards string // once oldUntil has passed
	}{
		{"2", 10, 20, 19, "2 1", "2"},
		{"3", 15, 30, 16, "3 2", "3"}, // 1 would still be valid, but is the third
		{"4", 40, 50, 40, "4 3", "4"},
		{"5", 60, 60, 60, "5", "5"}, // at once
	} {
		if err := s.RotateSecret(t.Context(), o.ID, []byte(c.secret), at(c.now), at(c.oldUntil)); err != nil {
			t.Fatal(err)
		}
		for when, want := range map[int]string{c.seen: c.want, c.oldUntil: c.wantAfterwards} {
			if got := sealed(t, s, o.ID, at(when)); got != want {
				t.Errorf("after rotation to %s, at %d min: %q, want %q", c.secret, when, got, want)
			}
		}
	}
	if got := sealed(t, s, other.ID, noon); got != "other" {
		t.Errorf("the other organization's: %q", got)
	}
	if err := s.RotateSecret(t.Context(), 99, []byte("x"), noon, noon); !errors.Is(err, state.ErrNotFound) {
		t.Errorf("no organization: %v, want ErrNotFound", err)
	}
}

func sealed(t *testing.T, s *Store, organization int64, now time.Time) string {
	t.Helper()
	secrets, err := s.Secrets(t.Context(), organization, now)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for i, x := range secrets {
		if x.Organization != organization || x.Expires.IsZero() != (i == 0) {
			t.Errorf("secret %d: %+v", i, x)
		}
		all = append(all, string(x.Sealed))
	}
	return strings.Join(all, " ")
}

// Every change to what Credentials shows raises its version, and nothing else
// does.
func TestCredentialsVersion(t *testing.T) {
	s := serve(t, t.TempDir())
	ctx := t.Context()
	var org int64
	var key state.Key
	var err error
	for _, c := range []struct {
		name   string
		do     func() error
		raises bool
	}{
		{"create organization", func() error { org = organization(t, s, "Acme", 5); return nil }, true},
		{"same again", func() error {
			_, err := s.CreateOrganization(ctx, "Acme", 5, nil, noon)
			return not(err, state.ErrExists)
		}, false},
		{"grant", func() error {
			_, err := s.ChangeCredits(ctx, state.CreditChange{Organization: org, Credits: 1, At: noon})
			return err
		}, false},
		{"settle", func() error {
			_, err := s.Settle(ctx, state.Charge{Organization: org, Credits: 1, At: noon})
			return err
		}, false},
		{"add key", func() error { key, err = s.AddKey(ctx, state.Key{Organization: org, Created: noon}); return err }, true},
		{"rotate", func() error { return s.RotateSecret(ctx, org, []byte("x"), noon, noon) }, true},
		{"revoke", func() error { return s.RevokeKey(ctx, key.Public, false, noon) }, true},
		{"revoke again", func() error { return s.RevokeKey(ctx, key.Public, false, noon) }, false},
	} {
		before, err := s.CredentialsVersion(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.do(); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if after, err := s.CredentialsVersion(ctx); err != nil || after != before && !c.raises || after <= before && c.raises {
			t.Errorf("%s: version %d after %d (%v), raises: %v", c.name, after, before, err, c.raises)
		}
	}
}

// not is nil when err is the expected refusal.
func not(err, want error) error {
	if errors.Is(err, want) {
		return nil
	}
	return fmt.Errorf("got %w, want %w", err, want)
}

func TestCredentials(t *testing.T) {
	s := serve(t, t.TempDir())
	ctx := t.Context()
	if c, err := s.Credentials(ctx); err != nil || c.Organizations != nil || c.Keys != nil || c.Secrets != nil {
		t.Errorf("of nothing: %+v (%v)", c, err)
	}
	var want state.Credentials
	for i, name := range []string{"Zeta", "Acme"} {
		o, err := s.CreateOrganization(ctx, name, 0, []byte("old "+name), noon)
		if err != nil {
			t.Fatal(err)
		}
		want.Organizations = append(want.Organizations, o)
		k, err := s.AddKey(ctx, state.Key{Organization: o.ID, Hash: [32]byte{byte(i)}, Hint: "abcd", Created: noon})
		if err != nil {
			t.Fatal(err)
		}
		want.Keys = append(want.Keys, k)
		if err := s.RotateSecret(ctx, o.ID, []byte("new "+name), noon, noon.Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
		secrets, err := s.Secrets(ctx, o.ID, noon)
		if err != nil {
			t.Fatal(err)
		}
		want.Secrets = append(want.Secrets, secrets...)
	}
	var err error
	if want.Version, err = s.CredentialsVersion(ctx); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Credentials(ctx); err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got\n%v (%v), want\n%v", got, err, want)
	}
}

// TestLimitKey: a limit counts what a key spent before, reservations too, and gives back
// what is released.
func TestLimitKey(t *testing.T) {
	s := serve(t, t.TempDir())
	org := organization(t, s, "limited", 100)
	key := limitedKey(t, s, org, 10)
	public := ""
	if keys, err := s.Keys(t.Context(), state.KeyChoice{Organization: org}); err == nil {
		public = keys[0].Public
	}
	enter := func(kind state.Kind, credits int64, of uuid.UUID) func() error {
		return func() error {
			return s.db.writer.Write(t.Context(), func(x *tx) error {
				return x.enter(entry{organization: org, key: key, kind: kind, credits: credits, reserved: of != uuid.Nil, resolution: of, at: noon})
			})
		}
	}
	limit := func(credits int64) func() error {
		return func() error { return s.LimitKey(t.Context(), public, credits) }
	}
	of := uuid.Must(uuid.NewV7())
	for i, c := range []struct {
		do      func() error
		fits    bool
		left    int64
		limited bool
	}{
		{enter(state.Capture, 4, uuid.Nil), true, 6, true},
		{enter(state.Capture, 7, uuid.Nil), false, 6, true},
		{enter(state.Reserve, 6, of), true, 0, true},
		{enter(state.Capture, 1, uuid.Nil), false, 0, true},
		{enter(state.Capture, 2, of), true, 0, true},
		{enter(state.Release, 4, of), true, 4, true},
		{limit(5), true, 0, true}, // it has spent 6
		{enter(state.Capture, 1, uuid.Nil), false, 0, true},
		{limit(8), true, 2, true},
		{enter(state.Capture, 2, uuid.Nil), true, 0, true},
		{limit(0), true, 0, false},
		{enter(state.Capture, 92, uuid.Nil), true, 0, false},
	} {
		err := c.do()
		too, isTooMuch := errors.AsType[*state.InsufficientError](err)
		if c.fits != (err == nil) || isTooMuch && !too.OfKey {
			t.Errorf("%d: %v", i, err)
		}
		if left, limited, err := s.KeyLeft(t.Context(), key); err != nil || left != c.left || limited != c.limited {
			t.Errorf("%d: %d left, %t, %v; want %d, %t", i, left, limited, err, c.left, c.limited)
		}
	}
	if err := s.LimitKey(t.Context(), "key_unknown", 1); !errors.Is(err, state.ErrNotFound) {
		t.Errorf("an unknown key: %v", err)
	}
	for _, credits := range []int64{-1, creditLimit + 1} {
		if err := s.LimitKey(t.Context(), public, credits); !errors.Is(err, resolution.ErrInvalid) {
			t.Errorf("a limit of %d: %v", credits, err)
		}
	}
	if keys, err := s.Keys(t.Context(), state.KeyChoice{Organization: org}); err != nil || keys[0].Spent != 100 || keys[0].Limit != 0 {
		t.Errorf("keys %+v, %v", keys, err)
	}
	audit(t, s)
}
