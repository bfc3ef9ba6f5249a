// Package credential says who calls: it makes, checks and keeps API keys and
// verifies the JSON Web Tokens of organizations.
//
// The one thing to know before using it: it knows no store. A key becomes a
// hash under the server's Pepper (Identify), and what has that hash is the
// store's to say. No error and nothing printed here holds a credential or what
// is in one.
package credential

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"

	"github.com/golang-jwt/jwt/v5"
)

// TokenOptions say which tokens are accepted. All are required.
type TokenOptions struct {
	JWKSFile string // the issuer's public keys, a JWK Set (RFC 7517)
	Issuer   string // what the claim iss must be
	Audience string // what the claim aud must be, or name among others
}

// Validate joins everything that is wrong with the options.
func (o TokenOptions) Validate() error {
	var errs []error
	for _, f := range []struct{ name, value string }{
		{"file of keys", o.JWKSFile}, {"issuer", o.Issuer}, {"audience", o.Audience},
	} {
		if f.value == "" {
			errs = append(errs, fmt.Errorf("tokens need the %s", f.name))
		}
	}
	return errors.Join(errs...)
}

// maxKeySetSize bounds a JWK Set, in bytes.
const maxKeySetSize = 1 << 20

// Tokens verifies tokens against the keys in a file. It is safe from many
// goroutines.
type Tokens struct {
	options TokenOptions
	parser  *jwt.Parser
	keys    atomic.Pointer[keySet]

	reload sync.Mutex
	last   reading // guarded by reload
}

// reading is what is known of the version of the file that was read last.
type reading struct {
	info    os.FileInfo // nil when there was none
	settled bool        // it was read twice
	failed  bool        // it is no set of keys, and that was said
}

// sameVersion reports whether info is of the version that was read.
func (r reading) sameVersion(info os.FileInfo) bool {
	if r.info == nil || info == nil {
		return r.info == nil && info == nil
	}
	return os.SameFile(info, r.info) && info.Size() == r.info.Size() && info.ModTime().Equal(r.info.ModTime())
}

// OpenTokens reads the keys. Options that are not valid, and a file that is
// missing or has something wrong, are errors.
func OpenTokens(o TokenOptions) (*Tokens, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	t := &Tokens{options: o, parser: newParser()}
	if err := t.Reload(); err != nil {
		return nil, err
	}
	return t, nil
}

// Reload reads the keys again if their file has changed, which costs a stat
// when it has not: call it every second. When the new version is missing or
// has something wrong, the old keys stay, and the error is returned once for
// that version.
func (t *Tokens) Reload() error {
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
		keys, err = readKeySet(t.options.JWKSFile)
	}
	said := same && t.last.failed
	// A file may change twice between two ticks of its file system's clock. It
	// counts as unchanged only when it was read a call later, too.
	t.last = reading{info: info, settled: same, failed: err != nil}
	switch {
	case err == nil:
		t.keys.Store(&keys)
		return nil
	case said:
		return nil
	}
	return fmt.Errorf("read the token keys: %w", err)
}

// readKeySet reads a JWK Set from a file.
func readKeySet(name string) (keySet, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, maxKeySetSize+1))
	if err != nil {
		return nil, err
	}
	if len(content) > maxKeySetSize {
		return nil, fmt.Errorf("%s is too large for a set of keys: more than %d bytes", name, maxKeySetSize)
	}
	keys, err := parseKeySet(content)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return keys, nil
}
