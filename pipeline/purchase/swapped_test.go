package purchase

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/leadetl/leadetl/internal/secret"
	"github.com/leadetl/leadetl/internal/testkit/badservice"
	"github.com/leadetl/leadetl/pipeline/answers"
	"github.com/leadetl/leadetl/pipeline/outcome"
	"github.com/leadetl/leadetl/pipeline/pace"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/client"
	"github.com/leadetl/leadetl/resolution/exchange"
	"github.com/leadetl/leadetl/resolution/provider"
)

// TestNobodyElsesAnswer: a service mixes up answers, and no row gets the data of
// somebody else. With idempotency keys everybody gets their own, paid once; without
// them the calls that got another answer are unknown, and listed.
func TestNobodyElsesAnswer(t *testing.T) {
	for _, f := range []struct {
		name       string
		faults     badservice.Faults
		idempotent bool
	}{
		{"twice", badservice.Faults{Doubled: 0.2}, false},
		{"twice, with keys", badservice.Faults{Doubled: 0.2}, true},
		{"mixed up", badservice.Faults{Mixed: 0.1}, false},
		{"mixed up, with keys", badservice.Faults{Mixed: 0.1}, true},
	} {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			o := badservice.DefaultOptions()
			o.Matched, o.Faults = 1, f.faults
			s := badservice.New(o)
			url, err := s.Start()
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			settings := client.DefaultOptions()
			settings.BaseURL, settings.Key = url, secret.New("key")
			c, err := client.New(settings)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			_, store := laterOf(t)
			b := buyerFrom(t, resolution.Enrichment, store, c, func(r *Remote) {
				limits := pace.DefaultOptions()
				r.Concurrency, r.Pace = limits.Concurrency, pace.New(limits)
				if f.idempotent {
					r.Keys = NewKeyWindow(DefaultKeyWindow)
				}
			})
			keys := make([]string, 60)
			for i := range keys {
				keys[i] = fmt.Sprintf("network.example/in/person-%d", i)
			}
			got, err := askAll(t, b, keys...)
			if err != nil {
				t.Fatal(err)
			}
			unknown, listed := 0, 0
			for i, a := range got {
				switch {
				case a.Outcome == outcome.Matched && a.Found.Lead().NetworkURL != keys[i]:
					t.Errorf("%s got the data of %s", keys[i], a.Found.Lead().NetworkURL)
				case a.Outcome == outcome.Failed && a.Reason == outcome.ReasonUnknownCall && !f.idempotent:
					unknown++
				case a.Outcome != outcome.Matched:
					t.Errorf("%s: %s %s", keys[i], a.Outcome, a.Reason)
				}
				if n := s.Billed(keys[i]); n != 1 {
					t.Errorf("%s was billed %d times", keys[i], n)
				}
			}
			for _, err := range store.Unknown(t.Context()) {
				if listed++; err != nil {
					t.Fatal(err)
				}
			}
			failed := b.counters.Snapshot().ByClass[string(resolution.Protocol)]
			if listed != unknown || (unknown == 0) != f.idempotent || failed == 0 {
				t.Errorf("%d rows unknown, %d calls listed, %d protocol failures", unknown, listed, failed)
			}
		})
	}
}

// askProvider asks a provider by its entry about 60 people.
func askProvider(t *testing.T, entry, url string) (keys []string, got []Result, unknown int) {
	t.Helper()
	entries, err := provider.Parse("a.yaml", []byte(entry))
	if err != nil {
		t.Fatal(err)
	}
	e, o := entries["a"], provider.DefaultOptions()
	o.Base, o.Key = url, secret.New("key")
	c, err := provider.New(e, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	_, store := laterOf(t)
	asked, _ := e.Request(resolution.NetworkURL)
	b := buyerFrom(t, resolution.Enrichment, store, c, func(r *Remote) {
		r.Name, r.Question, r.Judged, r.Read, r.Price = "a", "network_url", true, asked.Read, Price{Match: 1}
	})
	for i := range 60 {
		keys = append(keys, fmt.Sprintf("linkedin.com/in/p-%d", i))
	}
	if got, err = askAll(t, b, keys...); err != nil {
		t.Fatal(err)
	}
	for _, err := range store.Unknown(t.Context()) {
		if unknown++; err != nil {
			t.Fatal(err)
		}
	}
	return keys, got, unknown
}

// TestNobodyElsesAnswerOfProviders: a provider that sends answers twice on kept connections, one after
// another or many in a request, gives nobody the data of somebody else, whether they name their key
// or not.
func TestNobodyElsesAnswerOfProviders(t *testing.T) {
	for _, f := range []struct {
		batch int
		named bool
	}{{0, true}, {0, false}, {5, true}, {5, false}} {
		o := badservice.DefaultProvider("a")
		o.Matched, o.Email, o.Batch, o.Faults = 1, 1, f.batch, badservice.ProviderFaults{Doubled: 0.2}
		p, err := badservice.NewProvider(o)
		if err != nil {
			t.Fatal(err)
		}
		url, err := p.Start()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { p.Close() })
		entry := p.Entry(url)
		if !f.named {
			entry = strings.Replace(entry, "  echo: person.profile\n", "", 1)
		}
		keys, got, unknown := askProvider(t, entry, url)
		failed := 0
		for i, a := range got {
			email, _, _ := p.Says(keys[i])
			switch {
			case a.Outcome == outcome.Matched && a.Found.Lead().Email != email:
				t.Errorf("%s got the data of somebody else", keys[i])
			case a.Outcome != outcome.Matched && a.Reason != outcome.ReasonUnknownCall:
				t.Errorf("%s: %s %s", keys[i], a.Outcome, a.Reason)
			case a.Outcome != outcome.Matched:
				failed++
			}
		}
		if failed != unknown || failed == len(keys) {
			t.Errorf("%+v: %d rows unknown, %d calls listed", f, failed, unknown)
		}
	}
}

// TestTurnedContents: a provider gives each key the data of the next one, or the right data under
// another spelling of its id.
func TestTurnedContents(t *testing.T) {
	const entry = `a:
  base: "https://api.example"
  key: header X-Key
  batch: {size: 10, ask: "POST /bulk", each: {ref: "{ref}", u: "{network_url_https}"}, in: keys, answers: ".", id: {send: ref, back: ref}}
  answers: [{match: 200 email}, {no_match: "200 !email | 404"}, {slow_down: 429}]
  fields: {email: email, network_url: url}
`
	type key struct{ Ref, U string }
	for _, f := range []struct {
		name, entry string
		of          func(keys []key, i int) map[string]string
		unknown     int
	}{
		{"turned contents", entry, func(keys []key, i int) map[string]string {
			next := keys[(i+1)%len(keys)].U
			return map[string]string{"ref": keys[i].Ref, "email": next[strings.LastIndex(next, "/")+1:] + "@x.example", "url": next}
		}, 60},
		{"another spelling of the id", strings.Replace(entry, "{send: ref, back: ref}", "{send: u, back: u}", 1), func(keys []key, i int) map[string]string {
			own := keys[i].U
			return map[string]string{"u": strings.Replace(own, "://", "://www.", 1) + "/", "email": own[strings.LastIndex(own, "/")+1:] + "@x.example"}
		}, 0},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var asked struct{ Keys []key }
			_ = json.NewDecoder(r.Body).Decode(&asked)
			var all []map[string]string
			for i := range slices.Backward(asked.Keys) {
				all = append(all, f.of(asked.Keys, i))
			}
			text, _ := json.Marshal(all)
			_, _ = w.Write(text)
		}))
		defer server.Close()
		keys, got, unknown := askProvider(t, f.entry, server.URL)
		for i, a := range got {
			if want := keys[i][strings.LastIndex(keys[i], "/")+1:] + "@x.example"; a.Outcome == outcome.Matched && a.Found.Lead().Email != want {
				t.Errorf("%s: %s has the email %s", f.name, keys[i], a.Found.Lead().Email)
			}
		}
		if unknown != f.unknown {
			t.Errorf("%s: %d calls are unknown, want %d", f.name, unknown, f.unknown)
		}
	}
}

// TestNextQuestionsAreExpected: what is asked next is known before the first request leaves, so that an
// answer which has the key of a later question is not taken.
func TestNextQuestionsAreExpected(t *testing.T) {
	_, store := laterOf(t)
	known := exchange.NewAsked([]string{"network.example"})
	asked := people("a b c d e")
	var b *Buyer
	b = buyerFrom(t, resolution.NetworkToPhone, store, answering(func(ref string) (int, string, error) {
		for i, key := range asked {
			if (answers.Question{Scope: b.scope, Key: key}).Hash().String() != ref {
				continue
			}
			next := asked[(i+1)%len(asked)]
			q := known.Question(resolution.NetworkURL, key, "")
			if swapped, _ := q.Profile("https://"+next, false); !swapped {
				t.Errorf("an answer to %s may have the data of %s", key, next)
			}
		}
		return 200, `{"lead":null}`, nil
	}), func(r *Remote) { r.Expect = func(keys []string) { known.Expect(resolution.NetworkURL, keys) } })
	if _, err := askAll(t, b, asked...); err != nil {
		t.Error(err)
	}
}
