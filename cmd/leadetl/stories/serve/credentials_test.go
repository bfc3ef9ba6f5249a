//go:build unix

package serve

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leadetl/leadetl/cmd/leadetl/wire"
	"github.com/leadetl/leadetl/resolution/embedded"
	"github.com/leadetl/leadetl/resolution/service"
	"github.com/leadetl/leadetl/resolution/service/admission"
	"github.com/leadetl/leadetl/resolution/service/callback"
	"github.com/leadetl/leadetl/resolution/service/credential"
	"github.com/leadetl/leadetl/resolution/service/sqlite"
	"github.com/leadetl/leadetl/resolution/service/state"
)

// TestCredentialsTellNothing: who tries keys cannot tell those that never were
// from those that were revoked or are not even well-formed: neither by what is
// answered nor by how long it takes.
func TestCredentialsTellNothing(t *testing.T) {
	handler, good, revoked := newHandler(t)
	ask := func(key string) (*httptest.ResponseRecorder, time.Duration) {
		r := httptest.NewRequest(http.MethodPost, "/lead/enrichment", strings.NewReader("")) // which a good key is told
		r.Header.Set("Authorization", "Bearer "+key)
		r.Header.Set("X-Request-Id", "same")
		w := httptest.NewRecorder()
		began := time.Now()
		handler.ServeHTTP(w, r)
		return w, time.Since(began)
	}
	keys := map[string]func() string{
		"revoked":          func() string { return revoked },
		"unknown":          func() string { return credential.NewKey(false).Reveal() },
		"unknown, test":    func() string { return credential.NewKey(true).Reveal() },
		"a wrong checksum": func() string { return good[:len(good)-1] + string(good[len(good)-1]^1) },
		"a wrong middle":   func() string { return good[:20] + string(good[20]^1) + good[21:] },
		"cut short":        func() string { return good[:len(good)-1] },
		"too long":         func() string { return good + "0" },
		"a word":           func() string { return "hello" },
		"like a token":     func() string { return "eyJhbGciOiJub25lIn0.eyJzdWIiOiJ4In0.x" },
		"a long one":       func() string { return strings.Repeat("x", 4000) },
	}

	var first *httptest.ResponseRecorder
	for name, key := range keys {
		w, _ := ask(key())
		if first == nil {
			first = w
		}
		if w.Code != http.StatusUnauthorized || w.Body.String() != first.Body.String() || !maps.EqualFunc(w.Header(), first.Header(), slices.Equal) {
			t.Errorf("%s: %d %v %s\nwant what others are told: %d %v %s", name, w.Code, w.Header(), w.Body, first.Code, first.Header(), first.Body)
		}
	}

	// Good ones are refused for their body.
	keys["good"] = func() string { return good }
	if w, _ := ask(good); w.Code != http.StatusBadRequest {
		t.Fatalf("a good key: %d %s", w.Code, w.Body)
	}
	took := map[string][]time.Duration{}
	for range 400 { // in turns, so that what else the machine does meets all alike
		for name, key := range keys {
			k := key()
			_, d := ask(k)
			took[name] = append(took[name], d)
		}
	}
	median := func(name string) time.Duration {
		slices.Sort(took[name])
		return took[name][len(took[name])/2]
	}
	for name := range keys {
		if got, want := median(name), median("unknown"); got > 3*want || want > 3*got {
			t.Errorf("%s takes %s, unknown %s", name, got, want)
		}
	}
}

// newHandler is a service's, in this process, with a good key and one that was
// revoked.
func newHandler(t *testing.T) (handler http.Handler, good, revoked string) {
	t.Helper()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	kept, err := sqlite.Serve(t.TempDir())
	check(err)
	t.Cleanup(func() { check(kept.Close()) })
	o := service.DefaultOptions()
	o.Pepper, err = credential.LoadPepper(t.Context(), filepath.Join(t.TempDir(), wire.PepperName), true)
	check(err)
	live, err := embedded.Follow("", embedded.Options{}, nil)
	check(err)
	t.Cleanup(func() { check(live.Close()) })
	o.State, o.Resolver, o.Searcher, o.Callbacks, o.Limits = kept, live, live, &callback.Policy{}, admission.Limits{}
	s, err := service.New(o)
	check(err)

	organization, err := kept.CreateOrganization(t.Context(), "Example Rockets", 100, o.Pepper.Seal([]byte(callback.NewSecret().Reveal())), time.Now())
	check(err)
	key := func() (string, state.Key) {
		k := credential.NewKey(false).Reveal()
		added, err := kept.AddKey(t.Context(), state.Key{Organization: organization.ID, Hash: o.Pepper.Hash(k), Hint: credential.Hint(k), Created: time.Now()})
		check(err)
		return k, added
	}
	good, _ = key()
	revoked, added := key()
	check(kept.RevokeKey(t.Context(), added.Public, false, time.Now()))
	return s.Public(), good, revoked
}
