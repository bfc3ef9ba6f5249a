//go:build unix

package serve

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leadetl/leadetl/cmd/leadetl/clitest"
)

// soon is how long a service that runs may take to notice what an
// administrator did.
const soon = 2 * time.Second

// within waits until something is so, and minds how long it took. The machine
// may be busy with other tests, so it is given more time than an operator is.
func within(t testing.TB, limit time.Duration, what string, is func() bool) {
	t.Helper()
	began := time.Now()
	clitest.Until(t, what, is)
	if took := time.Since(began); took > 4*limit {
		t.Errorf("it took %s until %s", took, what)
	}
}

// TestServeAdmin: what an administrator does beside a service that runs, it
// notices.
func TestServeAdmin(t *testing.T) {
	t.Parallel()
	p := clitest.NewPlace(t)
	first := p.Customer("Example Rockets", "2")
	s := p.Serve(append(clitest.Unlimited, "--callback-allow", "127.0.0.0/8")...)
	c := clitest.NewCaller(t, s.Public, first)
	answered := func(key string) func() bool {
		return func() bool {
			c.Key = key
			return c.Post("/lead/enrichment", clitest.AskNobody).Status == http.StatusOK
		}
	}

	// An organization and its key, made while the service runs.
	within(t, soon, "a new organization's key is good", answered(p.Customer("Sample Bakery", "10")))
	second := p.Admin("key", "create", "Example Rockets", "--label", "second")
	p.Private = append(p.Private, second)
	within(t, soon, "a new key is good", answered(second))
	p.Admin("key", "revoke", keyID(t, p, second))
	within(t, soon, "a revoked key is bad", func() bool {
		c.Key = second
		a := c.Post("/lead/enrichment", clitest.AskNobody)
		return a.Status == http.StatusUnauthorized && a.Code() == "invalid_credentials"
	})
	if !answered(first)() {
		t.Error("the key before is bad as well")
	}

	// Credits. The grant is seen by the very next call.
	if a := c.Post("/lead/enrichment", clitest.AskAda); a.Status != http.StatusOK {
		t.Errorf("the last credits: %d %s", a.Status, a.Raw)
	}
	if a := c.Post("/lead/enrichment", clitest.AskAda); a.Code() != "insufficient_credits" {
		t.Errorf("without credits: %d %s", a.Status, a.Raw)
	}
	if left := p.Admin("credits", "grant", "Example Rockets", "500", "--note", "invoice 17"); left != "500" {
		t.Errorf("the grant says %s", left)
	}
	if a := c.Post("/lead/enrichment", clitest.AskAda); a.Status != http.StatusOK || a.Header.Get("X-Credits-Remaining") != "498" {
		t.Errorf("with credits: %d %s", a.Status, a.Raw)
	}
}

// keyID is the id of a key, which the list shows beside its last characters.
func keyID(t testing.TB, p *clitest.Place, key string) string {
	t.Helper()
	hint := key[len(key)-4:]
	for line := range strings.Lines(p.Admin("key", "list", "Example Rockets")) {
		if strings.Contains(line, "…"+hint) {
			return strings.Fields(line)[0]
		}
	}
	t.Fatal("the key is not listed")
	return ""
}

// TestServeAdminCallbacks: secrets and deliveries, managed beside a service
// that runs.
func TestServeAdminCallbacks(t *testing.T) {
	t.Parallel()
	p := clitest.NewPlace(t)
	key := p.Customer("Example Rockets", "1000000")
	old := p.Admin("secret", "show", "Example Rockets")
	r := clitest.NewReceiver(t, old)
	c := clitest.NewCaller(t, p.Serve(append(clitest.Unlimited, "--callback-allow", "127.0.0.0/8")...).Public, key)
	call := func(ref string) {
		t.Helper()
		a := c.Post("/lead/enrichment", strings.Replace(clitest.AskAda, "}", `,"callback_url":"`+r.Hook("/lead/enrichment", ref)+`"}`, 1))
		if a.Status != http.StatusOK {
			t.Fatalf("%d %s", a.Status, a.Raw)
		}
	}

	// One secret signs, then both, then the new one alone.
	call("before")
	if came := r.Wait("before", 1)[0]; !slices.Equal(came.SignedBy, []bool{true}) || came.Signatures() != 1 {
		t.Errorf("with one secret: signed by %v, %d signatures", came.SignedBy, came.Signatures())
	}
	fresh := p.Admin("secret", "rotate", "Example Rockets")
	if shown := strings.Fields(p.Admin("secret", "show", "Example Rockets")); !slices.Equal(shown, []string{fresh, old}) {
		t.Error("the secrets shown are not the new one and the one before")
	}
	r.Trust(fresh, old)
	calls := 0
	within(t, soon, "callbacks are signed with both secrets", func() bool {
		call("rotating")
		calls++
		last := r.Wait("rotating", calls)[calls-1]
		return slices.Equal(last.SignedBy, []bool{true, true}) && last.Signatures() == 2
	})
	newest := p.Admin("secret", "rotate", "Example Rockets", "--keep", "1ms")
	r.Trust(newest, fresh, old)
	calls = 0
	within(t, soon, "callbacks are signed with the newest secret alone", func() bool {
		call("rotated")
		calls++
		last := r.Wait("rotated", calls)[calls-1]
		return slices.Equal(last.SignedBy, []bool{true, false, false}) && last.Signatures() == 1
	})

	// A receiver that is gone, and comes back.
	r.Respond(func(clitest.Arrival) int { return http.StatusGone })
	call("gone")
	id := r.Wait("gone", 1)[0].ID
	dead := func() bool {
		return strings.Contains(p.Admin("deliveries", "list", "--org", "Example Rockets", "--is", "dead"), id)
	}
	clitest.Until(t, "the delivery is dead", dead)
	if list := p.Admin("deliveries", "list", "--is", "dead"); strings.Contains(list, "ref=") || !strings.Contains(list, "410") {
		t.Errorf("the list shows whole addresses, or not why it is dead:\n%s", list)
	}
	r.Respond(nil)
	p.Admin("deliveries", "replay", id)
	came := r.Wait("gone", 2)
	if came[1].ID != id || came[1].Body != came[0].Body {
		t.Errorf("a replay has the webhook id %s, the first had %s; the same body: %t", came[1].ID, id, came[1].Body == came[0].Body)
	}
	clitest.Until(t, "the delivery is delivered", func() bool {
		return strings.Contains(p.Admin("deliveries", "list", "--org", "Example Rockets", "--is", "delivered"), id)
	})
	if dead() {
		t.Error("what was replayed is still dead")
	}

	// All that are dead, at once.
	r.Respond(func(clitest.Arrival) int { return http.StatusGone })
	for _, ref := range []string{"a", "b", "c"} {
		call(ref)
	}
	clitest.Until(t, "three deliveries are dead", func() bool {
		return strings.Count(p.Admin("deliveries", "list", "--is", "dead"), "msg_") == 3
	})
	r.Respond(nil)
	if said := p.Admin("deliveries", "replay", "--dead", "Example Rockets"); said != "3 callbacks to be posted again" {
		t.Errorf("replay says %q", said)
	}
	for _, ref := range []string{"a", "b", "c"} {
		if came := r.Wait(ref, 2); came[0].ID != came[1].ID {
			t.Errorf("a replay has another webhook id")
		}
	}
}

// TestServeFailingCallbacks: an attempt that is answered with an error, cut off
// or redirected is made again. The redirect is not followed.
func TestServeFailingCallbacks(t *testing.T) {
	t.Parallel()
	p := clitest.NewPlace(t)
	c := clitest.NewCaller(t, "", p.Customer("Example Rockets", "1000"))
	r := clitest.NewReceiver(t, p.Admin("secret", "show", "Example Rockets"))
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a redirect is followed") }))
	defer elsewhere.Close()
	r.Elsewhere = elsewhere.URL
	answers := map[string]int{"error": http.StatusInternalServerError, "broken": 0, "redirect": http.StatusTemporaryRedirect}
	r.Respond(func(a clitest.Arrival) int {
		status, failing := answers[a.Ref]
		if !failing {
			return http.StatusOK
		}
		delete(answers, a.Ref) // the next time is good
		return status
	})
	c.URL = p.Serve("--callback-allow", "127.0.0.0/8").Public
	for _, ref := range []string{"error", "broken", "redirect"} {
		c.Post("/lead/enrichment", strings.Replace(clitest.AskAda, "}", `,"callback_url":"`+r.Hook("/lead/enrichment", ref)+`"}`, 1))
	}
	for _, ref := range []string{"error", "broken", "redirect"} {
		came := r.Wait(ref, 2)
		if came[0].ID != came[1].ID || came[0].Body != came[1].Body {
			t.Errorf("%s: the second attempt is another message", ref)
		}
	}
}
