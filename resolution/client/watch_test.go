package client

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"syscall"
	"testing"

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
			client.http.DialContext = watched(func(ctx context.Context, network, address string) (net.Conn, error) {
				conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
				return &breaking{conn, &broken, c.takes}, err
			})
			if c.tls {
				client.http.TLSClientConfig = server.Client().Transport.(*http.Transport).TLSClientConfig
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
