//go:build unix

package main

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"
)

// soon is how long a service that runs may take to notice what an
// administrator did.
const soon = 2 * time.Second

// within waits until something is so, and minds how long it took. The machine
// may be busy with other tests, so it is given more time than an operator is.
func within(t testing.TB, limit time.Duration, what string, is func() bool) {
	t.Helper()
	began := time.Now()
	until(t, what, is)
	if took := time.Since(began); took > 4*limit {
		t.Errorf("it took %s until %s", took, what)
	}
}

// TestServeAdmin: what an administrator does beside a service that runs, it
// notices.
func TestServeAdmin(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	first := p.customer("Example Rockets", "2")
	s := p.serve(append(unlimited, "--callback-allow", "127.0.0.0/8")...)
	c := newCaller(t, s.public, first)
	answered := func(key string) func() bool {
		return func() bool {
			c.key = key
			return c.post("/lead/enrichment", askNobody).status == http.StatusOK
		}
	}

	// An organization and its key, made while the service runs.
	within(t, soon, "a new organization's key is good", answered(p.customer("Sample Bakery", "10")))
	second := p.admin("key", "create", "Example Rockets", "--label", "second")
	p.private = append(p.private, second)
	within(t, soon, "a new key is good", answered(second))
	p.admin("key", "revoke", keyID(t, p, second))
	within(t, soon, "a revoked key is bad", func() bool {
		c.key = second
		a := c.post("/lead/enrichment", askNobody)
		return a.status == http.StatusUnauthorized && a.code() == "invalid_credentials"
	})
	if !answered(first)() {
		t.Error("the key before is bad as well")
	}

	// Credits. The grant is seen by the very next call.
	if a := c.post("/lead/enrichment", askAda); a.status != http.StatusOK {
		t.Errorf("the last credits: %d %s", a.status, a.raw)
	}
	if a := c.post("/lead/enrichment", askAda); a.code() != "insufficient_credits" {
		t.Errorf("without credits: %d %s", a.status, a.raw)
	}
	if left := p.admin("credits", "grant", "Example Rockets", "500", "--note", "invoice 17"); left != "500" {
		t.Errorf("the grant says %s", left)
	}
	if a := c.post("/lead/enrichment", askAda); a.status != http.StatusOK || a.header.Get("X-Credits-Remaining") != "498" {
		t.Errorf("with credits: %d %s", a.status, a.raw)
	}
}

// keyID is the id of a key, which the list shows beside its last characters.
func keyID(t testing.TB, p *place, key string) string {
	t.Helper()
	hint := key[len(key)-10 : len(key)-6] // before the checksum
	for line := range strings.Lines(p.admin("key", "list", "Example Rockets")) {
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
	p := newPlace(t)
	key := p.customer("Example Rockets", "1000000")
	old := p.admin("secret", "show", "Example Rockets")
	r := newReceiver(t, old)
	c := newCaller(t, p.serve(append(unlimited, "--callback-allow", "127.0.0.0/8")...).public, key)
	call := func(ref string) {
		t.Helper()
		a := c.post("/lead/enrichment", strings.Replace(askAda, "}", `,"callback_url":"`+r.hook("/lead/enrichment", ref)+`"}`, 1))
		if a.status != http.StatusOK {
			t.Fatalf("%d %s", a.status, a.raw)
		}
	}

	// One secret signs, then both, then the new one alone.
	call("before")
	if came := r.wait("before", 1)[0]; !slices.Equal(came.signedBy, []bool{true}) || came.signatures() != 1 {
		t.Errorf("with one secret: signed by %v, %d signatures", came.signedBy, came.signatures())
	}
	fresh := p.admin("secret", "rotate", "Example Rockets")
	if shown := strings.Fields(p.admin("secret", "show", "Example Rockets")); !slices.Equal(shown, []string{fresh, old}) {
		t.Error("the secrets shown are not the new one and the one before")
	}
	r.trust(fresh, old)
	calls := 0
	within(t, soon, "callbacks are signed with both secrets", func() bool {
		call("rotating")
		calls++
		last := r.wait("rotating", calls)[calls-1]
		return slices.Equal(last.signedBy, []bool{true, true}) && last.signatures() == 2
	})
	newest := p.admin("secret", "rotate", "Example Rockets", "--keep", "1ms")
	r.trust(newest, fresh, old)
	calls = 0
	within(t, soon, "callbacks are signed with the newest secret alone", func() bool {
		call("rotated")
		calls++
		last := r.wait("rotated", calls)[calls-1]
		return slices.Equal(last.signedBy, []bool{true, false, false}) && last.signatures() == 1
	})

	// A receiver that is gone, and comes back.
	r.respond(func(arrival) int { return http.StatusGone })
	call("gone")
	id := r.wait("gone", 1)[0].id
	dead := func() bool {
		return strings.Contains(p.admin("deliveries", "list", "--org", "Example Rockets", "--is", "dead"), id)
	}
	until(t, "the delivery is dead", dead)
	if list := p.admin("deliveries", "list", "--is", "dead"); strings.Contains(list, "ref=") || !strings.Contains(list, "410") {
		t.Errorf("the list shows whole addresses, or not why it is dead:\n%s", list)
	}
	r.respond(nil)
	p.admin("deliveries", "replay", id)
	came := r.wait("gone", 2)
	if came[1].id != id || came[1].body != came[0].body {
		t.Errorf("a replay has the webhook id %s, the first had %s; the same body: %t", came[1].id, id, came[1].body == came[0].body)
	}
	until(t, "the delivery is delivered", func() bool {
		return strings.Contains(p.admin("deliveries", "list", "--org", "Example Rockets", "--is", "delivered"), id)
	})
	if dead() {
		t.Error("what was replayed is still dead")
	}

	// All that are dead, at once.
	r.respond(func(arrival) int { return http.StatusGone })
	for _, ref := range []string{"a", "b", "c"} {
		call(ref)
	}
	until(t, "three deliveries are dead", func() bool {
		return strings.Count(p.admin("deliveries", "list", "--is", "dead"), "msg_") == 3
	})
	r.respond(nil)
	if said := p.admin("deliveries", "replay", "--dead", "Example Rockets"); said != "3 callbacks to be posted again" {
		t.Errorf("replay says %q", said)
	}
	for _, ref := range []string{"a", "b", "c"} {
		if came := r.wait(ref, 2); came[0].id != came[1].id {
			t.Errorf("a replay has another webhook id")
		}
	}
}

// TestServeFailingCallbacks: an attempt that is answered with an error, cut off
// or redirected is made again. The redirect is not followed.
func TestServeFailingCallbacks(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	c := newCaller(t, "", p.customer("Example Rockets", "1000"))
	r := newReceiver(t, p.admin("secret", "show", "Example Rockets"))
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a redirect is followed") }))
	defer elsewhere.Close()
	r.elsewhere = elsewhere.URL
	answers := map[string]int{"error": http.StatusInternalServerError, "broken": 0, "redirect": http.StatusTemporaryRedirect}
	r.respond(func(a arrival) int {
		status, failing := answers[a.ref]
		if !failing {
			return http.StatusOK
		}
		delete(answers, a.ref) // the next time is good
		return status
	})
	c.url = p.serve("--callback-allow", "127.0.0.0/8").public
	for _, ref := range []string{"error", "broken", "redirect"} {
		c.post("/lead/enrichment", strings.Replace(askAda, "}", `,"callback_url":"`+r.hook("/lead/enrichment", ref)+`"}`, 1))
	}
	for _, ref := range []string{"error", "broken", "redirect"} {
		came := r.wait(ref, 2)
		if came[0].id != came[1].id || came[0].body != came[1].body {
			t.Errorf("%s: the second attempt is another message", ref)
		}
	}
}
