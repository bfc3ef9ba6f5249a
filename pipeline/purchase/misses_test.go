package purchase

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/leadetl/leadetl/pipeline/answers"
	"github.com/leadetl/leadetl/pipeline/outcome"
	"github.com/leadetl/leadetl/resolution"
)

// TestAllMissed: a service that has a match for none of its first keys, or of a whole list, may have
// another address, unless one is stored. The run says so, or stops if the user wants that.
func TestAllMissed(t *testing.T) {
	const warned, stopped = "warned", "stopped"
	for _, c := range []struct {
		name    string
		keys    int
		match   int // which key has one; -1 is none
		stored  bool
		meaning Plain404
		want    string
		calls   int
	}{
		{"the whole list", 3, -1, false, Plain404Learned, warned, 3},
		{"one key says nothing", 1, -1, false, Plain404Learned, "", 1},
		{"the first thousand", firstMisses + 50, firstMisses + 40, false, Plain404Learned, warned, firstMisses + 50},
		{"one of them has a match", firstMisses + 50, 900, false, Plain404Learned, "", firstMisses + 50},
		{"a match is stored", firstMisses + 50, -1, true, Plain404Learned, "", firstMisses + 50},
		{"the user wants it to stop", firstMisses + 50, -1, false, Plain404Stop, stopped, firstMisses},
		{"and the whole list", 3, -1, false, Plain404Stop, stopped, 3},
		{"not if there is a match", firstMisses + 50, 0, false, Plain404Stop, "", firstMisses + 50},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := openStore(t)
				calls := 0
				service := answering(func(string) (int, string, error) {
					if calls++; calls == c.match+1 {
						return 200, `{"resolution":{"id":"res_1","status":"completed"},"lead":{"phone":"+12025550100"}}`, nil
					}
					return 404, `{"error":{"code":"not_found"}}`, nil
				})
				var logged strings.Builder
				b := buyerFrom(t, resolution.NetworkToPhone, store, service, func(r *Remote) { r.Plain404, r.Address = c.meaning, "https://leads.example/v9" })
				b.log = slog.New(slog.NewTextHandler(&logged, nil))
				if c.stored {
					q := answers.Question{Scope: b.scope, Key: "another"}
					if err := store.Put(t.Context(), q, answers.Answer{Outcome: answers.Matched, Status: 200, Body: []byte("{}")}); err != nil {
						t.Fatal(err)
					}
				}
				var ended error
				for i := range c.keys {
					a, err := ask(t, b, fmt.Sprint("key ", i))
					if ended = err; err != nil {
						break
					}
					if a.Outcome != outcome.Matched && a.Outcome != outcome.NoMatch {
						t.Fatalf("%+v", a)
					}
				}
				if ended == nil {
					ended = b.Refused()
				}
				got := ""
				switch {
				case errors.Is(ended, ErrRefused) && strings.Contains(ended.Error(), "https://leads.example/v9 has no match for any"):
					got = stopped
				case ended != nil:
					t.Error(ended)
				case strings.Count(logged.String(), "https://leads.example/v9 has no match for any") == 1:
					got = warned
				}
				if got != c.want || calls != c.calls {
					t.Errorf("%q after %d calls, want %q after %d; it says %s", got, calls, c.want, c.calls, logged.String())
				}
			})
		})
	}
}
