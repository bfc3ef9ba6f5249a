package credential

import (
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

	"github.com/leadetl/leadetl/internal/atomicfile"
	"github.com/leadetl/leadetl/internal/secret"
)

// pepperLength is in bytes.
const pepperLength = 32

// The labels (HKDF info) under which the keys for different work are derived
// from one pepper. What is stored depends on them: they are never changed.
const (
	hashLabel = "leadetl/service/credential: hash of an api key"
	sealLabel = "leadetl/service/credential: seal of a secret"
)

// Pepper is a server's own secret. What the store keeps of credentials was
// hashed or sealed under it, and is worth nothing to one who has the store
// alone. It lives in a file outside the store; when that is lost, so are all
// keys and signing secrets.
//
// The zero value is not usable. A Pepper is safe from many goroutines, and
// prints as the word redacted.
type Pepper struct{ derived *derived }

// derived are the keys made from a pepper, 32 bytes each.
type derived struct{ hash, seal []byte }

// LoadPepper reads the pepper in the file at path: 64 hex digits. Where there
// is no such file, and create says so, it makes one with mode 0600 first; of
// any number of processes that do so at once, one makes it and all return it.
// A file that is open to other users is secret.ErrExposed, a missing one
// fs.ErrNotExist. Errors never hold what the file does.
func LoadPepper(path string, create bool) (Pepper, error) {
	text, err := secret.Read("", path)
	if create && errors.Is(err, fs.ErrNotExist) {
		if err := createPepper(path); err != nil {
			return Pepper{}, fmt.Errorf("make the pepper %s: %w", path, err)
		}
		text, err = secret.Read("", path)
	}
	if err != nil {
		return Pepper{}, fmt.Errorf("read the pepper: %w", err)
	}
	raw, err := hex.DecodeString(text.Reveal())
	if err != nil || len(raw) != pepperLength {
		return Pepper{}, fmt.Errorf("read the pepper: %s does not hold %d hex digits: put the file back from a copy", path, 2*pepperLength)
	}
	return newPepper(raw)
}

// createPepper puts a new pepper at path unless a file is there.
//
// The file appears whole and never replaces one: it is linked to the name,
// which fails when the name is taken. A rename would not, and of two
// processes the first would then go on with a pepper that is no more.
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
	return atomicfile.SyncDir(filepath.Dir(path))
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

// Hash is what is stored of an API key: its HMAC-SHA-256. A key has 190 random
// bits, so that no slow hash is needed.
func (p Pepper) Hash(key string) [32]byte {
	mac := hmac.New(sha256.New, p.derived.hash)
	io.WriteString(mac, key)
	return [32]byte(mac.Sum(nil))
}

// malformed is hashed in place of what is no key. It is none itself.
const malformed = "this is as long as an API key, and is never one"

// Identify is how a key that a caller presented is looked up: by its hash,
// provided it is well formed. Where it is not, the hash is one no key has, and
// has taken the same time, so that looking it up too makes the answer to a
// malformed, an unknown and a known key cost the same.
//
// The look-up itself need not be constant in time: nobody without the pepper
// can choose the hash it compares.
func (p Pepper) Identify(key string) (hash [32]byte, wellFormed bool) {
	if wellFormed = WellFormed(key); !wellFormed {
		key = malformed
	}
	return p.Hash(key), wellFormed
}

// Format writes the word redacted for every verb.
func (p Pepper) Format(s fmt.State, _ rune) { io.WriteString(s, "redacted") }
