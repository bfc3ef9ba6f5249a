//go:build unix

package runcmd

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/internal/testkit/certtest"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/service/callback"
)

// taken keeps what callbacks brought.
type taken struct {
	mu         sync.Mutex
	deliveries []resolution.Delivery
	hints      []string
	err        error // of Deliver
}

func (k *taken) Deliver(_ context.Context, d resolution.Delivery) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.deliveries = append(k.deliveries, d)
	return k.err
}

func (k *taken) Hint(_ context.Context, id string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.hints = append(k.hints, id)
	return nil
}

// secretFile is a file with secrets, a line each.
func secretFile(t *testing.T, secrets ...string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte(strings.Join(secrets, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

const calledBack = `{"type":"resolution.completed","resolution":{"id":"res_1","status":"completed"},"lead":{"phone":"+12025550100"},"payload":{"metadata":{"client_ref":"ref"}}}`

// call posts a callback, signed with the secret if there is one.
func call(t *testing.T, c *http.Client, url, webhook string, s callback.Secret) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), "POST", url, strings.NewReader(calledBack))
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	if signature := callback.Sign(webhook, now, []byte(calledBack), []callback.Secret{s}); signature != "" {
		request.Header.Set(callback.HeaderID, webhook)
		request.Header.Set(callback.HeaderTimestamp, strconv.FormatInt(now.Unix(), 10))
		request.Header.Set(callback.HeaderSignature, signature)
	}
	response, err := c.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	return response.StatusCode
}

// TestListenForCallbacks: what is signed with one of the secrets arrives, over
// plain HTTP and over TLS, and nothing after stop.
func TestListenForCallbacks(t *testing.T) {
	first, second, other := callback.NewSecret(), callback.NewSecret(), callback.NewSecret()
	cert, key := certtest.Make(t, 1)
	certFile, keyFile := filepath.Join(t.TempDir(), "cert.pem"), filepath.Join(t.TempDir(), "key.pem")
	certtest.Replace(t, certFile, cert)
	certtest.Replace(t, keyFile, key)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(cert)
	for _, o := range []callbackFlags{
		{listen: "127.0.0.1:0"},
		{listen: "127.0.0.1:0", tlsCert: certFile, tlsKey: keyFile},
	} {
		scheme := map[bool]string{false: "http", true: "https"}[o.tlsCert != ""]
		t.Run(scheme, func(t *testing.T) {
			var log bytes.Buffer
			to := &taken{}
			o.secretFile = secretFile(t, first.Reveal(), second.Reveal())
			url, stop, err := o.listenFor(t.Context(), to, true, slog.New(slog.NewTextHandler(&log, nil)))
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasPrefix(url, scheme+"://127.0.0.1:") || !strings.HasSuffix(url, "/") || strings.HasSuffix(url, ":0/") {
				t.Errorf("the address is %s", url)
			}
			transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}
			c := &http.Client{Transport: transport}
			for _, f := range []struct {
				webhook string
				secret  callback.Secret
				err     error
				status  int
			}{
				{"msg_1", first, nil, 204},
				{"msg_2", second, nil, 204},
				{"msg_2", second, nil, 204}, // again
				{"msg_3", other, nil, 401},
				{"msg_4", callback.Secret{}, nil, 401},
				{"msg_5", first, resolution.ErrNotAsked, 404},
				{"msg_6", first, errors.New("the disk is full"), 503},
			} {
				to.mu.Lock()
				to.err = f.err
				to.mu.Unlock()
				if got := call(t, c, url, f.webhook, f.secret); got != f.status {
					t.Errorf("%s: answered %d, want %d", f.webhook, got, f.status)
				}
			}
			transport.CloseIdleConnections()
			if err := stop(); err != nil {
				t.Error(err)
			}
			if len(to.deliveries) != 4 || len(to.hints) != 2 || to.hints[0] != "res_1" {
				t.Errorf("%d deliveries, hints %q; want 4 and 2 of res_1", len(to.deliveries), to.hints)
			}
			d := to.deliveries[0]
			if d.ID != "res_1" || d.ClientRef != "ref" || string(d.Body) != calledBack || d.RequestID != "msg_1" {
				t.Errorf("delivered %+v", d)
			}
			if strings.Contains(log.String(), "2025550100") || strings.Contains(log.String(), "whsec_") {
				t.Errorf("the log holds what it must not: %s", log.String())
			}
			if conn, err := net.DialTimeout("tcp", strings.Trim(strings.TrimPrefix(url, scheme+":"), "/"), time.Second); err == nil {
				conn.Close()
				t.Error("it is still listened")
			}
		})
	}
}

// TestListenForCallbacksErrors: each is the command line's fault, and says
// what to do.
func TestListenForCallbacksErrors(t *testing.T) {
	good := secretFile(t, callback.NewSecret().Reveal())
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	t.Setenv(CallbackSecretVariable, "")
	for _, f := range []struct {
		name string
		o    callbackFlags
		want string
	}{
		{"no port", callbackFlags{listen: "127.0.0.1", secretFile: good}, "127.0.0.1 is not an address; write HOST:PORT"},
		{"any address", callbackFlags{listen: "0.0.0.0:8443", secretFile: good}, "--callback-url"},
		{"any address of IPv6", callbackFlags{listen: "[::]:8443", secretFile: good}, "--callback-url"},
		{"a port alone", callbackFlags{listen: ":8443", secretFile: good}, "--callback-url"},
		{"no secret", callbackFlags{listen: "127.0.0.1:0"}, "callback_secret_file"},
		{"an invalid secret", callbackFlags{listen: "127.0.0.1:0", secretFile: secretFile(t, "hunter2")}, "whsec_"},
		{"one good secret, one not", callbackFlags{listen: "127.0.0.1:0", secretFile: secretFile(t, callback.NewSecret().Reveal(), "hunter2")}, "whsec_"},
		{"no certificate", callbackFlags{listen: "127.0.0.1:0", secretFile: good, tlsCert: "missing.pem", tlsKey: "missing.pem"}, "callback_tls_cert"},
		{"a busy port", callbackFlags{listen: busy.Addr().String(), secretFile: good}, " is in use at 127.0.0.1; name another"},
	} {
		_, _, err := f.o.listenFor(t.Context(), &taken{}, true, slog.New(slog.DiscardHandler))
		if err == nil || !strings.Contains(err.Error(), f.want) || strings.Contains(err.Error(), "hunter2") || cli.ExitCode(err) != cli.ExitUsage {
			t.Errorf("%s: %v, want %q", f.name, err, f.want)
		}
	}
	// What is behind a proxy may listen anywhere.
	_, stop, err := (&callbackFlags{listen: ":0", secretFile: good}).listenFor(t.Context(), &taken{}, false, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}
