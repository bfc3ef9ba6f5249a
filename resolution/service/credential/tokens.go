// Package credential identifies callers: it makes and checks API keys and verifies
// the JSON Web Tokens of organizations.
//
// The one thing to know before using it: it has no store. A key becomes a hash
// under the server's Pepper (Identify), and the store knows the owner of the hash.
// Errors and logs here never contain a credential or a part of one.
package credential

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/leadetl/leadetl/internal/wholefile"
)

// TokenOptions say which tokens are accepted. All fields are required.
type TokenOptions struct {
	JWKSFile string // the issuer's public keys, a JWK Set (RFC 7517)
	Issuer   string // the required claim iss
	Audience string // what the claim aud must be or contain
}

// Validate joins everything that is wrong with the options.
func (o TokenOptions) Validate() error {
	var errs []error
	for _, f := range []struct{ name, value string }{
		{"file of keys", o.JWKSFile}, {"issuer", o.Issuer}, {"audience", o.Audience},
	} {
		if f.value == "" {
			errs = append(errs, fmt.Errorf("the %s is missing", f.name))
		}
	}
	return errors.Join(errs...)
}

// keySetFile is the file of a JWK Set.
var keySetFile = wholefile.Kind{Name: "a set of keys", Bytes: 1 << 20}

// Tokens verifies tokens against the keys in a file. It is safe for concurrent use.
type Tokens struct {
	options TokenOptions
	parser  *jwt.Parser
	keys    atomic.Pointer[keySet]

	failing atomic.Int64 // since when the file cannot be read, in Unix seconds; 0 when it can

	reload sync.Mutex
	last   reading // guarded by reload
}

// believed is how long keys count after their file could be read. It is the longest
// life of a token: whoever took the keys away may have done it on purpose.
const believed = maxLifetime

// reading describes the version of the file that was read last.
type reading struct {
	info    os.FileInfo // nil when the file was missing
	settled bool        // this version was read twice
	failed  bool        // this version is no key set, and the error was returned
}

// sameVersion reports whether info is of the version that was read.
func (r reading) sameVersion(info os.FileInfo) bool {
	if r.info == nil || info == nil {
		return r.info == nil && info == nil
	}
	return os.SameFile(info, r.info) && info.Size() == r.info.Size() && info.ModTime().Equal(r.info.ModTime())
}

// OpenTokens reads the keys. Invalid options and a missing or invalid file are
// errors.
func OpenTokens(ctx context.Context, o TokenOptions) (*Tokens, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	t := &Tokens{options: o, parser: newParser()}
	if err := t.Reload(ctx, time.Time{}); err != nil {
		return nil, err
	}
	return t, nil
}

// Reload reads the keys again if their file has changed; otherwise it costs one
// stat, so call it every second. If the new version is missing, empty or invalid,
// the old keys count for another hour, and the error is returned once for that
// version.
func (t *Tokens) Reload(ctx context.Context, now time.Time) error {
	t.reload.Lock()
	defer t.reload.Unlock()
	info, err := os.Stat(t.options.JWKSFile)
	if err != nil {
		info = nil
	}
	same := t.last.sameVersion(info)
	if same && t.last.settled {
		return nil
	}
	var keys keySet
	if err == nil {
		keys, err = readKeySet(ctx, t.options.JWKSFile)
	}
	said := same && t.last.failed
	// A file may change twice within one tick of the file system's clock, so a
	// version is read again by the next call before it counts as unchanged.
	t.last = reading{info: info, settled: same, failed: err != nil}
	switch {
	case err == nil:
		t.keys.Store(&keys)
		t.failing.Store(0)
		return nil
	case said:
		return nil
	}
	t.failing.CompareAndSwap(0, now.Unix())
	return fmt.Errorf("read the token keys: %w; the keys from before count until %s",
		err, time.Unix(t.failing.Load(), 0).Add(believed).UTC().Format(time.RFC3339))
}

// readKeySet reads a JWK Set from a file.
func readKeySet(ctx context.Context, name string) (keySet, error) {
	content, err := keySetFile.Read(ctx, name)
	if err != nil {
		return nil, err
	}
	keys, err := parseKeySet(content)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return keys, nil
}
