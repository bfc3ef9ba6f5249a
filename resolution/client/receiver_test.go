package client_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/client"
	"github.com/leadetl/leadetl/resolution/service/callback"
)

// signed is the header of a callback, in one of the two spellings.
func signed(prefix, id string, at time.Time, body string, secrets ...callback.Secret) http.Header {
	h := http.Header{}
	h.Set(prefix+"Id", id)
	h.Set(prefix+"Timestamp", strconv.FormatInt(at.Unix(), 10))
	h.Set(prefix+"Signature", callback.Sign(id, at, []byte(body), secrets))
	return h
}

// TestReceiver: each request, its answer, and what is made of it.
func TestReceiver(t *testing.T) {
	const canary = "jane.secret@mail.example"
	const body = `{"type":"resolution.completed","resolution":{"id":"res_1"},"payload":{"email":"` + canary + `","metadata":{"client_ref":"` + canary + `"}}}`
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	old, new, other := callback.NewSecret(), callback.NewSecret(), callback.NewSecret()
	standard := signed("Webhook-", "msg_1", now, body, new)
	for _, f := range []struct {
		name      string
		method    string
		header    http.Header
		body      string
		deliver   error
		status    int
		delivered int // for the same request twice
		hinted    string
	}{
		{"signed", "POST", standard, body, nil, 204, 1, ""},
		{"in the older spelling", "POST", signed("Svix-", "msg_1", now, body, new), body, nil, 204, 1, ""},
		{"by the secret that goes", "POST", signed("Webhook-", "msg_1", now, body, old), body, nil, 204, 1, ""},
		{"by both", "POST", signed("Webhook-", "msg_1", now, body, old, new), body, nil, 204, 1, ""},
		{"5 minutes ago", "POST", signed("Webhook-", "msg_1", now.Add(-5*time.Minute), body, new), body, nil, 204, 1, ""},
		{"longer ago", "POST", signed("Webhook-", "msg_1", now.Add(-5*time.Minute-time.Second), body, new), body, nil, 401, 0, "res_1"},
		{"in the future", "POST", signed("Webhook-", "msg_1", now.Add(5*time.Minute+time.Second), body, new), body, nil, 401, 0, "res_1"},
		{"not signed", "POST", http.Header{}, body, nil, 401, 0, "res_1"},
		{"by somebody else", "POST", signed("Webhook-", "msg_1", now, body, other), body, nil, 401, 0, "res_1"},
		{"of another body", "POST", standard, body + " ", nil, 401, 0, "res_1"},
		{"not signed, and nothing", "POST", http.Header{}, "", nil, 401, 0, ""},
		{"signed, and no JSON", "POST", signed("Webhook-", "msg_1", now, canary, new), canary, nil, 422, 0, ""},
		{"not understood", "POST", standard, body, fmt.Errorf("%w: finished without an answer", resolution.ErrInvalid), 422, 2, ""},
		{"not asked for", "POST", standard, body, resolution.ErrNotAsked, 404, 2, ""},
		{"not stored", "POST", standard, body, errors.New("the disk is full"), 503, 2, ""},
		{"too large", "POST", standard, strings.Repeat(" ", 1<<20+1), nil, 413, 0, ""},
		{"a look", "GET", http.Header{}, "", nil, 405, 0, ""},
	} {
		t.Run(f.name, func(t *testing.T) {
			var log bytes.Buffer
			delivered, hinted := 0, ""
			r := client.NewReceiver(client.ReceiverOptions{
				Verify: func(h http.Header, body []byte) (string, error) {
					return callback.Verify(h, body, []callback.Secret{old, new}, now)
				},
				Deliver: func(_ context.Context, d resolution.Delivery) error {
					delivered++
					if d.ID != "res_1" || d.ClientRef != canary || d.RequestID != "msg_1" || string(d.Body) != f.body {
						t.Errorf("delivered %+v", d)
					}
					return f.deliver
				},
				Hint: func(_ context.Context, id string) { hinted = id },
				Log:  slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})),
			})
			for range 2 {
				request := httptest.NewRequest(f.method, "/any/where", strings.NewReader(f.body))
				request.Header = f.header
				answered := httptest.NewRecorder()
				r.ServeHTTP(answered, request)
				if answered.Code != f.status || answered.Body.Len() != 0 {
					t.Errorf("answered %d %q, want %d", answered.Code, answered.Body, f.status)
				}
			}
			if delivered != f.delivered || hinted != f.hinted {
				t.Errorf("delivered %d times, hint %q; want %d, %q", delivered, hinted, f.delivered, f.hinted)
			}
			if strings.Contains(log.String(), "secret") {
				t.Errorf("the log holds what the callback does: %s", log.String())
			}
		})
	}
}

// TestReceiverForgets: a Receiver knows the last few thousand callbacks again,
// and no more.
func TestReceiverForgets(t *testing.T) {
	delivered := 0
	r := client.NewReceiver(client.ReceiverOptions{
		Verify:  func(h http.Header, _ []byte) (string, error) { return h.Get("Webhook-Id"), nil },
		Deliver: func(context.Context, resolution.Delivery) error { delivered++; return nil },
		Log:     slog.New(slog.DiscardHandler),
	})
	send := func(i int) {
		request := httptest.NewRequest("POST", "/", strings.NewReader("{}"))
		request.Header.Set("Webhook-Id", strconv.Itoa(i))
		r.ServeHTTP(httptest.NewRecorder(), request)
	}
	const many = 5000
	for i := range many {
		send(i)
	}
	for i := many - 4000; i < many; i++ {
		send(i)
	}
	if delivered != many {
		t.Errorf("delivered %d times, want %d: those sent again were lately stored", delivered, many)
	}
	send(0)
	if delivered != many+1 {
		t.Error("the first of 5000 is still known: what is remembered grows")
	}
}

// TestReadDelivery: where services put the names of what they post.
func TestReadDelivery(t *testing.T) {
	two := int64(2)
	for _, f := range []struct {
		name, header, body string
		want               resolution.Delivery
	}{
		{"our own", "Webhook-Id: msg_1", `{"type":"resolution.completed","resolution":{"id":"res_1","status":"completed"},"payload":{"metadata":{"client_ref":"ref"}}}`,
			resolution.Delivery{ID: "res_1", ClientRef: "ref", RequestID: "msg_1"}},
		{"id at the top", "", `{"resolution_id":"res_1","metadata":{"client_ref":"ref"}}`, resolution.Delivery{ID: "res_1", ClientRef: "ref"}},
		{"id in a header", "X-Resolution-Id: res_1", `{}`, resolution.Delivery{ID: "res_1"}},
		{"reference in the resolution", "", `{"resolution":{"id":7,"metadata":{"client_ref":"ref"}}}`, resolution.Delivery{ID: "7", ClientRef: "ref"}},
		{"reference in the data", "", `{"data":{"metadata":{"client_ref":"ref"}}}`, resolution.Delivery{ClientRef: "ref"}},
		{"a price in a header", "X-Credits-Spent: 2", `{}`, resolution.Delivery{Spent: &two}},
		{"a price in the body", "", `{"credits":{"spent":"2"}}`, resolution.Delivery{Spent: &two}},
		{"a request id before a webhook's", "X-Request-Id: req_1", `{}`, resolution.Delivery{RequestID: "req_1"}},
		{"the older spelling", "Svix-Id: msg_1", `{}`, resolution.Delivery{RequestID: "msg_1"}},
	} {
		h := http.Header{}
		if name, value, ok := strings.Cut(f.header, ": "); ok {
			h.Set(name, value)
		}
		got, err := client.ReadDelivery(h, []byte(f.body))
		f.want.Body = []byte(f.body)
		if err != nil || !reflect.DeepEqual(got, f.want) {
			t.Errorf("%s: %+v, %v; want %+v", f.name, got, err, f.want)
		}
	}
	for _, body := range []string{"", "[]", "text", `{"resolution":`} {
		if _, err := client.ReadDelivery(http.Header{}, []byte(body)); !errors.Is(err, resolution.ErrInvalid) {
			t.Errorf("%q: %v, want ErrInvalid", body, err)
		}
	}
}
