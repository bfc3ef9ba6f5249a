//go:build unix

package serve

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/leadetl/leadetl/cmd/leadetl/clitest"
	"github.com/leadetl/leadetl/internal/testkit/certtest"
	"github.com/leadetl/leadetl/resolution/service/openapi/openapitest"
)

// TestServeTLS: a certificate is replaced while the service runs, and no call
// fails meanwhile.
func TestServeTLS(t *testing.T) {
	t.Parallel()
	p := clitest.NewPlace(t)
	p.Excused = "the new certificate cannot be used"
	key := p.Customer("Example Rockets", "1000000")
	certFile, keyFile := filepath.Join(t.TempDir(), "cert.pem"), filepath.Join(t.TempDir(), "key.pem")
	oldCert, oldKey := certtest.Make(t, 1)
	newCert, newKey := certtest.Make(t, 2)
	certtest.Replace(t, certFile, oldCert)
	certtest.Replace(t, keyFile, oldKey)
	s := p.Serve(append(clitest.Unlimited, "--tls-cert", certFile, "--tls-key", keyFile)...)
	if !strings.HasPrefix(s.Public, "https://") {
		t.Fatalf("the service says it is at %s", s.Public)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(oldCert)
	roots.AppendCertsFromPEM(newCert)
	// Each call on a connection, and so with a handshake, of its own.
	over := func(version uint16) *clitest.Caller {
		c := clitest.NewOperator(t, s.Public)
		c.Key = key
		c.HTTP.Transport = openapitest.Transport(t, &http.Transport{
			DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: version, MaxVersion: version},
		})
		return c
	}
	serial := func() int64 {
		conn, err := tls.Dial("tcp", strings.TrimPrefix(s.Public, "https://"), &tls.Config{RootCAs: roots})
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		return conn.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
	}

	for version, name := range map[uint16]string{tls.VersionTLS12: "TLS 1.2", tls.VersionTLS13: "TLS 1.3"} {
		if a := over(version).Post("/lead/enrichment", clitest.AskAda); a.Status != http.StatusOK {
			t.Errorf("%s: %d %s", name, a.Status, a.Raw)
		}
	}
	if _, err := over(tls.VersionTLS11).Try(t.Context(), "GET", "/healthz", ""); err == nil {
		t.Error("TLS 1.1 is spoken")
	}
	if a, err := clitest.NewOperator(t, "http"+strings.TrimPrefix(s.Public, "https")).Try(t.Context(), "GET", "/healthz", ""); err == nil && a.Status < 400 {
		t.Errorf("plain HTTP is answered: %d", a.Status)
	}
	if got := serial(); got != 1 {
		t.Errorf("the certificate is number %d, want 1", got)
	}

	ctx, stop := context.WithCancel(t.Context())
	var others sync.WaitGroup
	others.Go(func() {
		for c := over(tls.VersionTLS13); ctx.Err() == nil; {
			if a, err := c.Try(context.Background(), "GET", "/healthz", ""); err != nil || a.Status != http.StatusOK {
				t.Errorf("while the certificate is replaced: %d %v", a.Status, err)
			}
		}
	})
	defer others.Wait()
	defer stop()
	// Half of a pair is not used: the pair before stays.
	certtest.Replace(t, certFile, newCert)
	clitest.Until(t, "the half pair is noticed", func() bool {
		if got := serial(); got != 1 {
			t.Errorf("with half a pair the certificate is number %d", got)
		}
		return strings.Contains(s.Said.String(), "the one before stays")
	})
	certtest.Replace(t, keyFile, newKey)
	clitest.Until(t, "the new certificate is shown", func() bool { return serial() == 2 })
}
