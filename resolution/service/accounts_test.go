package service

import (
	"bytes"
	"errors"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/service/callback"
	"github.com/leadetl/leadetl/resolution/service/credential"
	"github.com/leadetl/leadetl/resolution/service/limit"
	"github.com/leadetl/leadetl/resolution/service/state"
)

// sealElsewhere seals a callback secret under another pepper.
func sealElsewhere(t *testing.T) []byte {
	t.Helper()
	other, err := credential.LoadPepper(t.Context(), filepath.Join(t.TempDir(), "pepper"), true)
	if err != nil {
		t.Fatal(err)
	}
	return other.Seal([]byte(callback.NewSecret().Reveal()))
}

// TestSecretUnderAnotherPepper: it costs its organization its callbacks until
// there is another, and nobody anything else.
func TestSecretUnderAnotherPepper(t *testing.T) {
	var log bytes.Buffer
	f := newFixture(t, func(o *Options) { o.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	roster, kept := f.service.roster, f.store
	foreign, err := kept.CreateOrganization(t.Context(), "Foreign Customer", plenty, sealElsewhere(t), time.Now())
	f.must(err)
	for range 3 {
		f.must(roster.Refresh(t.Context()))
	}
	f.must(roster.Check())
	if said := log.String(); strings.Count(said, "not sealed under this pepper") != 1 || !strings.Contains(said, foreign.Public) {
		t.Errorf("logged:\n%s", said)
	}
	if got := roster.CallbackSecrets(foreign.ID); len(got) != 0 {
		t.Errorf("%d secrets of the one", len(got))
	}
	if got := roster.CallbackSecrets(f.organization.ID); len(got) != 1 {
		t.Errorf("%d secrets of the other", len(got))
	}

	if a := f.post(enrichment, askAda, "Authorization", "Bearer "+credential.NewKey(false).Reveal()); a.status != http.StatusUnauthorized {
		t.Errorf("an unknown key: %d %s", a.status, a.raw)
	}
	keys, err := kept.Keys(t.Context(), state.KeyChoice{Organization: f.organization.ID})
	f.must(err)
	f.must(kept.RevokeKey(t.Context(), keys[0].Public, false, time.Now()))
	f.must(roster.Refresh(t.Context())) // as Serve does every 250 ms
	if a := f.post(enrichment, askAda); a.status != http.StatusUnauthorized {
		t.Errorf("a revoked key: %d %s", a.status, a.raw)
	}

	now := time.Now()
	f.must(kept.RotateSecret(t.Context(), foreign.ID, f.options.Pepper.Seal([]byte(f.secret.Reveal())), now, now.Add(time.Hour)))
	f.must(roster.Refresh(t.Context()))
	if got := roster.CallbackSecrets(foreign.ID); len(got) != 1 || got[0].Reveal() != f.secret.Reveal() {
		t.Errorf("after a rotation: %d secrets", len(got))
	}
}

// TestAnotherPepper: when it opens nothing, it is the wrong one.
func TestAnotherPepper(t *testing.T) {
	f := newFixture(t)
	now := time.Now()
	f.must(f.store.RotateSecret(t.Context(), f.organization.ID, sealElsewhere(t), now, now))
	l := listen(t)
	err := f.service.Serve(t.Context(), Listeners{Public: l})
	if !errors.Is(err, resolution.ErrInvalid) || !strings.Contains(err.Error(), "not sealed under this pepper") {
		t.Errorf("%v", err)
	}
}

// TestGuessesDoNotHoldUpNewKeys: an address without guesses left makes no
// reads of the database, so that new keys from others are found at once.
func TestGuessesDoNotHoldUpNewKeys(t *testing.T) {
	now := time.Now()
	f := newFixture(t, func(o *Options) {
		o.Limits.FailedAuth = limit.Rate{Events: 5, Per: time.Minute, Burst: 5}
		o.TrustedProxies = loopback
		o.Now = func() time.Time { return now }
	})
	for range 50 {
		f.post(enrichment, askAda, "Authorization", "Bearer "+credential.NewKey(false).Reveal(), "X-Forwarded-For", "192.0.2.1")
	}
	_, f.key = f.newOrganization("Newcomer", 10)
	if a := f.post(enrichment, askAda, "X-Forwarded-For", "192.0.2.1"); a.status != http.StatusTooManyRequests {
		t.Errorf("from the same address: %d %s", a.status, a.raw)
	}
	if a := f.post(enrichment, askAda, "X-Forwarded-For", "192.0.2.2"); a.status != http.StatusOK {
		t.Errorf("from another: %d %s", a.status, a.raw)
	}
}
