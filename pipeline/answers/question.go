package answers

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"

	"github.com/leadetl/leadetl/resolution"
)

// Scope is what all questions of a run have in common.
type Scope struct {
	// Service says who is asked: the base URL, or another word of the caller's.
	Service   string
	Operation resolution.Operation
	// Settings stands for whatever else an answer depends on; answers under
	// other settings are other answers.
	Settings string
}

// Question is what is paid for once.
type Question struct {
	Scope
	// Key is the identifier's canonical form. It is personal data, and no part
	// of what this package's errors say.
	Key string
}

// Hash is a question's identity, the SHA-256 of its parts. It is what tools
// print in place of a key.
type Hash [sha256.Size]byte

// keyBytes is how much of a Hash the table of keys has: enough that no two
// questions share it, and less to write and to search.
const keyBytes = 16

// Hash computes q's identity.
func (q Question) Hash() Hash {
	return newHasher(q.Scope).hash(q.Key)
}

// Hasher is Question.Hash for the keys of one scope, one after the other from
// one goroutine: each costs its SHA-256 and nothing else.
func (s Scope) Hasher() func(key []byte) Hash {
	h := newHasher(s)
	return func(key []byte) Hash {
		h.text = append(h.text[:h.n], key...)
		return sha256.Sum256(h.text)
	}
}

// String is h in hex.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// ParseHash reads what String wrote. The error does not repeat s.
func ParseHash(s string) (h Hash, err error) {
	if len(s) != hex.EncodedLen(len(h)) {
		return h, fmt.Errorf("%w: a key hash has %d hex digits", resolution.ErrInvalid, hex.EncodedLen(len(h)))
	}
	if _, err := hex.Decode(h[:], []byte(s)); err != nil {
		return Hash{}, fmt.Errorf("%w: a key hash is hex", resolution.ErrInvalid)
	}
	return h, nil
}

// hasher hashes the questions of one scope.
type hasher struct {
	text []byte // the scope, and then a key
	n    int    // how much of text is the scope
}

func newHasher(s Scope) *hasher {
	h := &hasher{}
	for _, part := range []string{s.Service, string(s.Operation), s.Settings} {
		h.text = binary.AppendUvarint(h.text, uint64(len(part))) // or two scopes could read the same
		h.text = append(h.text, part...)
	}
	h.n = len(h.text)
	return h
}

func (h *hasher) hash(key string) Hash {
	h.text = append(h.text[:h.n], key...)
	return sha256.Sum256(h.text)
}
