package provider

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leadetl/leadetl/internal/secret"
	"github.com/leadetl/leadetl/resolution"
)

// clientOf is a client of an entry that asks a handler.
func clientOf(t *testing.T, text, key string, h http.HandlerFunc) *Client {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	o := DefaultOptions()
	o.Base, o.Key = server.URL, secret.New(key)
	c, err := New(parsed(t, text), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func emailCall(key string) resolution.Call {
	return resolution.Call{Request: resolution.Request{Operation: resolution.EmailToHEM, Key: key}}
}

// shownResult is a result in a line.
func shownResult(r resolution.Result) string {
	var failed *resolution.CallError
	switch {
	case errors.As(r.Err, &failed):
		return fmt.Sprintf("%s general=%v unbilled=%v billed=%v after=%s", failed.Class, failed.General, failed.Unbilled, failed.Billed(), failed.Pace.RetryAfter)
	case r.Err != nil:
		return r.Err.Error()
	case r.Reply.Pending:
		return "pending"
	}
	spent := "nothing said"
	if r.Reply.Spent != nil {
		spent = fmt.Sprint(*r.Reply.Spent)
	}
	if !r.Reply.Found.Matched() {
		return r.Reply.Reason + " " + spent
	}
	return "match " + r.Reply.Found.Lead().Email + " " + spent
}

const everyOutcome = `p:
  base: "https://api.example"
  key: none
  ask:
    email: "GET /v1/find?email={email}"
  price: {match: 3, no_match: 1}
  cost: header X-Spent
  limit: header X-Left
  later: {ask: "GET /tasks/{task.id}"}
  answers:
    - match: 200 data
    - no_match: 200 !data | 404
    - later: 202 task.id
    - slow_down: 429
    - not_billed: 503
    - no_credits: 402
    - refused: 401
    - bad_row: 400
  fields:
    email: data.email
`

func TestOutcomes(t *testing.T) {
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	_, _ = io.WriteString(z, `{"data":{"email":"z@x.example"}}`+strings.Repeat(" ", maxBody))
	_ = z.Close()
	for _, f := range []struct {
		name   string
		status int
		header string // NAME: VALUE
		body   string
		want   string
	}{
		{"a match", 200, "", `{"data":{"email":"A@x.example"}}`, "match a@x.example 3"},
		{"a match that says what it cost", 200, "X-Spent: 5", `{"data":{"email":"a@x.example"}}`, "match a@x.example 5"},
		{"a match without the wanted value", 200, "", `{"data":{"name":"A"}}`, "match  3"},
		{"no match", 200, "", `{"data":null}`, "no_match 1"}, {"no match by status, free", 404, "X-Spent: 0", "", "no_match 0"},
		{"later", 202, "", `{"task":{"id":"t1"}}`, "pending"}, {"later without a task", 202, "", `{"task":{}}`, "protocol general=false unbilled=false billed=true after=0s"},
		{"too fast", 429, "Retry-After: 7", "", "limited general=false unbilled=false billed=false after=7s"},
		{"not billed", 503, "Retry-After: 9", "", "unavailable general=false unbilled=true billed=false after=9s"},
		{"no credits", 402, "", "", "no_credits general=false unbilled=false billed=false after=0s"},
		{"refused", 401, "", "", "denied general=true unbilled=false billed=false after=0s"},
		{"a bad row", 400, "", "", "invalid general=false unbilled=false billed=false after=0s"},
		{"no rule", 500, "", "", "protocol general=false unbilled=false billed=true after=0s"},
		{"half of an answer", 200, "", `{"data":{"email":`, "protocol general=false unbilled=false billed=true after=0s"},
		{"two answers", 200, "", `{"data":1}{"data":1}`, "protocol general=false unbilled=false billed=true after=0s"},
		{"a redirect", 302, "Location: /elsewhere", "", "denied general=true unbilled=false billed=false after=0s"},
		{"more than 4 MiB when it is unpacked", 200, "Content-Encoding: gzip", zipped.String(), "protocol general=false unbilled=false billed=true after=0s"},
		{"millions of values", 200, "", `{"data":[` + strings.Repeat("[],", maxBody/4) + "1]}", "protocol general=false unbilled=false billed=true after=0s"},
		{"more than 4 MiB", 200, "", `{"data":1}` + strings.Repeat(" ", maxBody), "protocol general=false unbilled=false billed=true after=0s"},
	} {
		t.Run(f.name, func(t *testing.T) {
			var asked atomic.Int32
			c := clientOf(t, everyOutcome, "", func(w http.ResponseWriter, r *http.Request) {
				asked.Add(1)
				if name, value, is := strings.Cut(f.header, ": "); is {
					w.Header().Set(name, value)
				}
				w.Header().Set("X-Left", "17")
				w.WriteHeader(f.status)
				_, _ = io.WriteString(w, f.body)
			})
			reply, err := c.Do(t.Context(), emailCall("a@x.example"))
			if got := shownResult(resolution.Result{Reply: reply, Err: err}); got != f.want || asked.Load() != 1 {
				t.Errorf("%s after %d requests, want %s", got, asked.Load(), f.want)
			}
			if err == nil && (!reply.Pace.Limited || reply.Pace.Remaining != 17 || !reply.Pending && string(reply.Body) != f.body) {
				t.Errorf("pace %+v, body %s", reply.Pace, reply.Body)
			}
			if err != nil && strings.Contains(err.Error(), "example") {
				t.Errorf("the error has the key: %v", err)
			}
		})
	}
}

// TestNotSent: what cannot be asked is no request.
func TestNotSent(t *testing.T) {
	c := clientOf(t, everyOutcome, "", func(http.ResponseWriter, *http.Request) { t.Error("a request") })
	for _, call := range []resolution.Call{
		emailCall(strings.Repeat("0", 32)),
		{Request: resolution.Request{Operation: resolution.IPToCompany, Key: "192.0.2.1"}},
	} {
		_, err := c.Do(t.Context(), call)
		if failed, is := errors.AsType[*resolution.CallError](err); !is || failed.Sent || failed.Class != resolution.Invalid {
			t.Errorf("%v", err)
		}
	}
	if got := c.DoBatch(t.Context(), []resolution.Call{emailCall("a@x.example"), emailCall("b@x.example")}); got[0].Err == nil || got[1].Err == nil {
		t.Errorf("two keys: %v", got)
	}
}

// TestUnreached: a request of which nothing left, and one whose answer breaks off.
func TestUnreached(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	o := DefaultOptions()
	o.Base = server.URL
	server.Close()
	c, err := New(parsed(t, everyOutcome), o)
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Do(t.Context(), emailCall("a@x.example"))
	if failed, is := errors.AsType[*resolution.CallError](err); !is || failed.Sent || failed.Class != resolution.Unavailable {
		t.Errorf("connection refused: %v", err)
	}
	c = clientOf(t, everyOutcome, "", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		_, _ = io.WriteString(w, `{"data":1}`)
	})
	_, err = c.Do(t.Context(), emailCall("a@x.example"))
	if failed, is := errors.AsType[*resolution.CallError](err); !is || !failed.Billed() || failed.Status != 200 {
		t.Errorf("an answer that breaks off: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	c = clientOf(t, everyOutcome, "", func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	})
	if _, err = c.Do(ctx, emailCall("a@x.example")); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// TestKeys: where the key is in a request, for every way to send one.
func TestKeys(t *testing.T) {
	const post = `{send: "POST /v1/find?x={email}", json: {a: 1}}`
	for _, f := range []struct{ key, ask, secret, want string }{ // want is the line, the header if there is one, and the body
		{"none", "", "", "GET /v1/find?email=a%40x.example"},
		{"bearer", "", "k&1", "GET /v1/find?email=a%40x.example Authorization=Bearer k&1"},
		{"basic", "", "me:pass", "GET /v1/find?email=a%40x.example Authorization=Basic bWU6cGFzcw=="},
		{"header X-Key", "", "k&1\n", "GET /v1/find?email=a%40x.example X-Key=k&1"},
		{"header Authorization Token", "", "k&1", "GET /v1/find?email=a%40x.example Authorization=Token k&1"},
		{"query key", "", "k&1", "GET /v1/find?email=a%40x.example&key=k%261"},
		{"query key", `{send: "POST /{email}"}`, "q7", "POST /a%40x.example?key=q7"},
		{"body key", post, "k\"1", `POST /v1/find?x=a%40x.example {"a":1,"key":"k\"1"}`},
		{"body auth.key", post, "q7", `POST /v1/find?x=a%40x.example {"a":1,"auth":{"key":"q7"}}`},
		{"body key", `{send: "POST /v1", form: {e: "{email}"}}`, "k&1", "POST /v1 e=a%40x.example&key=k%261"},
	} {
		text := strings.Replace(plain, "key: bearer", "key: "+f.key, 1)
		if f.ask != "" {
			text = strings.Replace(text, `"GET /v1/find?email={email}"`, f.ask, 1)
		}
		var got string
		c := clientOf(t, text, f.secret, func(w http.ResponseWriter, r *http.Request) {
			got = r.Method + " " + r.RequestURI
			for _, name := range []string{"Authorization", "X-Key"} {
				if value := r.Header.Get(name); value != "" {
					got += " " + name + "=" + value
				}
			}
			body, _ := io.ReadAll(r.Body)
			got = strings.TrimSpace(got + " " + string(body))
			if r.Method == "POST" && r.ContentLength != int64(len(body)) {
				got += fmt.Sprintf(" with length %d", r.ContentLength)
			}
			w.WriteHeader(http.StatusTeapot)
		})
		_, err := c.Do(t.Context(), emailCall("a@x.example"))
		if got != f.want {
			t.Errorf("%s: %s, want %s", f.key, got, f.want)
		}
		if f.secret != "" && strings.Contains(fmt.Sprintf("%v %+v", err, c.options), strings.TrimSpace(f.secret)) {
			t.Errorf("%s is shown: %v", f.key, err)
		}
	}
	for how, key := range map[string]string{"bearer": "", "basic": "alone", "header X": "a\nb", "query key": "é", "{token: {send: \"POST /t\"}}": "alone"} {
		o := DefaultOptions()
		o.Key = secret.New(key)
		if _, err := New(parsed(t, strings.Replace(plain, "key: bearer", "key: "+how, 1)), o); !errors.Is(err, resolution.ErrInvalid) || key != "" && strings.Contains(err.Error(), key) {
			t.Errorf("%s with %q: %v", how, key, err)
		}
	}
}

// TestRotated: a key that was refused is read again, and the call not repeated.
func TestRotated(t *testing.T) {
	var seen []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = append(seen, r.Header.Get("Authorization"))
		w.WriteHeader(http.StatusUnauthorized)
	}))
	defer server.Close()
	o := DefaultOptions()
	o.Base, o.Key = server.URL, secret.New("old")
	o.Reread = func() (secret.Text, error) { return secret.New("new\n"), nil }
	c, err := New(parsed(t, plain), o)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		_, _ = c.Do(t.Context(), emailCall("a@x.example"))
	}
	if !slices.Equal(seen, []string{"Bearer old", "Bearer new"}) {
		t.Errorf("%q", seen)
	}
}

const withToken = `p:
  base: "https://api.example"
  key: {token: {send: "POST /token", form: {id: "{id}", secret: "{secret}"}, at: t.token, expires: t.for}}
  ask:
    email: "GET /v1/find?email={email}"
  answers:
    - match: 200 data
    - refused: 401
  fields:
    email: data.email
`

// TestToken: it is fetched once, shared, renewed in time, and once when it is refused.
func TestToken(t *testing.T) {
	var fetched atomic.Int32
	var refused atomic.Bool
	c := clientOf(t, withToken, "me:s:1", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/token" {
			body, _ := io.ReadAll(r.Body)
			if string(body) != "id=me&secret=s%3A1" || r.Header.Get("Authorization") != "" {
				t.Errorf("%s", body)
			}
			fmt.Fprintf(w, `{"t":{"token":"T%d","for":100}}`, fetched.Add(1))
			return
		}
		if r.Header.Get("Authorization") != fmt.Sprintf("Bearer T%d", fetched.Load()) || refused.Load() {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = io.WriteString(w, `{"data":{"email":"a@x.example"}}`)
	})
	expect := func(what, want string, tokens int32) {
		t.Helper()
		reply, err := c.Do(t.Context(), emailCall("a@x.example"))
		if got := shownResult(resolution.Result{Reply: reply, Err: err}); got != want || fetched.Load() != tokens {
			t.Errorf("%s: %s with %d tokens, want %s with %d", what, got, fetched.Load(), want, tokens)
		}
	}
	denied := "denied general=true unbilled=false billed=false after=0s"
	expect("the first call", "match a@x.example 1", 1)
	expect("the second", "match a@x.example 1", 1)
	if life := c.tokens.now.ends.Sub(c.tokens.now.since); life != 80*time.Second {
		t.Errorf("the token is used for %s", life)
	}
	c.tokens.now.ends = time.Now()
	expect("at 80% of its life", "match a@x.example 1", 2)
	fetched.Add(1) // the service knows another one
	expect("a new token that is refused", denied, 3)
	c.tokens.now.since = time.Now().Add(-2 * freshToken)
	expect("an older one that is refused", "match a@x.example 1", 4)
	refused.Store(true)
	c.tokens.now.since = time.Now().Add(-2 * freshToken)
	expect("and again", denied, 5)
}

// TestNoToken: without a token no call leaves.
func TestNoToken(t *testing.T) {
	for status, want := range map[int]string{
		401: "denied general=true unbilled=false billed=false after=0s", 429: "limited general=false unbilled=false billed=false after=3s",
		500: "unavailable general=false unbilled=false billed=false after=3s", 200: "unavailable general=false unbilled=false billed=false after=3s",
	} {
		c := clientOf(t, withToken, "me:s", func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/token" {
				t.Error("a call left")
			}
			if status != 401 {
				w.Header().Set("Retry-After", "3")
			}
			w.WriteHeader(status)
			_, _ = io.WriteString(w, "{}")
		})
		reply, err := c.Do(t.Context(), emailCall("a@x.example"))
		if got := shownResult(resolution.Result{Reply: reply, Err: err}); got != want {
			t.Errorf("%d: %s, want %s", status, got, want)
		}
	}
}

// TestSentOnce: a GET is not sent again when a kept connection breaks before its answer, as net/http does
// by itself. It may have been billed.
func TestSentOnce(t *testing.T) {
	for name, breaks := range map[string]func(net.Conn){
		"closed": func(c net.Conn) { _ = c.Close() },
		"reset":  func(c net.Conn) { _ = c.(*net.TCPConn).SetLinger(0); _ = c.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			var asked atomic.Int32
			c := clientOf(t, everyOutcome, "", func(w http.ResponseWriter, r *http.Request) {
				if asked.Add(1) == 1 {
					_, _ = io.WriteString(w, `{"data":null}`)
					return
				}
				conn, _, err := http.NewResponseController(w).Hijack()
				if err != nil {
					t.Error(err)
				}
				breaks(conn)
			})
			if _, err := c.Do(t.Context(), emailCall("a@x.example")); err != nil {
				t.Fatal(err)
			}
			_, err := c.Do(t.Context(), emailCall("b@x.example"))
			failed, is := errors.AsType[*resolution.CallError](err)
			if !is || !failed.Billed() || asked.Load() != 2 {
				t.Errorf("%d requests were sent, and the second says %v", asked.Load(), err)
			}
		})
	}
}

// TestElsewhere: an answer about a profile may be of another address, as it says.
func TestElsewhere(t *testing.T) {
	for said, want := range map[string]bool{
		"": false, "https://www.linkedin.com/in/Ada/": false, "linkedin.com/in/ada-example": true, "https://www.linkedin.com/company/north": true,
	} {
		c := clientOf(t, `p:
  base: "https://api.example"
  key: none
  ask: {network_url: "GET /p?u={network_url}"}
  answers: [{match: 200 name}]
  fields: {full_name: name, network_url: url}
`, "", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintf(w, `{"name": "Ada", "url": %q}`, said) })
		r, err := c.Do(t.Context(), resolution.Call{Request: resolution.Request{Operation: resolution.Enrichment, Key: "linkedin.com/in/ada"}})
		if err != nil || !r.Found.Matched() || r.OtherAddress != want {
			t.Errorf("%s: of another address: %t, %v", said, r.OtherAddress, err)
		}
	}
}

// TestSameAnswers: a provider that gives the same answer to different questions is not taken for one
// that sends answers twice, and is not waited for each time.
func TestSameAnswers(t *testing.T) {
	c := clientOf(t, everyOutcome, "", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"data":{"email":"office@x.example"}}`)
	})
	began := time.Now()
	for i := range 200 {
		if _, err := c.Do(t.Context(), emailCall(fmt.Sprintf("m%d@x.example", i))); err != nil {
			t.Fatal(err)
		}
	}
	if took := time.Since(began); took > 5*time.Second { // 50 ms for each would be 10 s
		t.Errorf("200 calls took %s", took)
	}
}
