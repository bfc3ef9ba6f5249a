package wire

import (
	"context"
	"crypto/tls"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/leadetl/leadetl/internal/wholefile"
)

// CertificateFile is a file of certificates, or of the key of one.
var CertificateFile = wholefile.Kind{Name: "a certificate or its key", Bytes: 4 << 20}

// certificate is a certificate in files that are replaced before it expires.
type certificate struct {
	certFile, keyFile string
	log               *slog.Logger

	mu      sync.Mutex
	current *tls.Certificate
	of      [2]time.Time // modification times of the files of current, or of the last failure
}

// OpenCertificate returns the TLS configuration of a server with a certificate
// in files. It reads the files again when they change. The error does not name
// the flags.
func OpenCertificate(ctx context.Context, certFile, keyFile string, log *slog.Logger) (*tls.Config, error) {
	c := &certificate{certFile: certFile, keyFile: keyFile, log: log, of: changed(certFile, keyFile)}
	pair, err := c.load(ctx)
	if err != nil {
		return nil, err
	}
	c.current = &pair
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: c.get}, nil
}

// load reads the files.
func (c *certificate) load(ctx context.Context) (tls.Certificate, error) {
	certificates, err := CertificateFile.Read(ctx, c.certFile)
	if err != nil {
		return tls.Certificate{}, err
	}
	key, err := CertificateFile.Read(ctx, c.keyFile)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.X509KeyPair(certificates, key)
}

// get implements tls.Config.GetCertificate. If new files are invalid, it logs
// that once and keeps the previous certificate.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if of := changed(c.certFile, c.keyFile); of != c.of {
		c.of = of
		pair, err := c.load(context.Background()) // not of a call, whose end would keep the old one
		if err != nil {
			c.log.Error("the new certificate cannot be used; the one before stays", "error", err)
		} else {
			c.current = &pair
			c.log.Info("the certificate was replaced", "expires", pair.Leaf.NotAfter)
		}
	}
	return c.current, nil
}

// changed returns the modification times of files, zero for a missing file.
func changed(files ...string) (at [2]time.Time) {
	for i, name := range files {
		if info, err := os.Stat(name); err == nil {
			at[i] = info.ModTime()
		}
	}
	return at
}
