package client

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leadetl/leadetl/internal/secret"
	"github.com/leadetl/leadetl/resolution"
)

func TestMain(m *testing.M) {
	log.SetOutput(io.Discard) // as the command does: net/http logs an unsolicited answer
	goleak.VerifyTestMain(m)
}

const key = "lrk_test_0123456789"

func newClient(t *testing.T, o Options) *Client {
	t.Helper()
	o.Key = secret.New(key)
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func to(url string) Options {
	o := DefaultOptions()
	o.BaseURL = url
	return o
}

var enrichment = resolution.Call{Request: resolution.Request{Operation: resolution.Enrichment, Key: "network.example/in/ada-example"}}

// TestWhatIsSent: every operation as the interface writes it.
func TestWhatIsSent(t *testing.T) {
	var got *http.Request
	var body map[string]any
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got, body = r, nil
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		io.WriteString(w, `{"lead":null}`)
	}))
	defer server.Close()
	o := to(server.URL + "/v1/")
	o.CallbackURL = "https://hooks.example/leads"
	c := newClient(t, o)
	for _, f := range []struct {
		operation        resolution.Operation
		key, path, field string
		value            string
		callback         bool
	}{
		{"email_to_hem", "a@b.example", "/v1/lead/resolution/email_to_hem", "email", "a@b.example", true},
		{"network_to_hem", "network.example/in/a", "/v1/lead/resolution/network_to_hem", "network_url", "https://network.example/in/a", true},
		{"network_to_phone", "network.example/in/a", "/v1/lead/resolution/network_to_phone", "network_url", "https://network.example/in/a", true},
		{"ip_to_company", "192.0.2.1", "/v1/lead/resolution/ip_to_company", "ip", "192.0.2.1", false},
		{"enrichment", "network.example/in/a", "/v1/lead/enrichment", "network_url", "https://network.example/in/a", true},
		{"enrichment", "x.example/v?a=1&b=2\x00http://www.x.example/v?b=2&a=1", "/v1/lead/enrichment", "network_url", "http://www.x.example/v?b=2&a=1", true},
		{"deanonymization", "2001:db8::1", "/v1/lead/deanonymization", "ip", "2001:db8::1", true},
	} {
		asked, address := resolution.CutAddress(f.key)
		_, err := c.Do(t.Context(), resolution.Call{Request: resolution.Request{Operation: f.operation, Key: asked}, Address: address, IdempotencyKey: "k-1"})
		if err != nil {
			t.Fatal(err)
		}
		h := got.Header
		if got.Method != "POST" || got.URL.Path != f.path || h.Get("Authorization") != "Bearer "+key || h.Get("Content-Type") != "application/json" ||
			h.Get("Idempotency-Key") != "k-1" || body[f.field] != f.value || (body["callback_url"] == o.CallbackURL) != f.callback {
			t.Errorf("%s: %s %s %v %v", f.operation, got.Method, got.URL.Path, h, body)
		}
	}
}

func TestAnotherHeader(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Api-Key") != key || r.Header.Get("Authorization") != "" {
			t.Errorf("header %v", r.Header)
		}
		io.WriteString(w, `{"lead":null}`)
	}))
	defer server.Close()
	o := to(server.URL)
	o.HeaderName = "X-Api-Key"
	if _, err := newClient(t, o).Do(t.Context(), enrichment); err != nil {
		t.Fatal(err)
	}
}

// TestNothingIsSentAgain: a kept connection that breaks after the request was
// written is what net/http answers with a second request, given an
// idempotency key. Ours must not: the first may have been billed.
func TestNothingIsSentAgain(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var requests atomic.Int32
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			r := bufio.NewReader(conn)
			for {
				request, err := http.ReadRequest(r)
				if err != nil {
					break
				}
				io.Copy(io.Discard, request.Body)
				if requests.Add(1) > 1 {
					break // the second gets no answer
				}
				io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\n{\"lead\":null}")
			}
			conn.Close()
		}
	}()
	t.Cleanup(func() { listener.Close(); <-done })
	c := newClient(t, to("http://"+listener.Addr().String()))
	call := enrichment
	call.IdempotencyKey = "k-1"
	if _, err := c.Do(t.Context(), call); err != nil {
		t.Fatal(err)
	}
	_, err = c.Do(t.Context(), call)
	var e *resolution.CallError
	if !errors.As(err, &e) || !e.Sent || !e.Billed() || !errors.Is(err, resolution.ErrUnavailable) {
		t.Errorf("error %v, want one that was sent", err)
	}
	if n := requests.Load(); n != 2 {
		t.Errorf("%d requests reached the service, want 2", n)
	}
}

func TestConnectionRefusedWasNotSent(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listener.Close()
	_, err = newClient(t, to("http://"+listener.Addr().String())).Do(t.Context(), enrichment)
	var e *resolution.CallError
	if !errors.As(err, &e) || e.Sent || e.Billed() || e.Detail != "connection refused" {
		t.Errorf("error %v", err)
	}
}

func TestRedirectsAreRefused(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the redirect was followed") }))
	defer elsewhere.Close()
	server := httptest.NewServer(http.RedirectHandler(elsewhere.URL, http.StatusTemporaryRedirect))
	defer server.Close()
	_, err := newClient(t, to(server.URL)).Do(t.Context(), enrichment)
	if !errors.Is(err, resolution.ErrDenied) {
		t.Errorf("error %v, want ErrDenied", err)
	}
}

// A service at the other scheme is a wrong address, and stays one.
func TestWrongSchemeIsDenied(t *testing.T) {
	answers := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the service was reached") })
	plain, encrypted := httptest.NewServer(answers), httptest.NewUnstartedServer(answers)
	encrypted.Config.ErrorLog = log.New(io.Discard, "", 0)
	encrypted.StartTLS()
	defer plain.Close()
	defer encrypted.Close()
	for _, address := range []string{strings.Replace(plain.URL, "http:", "https:", 1), strings.Replace(encrypted.URL, "https:", "http:", 1), encrypted.URL} {
		_, err := newClient(t, to(address)).Do(t.Context(), enrichment)
		var e *resolution.CallError
		if !errors.As(err, &e) || e.Class != resolution.Denied || e.Billed() {
			t.Errorf("%s: error %v, want class %s", address, err, resolution.Denied)
		}
	}
	for _, text := range []string{
		"<html><head><title>400 The plain HTTP request was sent to HTTPS port</title></head>",
		"Reason: You're speaking plain HTTP to an SSL-enabled server port.<br />",
	} {
		proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, text, http.StatusBadRequest) }))
		_, err := newClient(t, to(proxy.URL)).Do(t.Context(), enrichment)
		proxy.Close()
		if !errors.Is(err, resolution.ErrDenied) {
			t.Errorf("%s: error %v, want ErrDenied", text, err)
		}
	}
}

func TestNoAnswerInTime(t *testing.T) {
	hold := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-hold }))
	defer server.Close()
	defer close(hold)
	o := to(server.URL)
	o.Timeout = 50 * time.Millisecond
	_, err := newClient(t, o).Do(t.Context(), enrichment)
	var e *resolution.CallError
	if !errors.As(err, &e) || !e.Billed() || e.Detail != "no answer in time" {
		t.Errorf("error %v", err)
	}
}

// TestCancelled: a call that was cancelled says so once, and nothing of where
// it went.
func TestCancelled(t *testing.T) {
	arrived, hold := make(chan struct{}), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { close(arrived); <-hold }))
	defer server.Close()
	defer close(hold)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-arrived; cancel() }()
	_, err := newClient(t, to(server.URL)).Do(ctx, enrichment)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want Canceled", err)
	}
	if got, want := err.Error(), "enrichment: unavailable: the call was cancelled"; got != want {
		t.Errorf("the error says %q, want %q", got, want)
	}
}

func TestAnswersAreBounded(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		chunk := strings.Repeat(" ", 1<<20)
		for range maxBody>>20 + 2 {
			if _, err := io.WriteString(w, chunk); err != nil {
				return
			}
		}
	}))
	defer server.Close()
	_, err := newClient(t, to(server.URL)).Do(t.Context(), enrichment)
	var e *resolution.CallError
	if !errors.As(err, &e) || e.Class != resolution.Protocol {
		t.Errorf("error %v", err)
	}
}

func TestUnknownAuthority(t *testing.T) {
	server := httptest.NewTLSServer(http.NotFoundHandler())
	server.Config.ErrorLog = nil
	defer server.Close()
	_, err := newClient(t, to(server.URL)).Do(t.Context(), enrichment)
	var e *resolution.CallError
	if !errors.As(err, &e) || e.Sent || !strings.Contains(e.Detail, "ca_file") {
		t.Errorf("error %v", err)
	}
}

// TestNoTLS: an address that is of plain HTTP says so.
func TestNoTLS(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	_, err := newClient(t, to("https"+strings.TrimPrefix(server.URL, "http"))).Do(t.Context(), enrichment)
	var e *resolution.CallError
	if !errors.As(err, &e) || e.Sent || !strings.Contains(e.Detail, "does not speak TLS") {
		t.Errorf("error %v", err)
	}
}

// TestProxyRefuses: a proxy that makes no connection is named as the one that
// refuses, by its status alone.
func TestProxyRefuses(t *testing.T) {
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "canary", http.StatusProxyAuthRequired)
	}))
	defer proxy.Close()
	address, err := url.Parse(proxy.URL)
	if err != nil {
		t.Fatal(err)
	}
	c := newClient(t, to("https://service.example"))
	c.line.HTTP.Proxy = http.ProxyURL(address)
	_, err = c.Do(t.Context(), enrichment)
	var e *resolution.CallError
	if !errors.As(err, &e) || e.Sent || e.Detail != "the proxy does not connect to the service: status 407" {
		t.Errorf("error %v", err)
	}
}

func TestOptions(t *testing.T) {
	for _, f := range []struct {
		name   string
		change func(*Options)
		want   string
	}{
		{"no scheme", func(o *Options) { o.BaseURL = "service.example" }, "not of the form"},
		{"another scheme", func(o *Options) { o.BaseURL = "ftp://service.example" }, "not of the form"},
		{"a user", func(o *Options) { o.BaseURL = "https://user:word@service.example" }, "names a user"},
		{"a query", func(o *Options) { o.BaseURL = "https://service.example/?a=b" }, "query"},
		{"no key", func(o *Options) { o.Key = secret.New("") }, "no API key"},
		{"a key with a line break", func(o *Options) { o.Key = secret.New("a\nb") }, "a header cannot carry"},
		{"an invalid header", func(o *Options) { o.HeaderName = "X Key" }, "not a header name"},
		{"no concurrency", func(o *Options) { o.Concurrency = 0 }, "concurrency"},
		{"no timeout", func(o *Options) { o.Timeout = 0 }, "timeout"},
	} {
		o := to("https://service.example")
		o.Key = secret.New(key)
		f.change(&o)
		_, err := New(o)
		if !errors.Is(err, resolution.ErrInvalid) || !strings.Contains(err.Error(), f.want) || strings.Contains(err.Error(), "user:word") {
			t.Errorf("%s: %v, want %q", f.name, err, f.want)
		}
	}
}

// TestLateRefusal: what counts is the time since the last byte was sent.
func TestLateRefusal(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		after  time.Duration
		billed bool
	}{{"at once", 0, false}, {"late", promptly + 100*time.Millisecond, true}} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.ReadAll(r.Body)
			time.Sleep(c.after)
			w.WriteHeader(http.StatusServiceUnavailable)
		}))
		_, err := newClient(t, to(server.URL)).Do(t.Context(), enrichment)
		if e, is := errors.AsType[*resolution.CallError](err); !is || e.Billed() != c.billed {
			t.Errorf("%s: %v", c.name, err)
		}
		server.Close()
	}
}

// TestKeyIsReadAgain: after a 401 the next call has the key that is there now.
func TestKeyIsReadAgain(t *testing.T) {
	var keys []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		keys = append(keys, strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
		if len(keys) > 1 && keys[len(keys)-1] != key {
			_, _ = io.WriteString(w, `{"lead":null}`)
			return
		}
		w.WriteHeader(http.StatusUnauthorized)
	}))
	defer server.Close()
	o := to(server.URL)
	there := []string{"", "two\nlines", "rotated"}
	o.Reread = func() (secret.Text, error) {
		now := there[0]
		there = there[1:]
		return secret.New(now), nil
	}
	c := newClient(t, o)
	for range 3 { // an empty file and one that is being written are no keys
		if _, err := c.Do(t.Context(), enrichment); !errors.Is(err, resolution.ErrDenied) {
			t.Fatal(err)
		}
	}
	if _, err := c.Do(t.Context(), enrichment); err != nil {
		t.Fatal(err)
	}
	if want := []string{key, key, key, "rotated"}; !slices.Equal(keys, want) {
		t.Errorf("sent %d keys, of them the new one last: %t", len(keys), keys[len(keys)-1] == "rotated")
	}
}

// TestKeyWindow: how long a service remembers an idempotency key, in every kind of answer.
func TestKeyWindow(t *testing.T) {
	const match, miss, broken = `{"lead":{"full_name":"Ada"}}`, `{"lead":null}`, "broken"
	for _, f := range []struct {
		name   string
		status int
		body   string
		header []string
		want   time.Duration // 0: not said
	}{
		{"an answer", 200, match, []string{"86400"}, 24 * time.Hour},
		{"a miss", 200, miss, []string{" 600 "}, 10 * time.Minute},
		{"a promise", 200, `{"resolution":{"id":"res_1","status":"processing"}}`, []string{"600"}, 10 * time.Minute},
		{"a failure", 500, "", []string{"600"}, 10 * time.Minute},
		{"a limit", 429, "", []string{"600"}, 10 * time.Minute},
		{"an answer that cannot be read", 200, "{", []string{"600"}, 10 * time.Minute},
		{"an answer that breaks off", 200, broken, []string{"600"}, 10 * time.Minute},
		{"none at all", 200, match, []string{"0"}, time.Millisecond},
		{"two values", 200, match, []string{"600", "60"}, time.Minute},
		{"for ever", 200, match, []string{"1e300"}, 10 * 365 * 24 * time.Hour},
		{"nothing", 200, match, nil, 0},
		{"nothing, of a failure", 500, "", nil, 0},
		{"no number", 200, match, []string{"24h"}, 0},
		{"less than nothing", 200, match, []string{"-5"}, 0},
		{"not a number", 200, match, []string{"NaN"}, 0},
	} {
		t.Run(f.name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header()["Idempotency-Window"] = f.header
				if f.body == broken {
					w.Header().Set("Content-Length", "100")
				}
				w.WriteHeader(f.status)
				io.WriteString(w, f.body)
			}))
			defer server.Close()
			r, err := newClient(t, to(server.URL)).Do(t.Context(), enrichment)
			got := r.KeyWindow
			if failed, is := errors.AsType[*resolution.CallError](err); is {
				got = failed.KeyWindow
			}
			if got != f.want {
				t.Errorf("%s after %v, want %s", got, err, f.want)
			}
		})
	}
}
