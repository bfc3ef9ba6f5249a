package client

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/leadetl/leadetl/internal/secret"
	"github.com/leadetl/leadetl/resolution"
)

// breaking is a connection that takes so many bytes of each write, from some
// moment on.
type breaking struct {
	net.Conn
	broken *atomic.Bool
	takes  int
}

func (b *breaking) Write(p []byte) (int, error) {
	if !b.broken.Load() {
		return b.Conn.Write(p)
	}
	n, err := b.Conn.Write(p[:b.takes])
	return n, errors.Join(err, syscall.EPIPE)
}

// TestSent: a call is known not to have been sent only where not one byte of
// it was. A kept connection that the service has closed is such a case, and
// must not make an unknown call.
func TestSent(t *testing.T) {
	for _, c := range []struct {
		name  string
		tls   bool
		first bool // it breaks before anything was sent
		takes int
		sent  bool
	}{
		{"a kept connection, nothing taken", false, false, 0, false},
		{"a kept connection, one byte taken", false, false, 1, true},
		{"a kept connection under TLS, nothing taken", true, false, 0, false},
		{"a kept connection under TLS, one byte taken", true, false, 1, true},
		{"a new connection, nothing taken", false, true, 0, false},
		{"a new connection under TLS, nothing taken", true, true, 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			var calls atomic.Int64
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				calls.Add(1)
				_, _ = w.Write([]byte(`{"success":true,"data":false}`))
			}))
			o := DefaultOptions()
			o.Key = secret.New("lrk_test_1")
			if c.tls {
				server.StartTLS()
			} else {
				server.Start()
			}
			defer server.Close()
			o.BaseURL = server.URL
			client, err := New(o)
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			var broken atomic.Bool
			client.line.HTTP.DialContext = client.line.Watched(func(ctx context.Context, network, address string) (net.Conn, error) {
				conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
				return &breaking{conn, &broken, c.takes}, err
			})
			if c.tls {
				client.line.HTTP.TLSClientConfig = server.Client().Transport.(*http.Transport).TLSClientConfig
			}
			call := resolution.Call{Request: resolution.Request{Operation: resolution.IPToCompany, Key: "9.9.9.9"}, IdempotencyKey: "1"}
			if !c.first {
				if _, err := client.Do(t.Context(), call); err != nil {
					t.Fatal(err)
				}
			}
			before := calls.Load()
			broken.Store(true)
			_, err = client.Do(t.Context(), call)
			var failure *resolution.CallError
			if !errors.As(err, &failure) || failure.Sent != c.sent || calls.Load() != before {
				t.Errorf("%v, and %d more calls arrived; want sent %t, none", err, calls.Load()-before, c.sent)
			}
		})
	}
}

// scripted is a service that answers with the texts of a function, by the numbers of the
// connection and of its request, from 1. Request 0 is before the first. sent receives when
// all of them are sent.
func scripted(t *testing.T, encrypted bool, answers func(conn, request int) []string) (url string, clientTLS *tls.Config, sent <-chan struct{}) {
	t.Helper()
	told := make(chan struct{}, 100)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	url = "http://" + listener.Addr().String()
	if encrypted {
		model := httptest.NewTLSServer(nil)
		defer model.Close()
		clientTLS = model.Client().Transport.(*http.Transport).TLSClientConfig
		listener, url = tls.NewListener(listener, model.TLS), "https"+url[len("http"):]
	}
	var all sync.WaitGroup
	t.Cleanup(func() { listener.Close(); all.Wait() })
	all.Go(func() {
		for number := 1; ; number++ {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer conn.Close()
				r := bufio.NewReader(conn)
				for request := 0; ; request++ {
					texts := answers(number, request)
					for i, text := range texts {
						if i > 0 {
							time.Sleep(2 * time.Millisecond)
						}
						_, _ = io.WriteString(conn, text)
					}
					if len(texts) > 0 {
						told <- struct{}{}
					}
					next, err := http.ReadRequest(r)
					if err != nil {
						return
					}
					_, _ = io.Copy(io.Discard, next.Body)
				}
			})
		}
	})
	return url, clientTLS, told
}

func written(status int, body string) string {
	return fmt.Sprintf("HTTP/1.1 %d X\r\nContent-Length: %d\r\n\r\n%s", status, len(body), body)
}

// phoneOf is the answer to a request, which does not name its question.
func phoneOf(conn, request int) string {
	return written(200, fmt.Sprintf(`{"lead":{"phone":"+%d000%d"}}`, conn, request))
}

// TestOnlyWhatWasAskedFor: a connection with bytes that belong to no request is not
// used for the next one.
func TestOnlyWhatWasAskedFor(t *testing.T) {
	for _, f := range []struct {
		name    string
		tls     bool
		answers func(conn, request int) []string
		want    []string // phones; an error
	}{
		{"an answer", false, func(c, r int) []string { return []string{phoneOf(c, r)} }, []string{"+10001", "+10002", "+10003"}},
		{"an answer under TLS", true, func(c, r int) []string { return []string{phoneOf(c, r)} }, []string{"+10001", "+10002", "+10003"}},
		{"in pieces", false, func(c, r int) []string { a := phoneOf(c, r); return []string{a[:9], a[9:40], a[40:]} }, []string{"+10001", "+10002", "+10003"}},
		{"twice at once", false, func(c, r int) []string { return []string{phoneOf(c, r) + phoneOf(c, r)} }, []string{"+10001", "+20001", "+30001"}},
		{"twice at once under TLS", true, func(c, r int) []string { return []string{phoneOf(c, r) + phoneOf(c, r)} }, []string{"+10001", "+20001", "+30001"}},
		{"twice, one after the other", false, func(c, r int) []string { return []string{phoneOf(c, r), phoneOf(c, r)} }, []string{"+10001", "+20001", "+30001"}},
		{"twice under TLS, one after the other", true, func(c, r int) []string { return []string{phoneOf(c, r), phoneOf(c, r)} }, []string{"+10001", "+20001", "+30001"}},
		{"a part of a second", false, func(c, r int) []string { return []string{phoneOf(c, r) + phoneOf(c, r)[:20]} }, []string{"+10001", "+20001", "+30001"}},
		{"a line break behind", false, func(c, r int) []string { return []string{phoneOf(c, r) + "\r\n"} }, []string{"+10001", "+20001", "+30001"}},
		{"a late line break", false, func(c, r int) []string { return []string{phoneOf(c, r), "\r\n"} }, []string{"+10001", "+20001", "+30001"}},
		{"an answer of before with the next", false, func(c, r int) []string {
			if r == 1 {
				return []string{phoneOf(c, 1)}
			}
			return []string{phoneOf(c, 1) + phoneOf(c, r)}
		}, []string{"+10001", "protocol: status 200: more than one answer came, and nothing says to which question this one belongs", "+20001"}},
	} {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			url, config, sent := scripted(t, f.tls, func(c, r int) []string {
				if r == 0 {
					return nil
				}
				return f.answers(c, r)
			})
			c := newClient(t, to(url))
			if config != nil {
				c.line.HTTP.TLSClientConfig = config
			}
			for i, want := range f.want {
				reply, err := c.Do(t.Context(), resolution.Call{Request: resolution.Request{Operation: resolution.NetworkToPhone, Key: fmt.Sprintf("network.example/in/p%d", i)}})
				got := ""
				if failed, is := err.(*resolution.CallError); is {
					got = failed.Reason()
				} else if reply.Found.Lead() != nil {
					got = reply.Found.Lead().Phone
				}
				if got != want {
					t.Fatalf("answer %d is %q, want %q: %v", i, got, want, err)
				}
				<-sent
			}
		})
	}
	url, _, sent := scripted(t, false, func(c, r int) []string { return []string{phoneOf(c, r)} })
	c := newClient(t, to(url))
	c.line.HTTP.DialContext = c.line.Watched(func(ctx context.Context, network, address string) (net.Conn, error) {
		defer func() { <-sent }()
		return new(net.Dialer).DialContext(ctx, network, address)
	})
	_, err := c.Do(t.Context(), enrichment)
	if failed, is := err.(*resolution.CallError); !is || failed.Sent {
		t.Errorf("a service that answers before it is asked: %v", err)
	}
}

// TestGarbled: what a server refuses unread on a kept connection is asked again once on
// a new one.
func TestGarbled(t *testing.T) {
	miss := written(200, `{"lead":null}`)
	for _, f := range []struct {
		name, kept, fresh string
		requests          int
		class             resolution.Class // "" for an answer
		status            int
	}{
		{"400 without a body", written(400, ""), miss, 2, "", 0},
		{"400 with a page", written(400, "<html>Bad Request</html>"), miss, 2, "", 0},
		{"400 again", written(400, ""), written(400, ""), 2, resolution.Invalid, 400},
		{"400 in JSON", written(400, `{"error":{"code":"validation_error"}}`), miss, 1, resolution.Invalid, 400},
		{"408 without a body", written(408, ""), miss, 2, "", 0},
		{"408 and then 400", written(408, ""), written(400, ""), 2, resolution.Invalid, 400},
		{"408 again", written(408, ""), written(408, ""), 2, resolution.Unavailable, 408},
		{"500 without a body", written(500, ""), miss, 1, resolution.Unavailable, 500},
	} {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			var requests atomic.Int64
			url, _, _ := scripted(t, false, func(c, r int) []string {
				switch {
				case r == 0:
					return nil
				case c == 1 && r == 1:
					return []string{miss}
				}
				requests.Add(1)
				if c == 1 {
					return []string{f.kept}
				}
				return []string{f.fresh}
			})
			c := newClient(t, to(url))
			if _, err := c.Do(t.Context(), enrichment); err != nil {
				t.Fatal(err)
			}
			_, err := c.Do(t.Context(), enrichment)
			class, status := resolution.Class(""), 0
			if failed, is := err.(*resolution.CallError); is {
				class, status = failed.Class, failed.Status
			}
			if class != f.class || status != f.status || requests.Load() != int64(f.requests) {
				t.Errorf("%v after %d requests, want %s %d after %d", err, requests.Load(), f.class, f.status, f.requests)
			}
		})
	}
}

// TestAfterMixedAnswers: after an answer to another question no connection of before is
// used, those in flight included.
func TestAfterMixedAnswers(t *testing.T) {
	var used sync.Map // connection → its requests
	hold := make(chan struct{})
	url, _, _ := scripted(t, false, func(c, r int) []string {
		used.Store(c, r)
		switch {
		case r == 0:
			return nil
		case c == 1 && r == 1:
			<-hold
		case c == 2 && r == 1:
			return []string{written(200, `{"lead":null,"payload":{"network_url":"network.example/in/bob"}}`)}
		}
		return []string{written(200, `{"lead":null,"payload":{"network_url":"network.example/in/ada-example"}}`)}
	})
	c := newClient(t, to(url))
	first := make(chan error)
	go func() { _, err := c.Do(t.Context(), enrichment); first <- err }()
	for r, _ := used.Load(1); r != 1; r, _ = used.Load(1) {
		time.Sleep(time.Millisecond)
	}
	_, err := c.Do(t.Context(), enrichment)
	if failed, is := err.(*resolution.CallError); !is || !failed.Swapped || !failed.Billed() {
		t.Errorf("an answer to another question: %v", err)
	}
	close(hold)
	if err := <-first; err != nil {
		t.Errorf("the call in flight: %v", err)
	}
	for range 2 {
		if _, err := c.Do(t.Context(), enrichment); err != nil {
			t.Error(err)
		}
	}
	for conn, want := range map[int]int{1: 1, 2: 1, 3: 2} {
		if got, _ := used.Load(conn); got != want {
			t.Errorf("%v requests on connection %d, want %d", got, conn, want)
		}
	}
}

// TestPromisedTwice: two questions have no resolution in common, unless the answers say
// whose they are.
func TestPromisedTwice(t *testing.T) {
	for _, f := range []struct {
		name, payload string
		ids           []string
		swapped       bool // the second
	}{
		{"two ids", "", []string{"res_1", "res_2"}, false},
		{"one id", "", []string{"res_1", "res_1"}, true},
		{"one id, and its question", `"payload":{"keywords":["crm"]},`, []string{"res_1", "res_1"}, false},
		{"no id", "", []string{"res_1", ""}, false},
	} {
		calls := 0
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintf(w, `{%s"resolution":{"id":%q,"status":"processing"},"lead":null}`, f.payload, f.ids[calls])
			calls++
		}))
		c := newClient(t, to(server.URL))
		var last *resolution.CallError
		for page := range f.ids {
			_, err := c.Start(t.Context(), resolution.SearchCall{
				Operation: resolution.KeywordToLead, KeywordSearch: resolution.KeywordSearch{Keywords: []string{"crm"}},
				SearchPage: resolution.SearchPage{Number: page + 1}, ClientRef: fmt.Sprint("ref", page),
			})
			last, _ = err.(*resolution.CallError)
		}
		server.Close()
		if (last != nil && last.Swapped) != f.swapped {
			t.Errorf("%s: %v", f.name, last)
		}
	}
}

// TestResultOfAnother: what was polled for one question, also by a run before, is no
// answer to another; the question itself may get it again.
func TestResultOfAnother(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"success":true,"resolution":{"id":"res_1","status":"completed"},"data":{"leads":[],"total":0}}`)
	}))
	defer server.Close()
	c := newClient(t, to(server.URL))
	if _, err := c.Poll(t.Context(), resolution.KeywordToLead, "res_1", "mine"); err != nil {
		t.Fatal(err)
	}
	for ref, swapped := range map[string]bool{"mine": false, "another": true} {
		_, err := c.Start(t.Context(), resolution.SearchCall{
			Operation: resolution.KeywordToLead, KeywordSearch: resolution.KeywordSearch{Keywords: []string{"crm"}}, ClientRef: ref,
		})
		failed, _ := err.(*resolution.CallError)
		if (failed != nil && failed.Swapped) != swapped || !swapped && err != nil {
			t.Errorf("%s: %v, want swapped %t", ref, err, swapped)
		}
	}
}
