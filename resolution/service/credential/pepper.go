package credential

import (
	"context"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/leadetl/leadetl/internal/disk"
	"github.com/leadetl/leadetl/internal/secret"
)

// pepperLength is the length of a pepper in bytes.
const pepperLength = 32

// The labels (HKDF info) that derive a key for each purpose from one pepper.
// Stored data depends on them: never change them.
const (
	hashLabel = "leadetl/service/credential: hash of an api key"
	sealLabel = "leadetl/service/credential: seal of a secret"
)

// Pepper is the secret of a server. Stored credentials are hashed or sealed under
// it, so a stolen store alone reveals none. It is kept in a file outside the store.
// If the file is lost, all keys and signing secrets are lost.
//
// The zero value is not usable. A Pepper is safe for concurrent use, and prints as
// the word redacted.
type Pepper struct{ derived *derived }

// derived are the keys made from a pepper, 32 bytes each.
type derived struct{ hash, seal []byte }

// LoadPepper reads the pepper in the file at path: 64 hex digits. If the file is
// missing and create is true, it makes one with mode 0600 first. When several
// processes do so at once, one makes it and all return it. Errors:
// secret.ErrExposed for a file that other users can read, fs.ErrNotExist for a
// missing one. They never contain the content of the file.
func LoadPepper(ctx context.Context, path string, create bool) (Pepper, error) {
	text, err := secret.Read(ctx, "", path)
	if create && errors.Is(err, fs.ErrNotExist) {
		if err := createPepper(path); err != nil {
			return Pepper{}, fmt.Errorf("make the pepper %s: %w", path, err)
		}
		text, err = secret.Read(ctx, "", path)
	}
	if err != nil {
		return Pepper{}, fmt.Errorf("read the pepper: %w", err)
	}
	raw, err := hex.DecodeString(text.Reveal())
	if err != nil || len(raw) != pepperLength {
		return Pepper{}, fmt.Errorf("read the pepper: %s does not hold %d hex digits; restore the file from a backup", path, 2*pepperLength)
	}
	return newPepper(raw)
}

// createPepper writes a new pepper to path unless a file is there.
//
// The file appears complete and never replaces another: it is linked to its name,
// which fails when the name is taken. A rename would replace the file of another
// process, which would then work with a pepper that is lost.
func createPepper(path string) error {
	raw := make([]byte, pepperLength)
	rand.Read(raw)
	f, err := os.CreateTemp(filepath.Dir(path), ".pepper-*.tmp") // with mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.WriteString(hex.EncodeToString(raw) + "\n")
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Link(f.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return disk.Dir(filepath.Dir(path)).Sync()
}

// newPepper derives the keys. Source: RFC 5869.
func newPepper(raw []byte) (Pepper, error) {
	hash, err := hkdf.Key(sha256.New, raw, nil, hashLabel, 32)
	if err != nil {
		return Pepper{}, err
	}
	seal, err := hkdf.Key(sha256.New, raw, nil, sealLabel, 32)
	if err != nil {
		return Pepper{}, err
	}
	return Pepper{&derived{hash, seal}}, nil
}

// Hash returns what is stored of an API key: its HMAC-SHA-256. A key has 190
// random bits, so it needs no slow hash.
func (p Pepper) Hash(key string) [32]byte {
	mac := hmac.New(sha256.New, p.derived.hash)
	io.WriteString(mac, key)
	return [32]byte(mac.Sum(nil))
}

// malformed is hashed in place of a malformed key.
const malformed = "this is as long as an API key, and is never one"

// Identify returns the hash under which to look up a key that a caller presented.
// For a malformed key it returns, after the same time, a hash that no key has. Look
// that up too: then malformed, unknown and known keys take the same time.
//
// The look-up need not take constant time: nobody without the pepper can choose
// the hash it compares.
func (p Pepper) Identify(key string) (hash [32]byte, wellFormed bool) {
	if wellFormed = WellFormed(key); !wellFormed {
		key = malformed
	}
	return p.Hash(key), wellFormed
}

// Format writes the word redacted for every verb.
func (p Pepper) Format(s fmt.State, _ rune) { io.WriteString(s, "redacted") }
