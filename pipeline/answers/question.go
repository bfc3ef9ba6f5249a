package answers

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/klauspost/compress/gzip"

	"github.com/leadetl/leadetl/resolution"
)

// Scope is what all questions of a run have in common.
type Scope struct {
	// Service is the service that is asked: its base URL, or another name that
	// the caller chooses.
	Service   string               `json:"service"`
	Operation resolution.Operation `json:"operation"`
}

// Compare orders by service and operation.
func (s Scope) Compare(other Scope) int {
	return cmp.Or(cmp.Compare(s.Service, other.Service), cmp.Compare(s.Operation, other.Operation))
}

// IsProvider reports whether the questions are those of an entry of a provider. In the place of the
// operation, they have the kind of identifier and what is asked.
func (s Scope) IsProvider() bool { return strings.Contains(string(s.Operation), ":") }

// Identifier is what kind of value is asked about; "" for searches.
func (s Scope) Identifier() resolution.Identifier {
	if kind, _, is := strings.Cut(string(s.Operation), ":"); is {
		return resolution.Identifier(kind)
	}
	return s.Operation.Identifier()
}

// Question is the unit of payment: it is paid for once.
type Question struct {
	Scope
	// Key is the identifier in canonical form. It is personal data, and never
	// part of this package's errors.
	Key string
}

// Hash identifies a question: the SHA-256 of its parts. Tools print it in
// place of a key.
type Hash [sha256.Size]byte

// Hash computes q's hash.
func (q Question) Hash() Hash {
	return newHasher(q.Scope).hash(q.Key)
}

// Hasher returns a function that is Question.Hash for the keys of one scope.
// Only one goroutine may use the function. It does not allocate.
func (s Scope) Hasher() func(key []byte) Hash {
	h := newHasher(s)
	return func(key []byte) Hash {
		h.text = append(h.text[:h.n], key...)
		return sha256.Sum256(h.text)
	}
}

// String is h in hex.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// Compare orders hashes by their bytes.
func (h Hash) Compare(other Hash) int { return bytes.Compare(h[:], other[:]) }

// ParseHash parses the result of String. The error does not contain s.
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
	text []byte // the scope, followed by a key
	n    int    // length of the scope in text
}

func newHasher(s Scope) *hasher {
	h := &hasher{}
	// Each part is preceded by its length, so that no two scopes give the same
	// bytes. The third part is reserved, like the column settings of a scope.
	for _, part := range []string{s.Service, string(s.Operation), ""} {
		h.text = binary.AppendUvarint(h.text, uint64(len(part)))
		h.text = append(h.text, part...)
	}
	h.n = len(h.text)
	return h
}

func (h *hasher) hash(key string) Hash {
	h.text = append(h.text[:h.n], key...)
	return sha256.Sum256(h.text)
}

// Outcome is what an answer says about its question.
type Outcome string

// The outcomes. Refused means that the service rejected the record. The store
// keeps such an answer for the report; it is never fresh.
const (
	Matched Outcome = "matched"
	NoMatch Outcome = "no_match"
	Refused Outcome = "refused"
)

// Answer is a service's answer to one question.
type Answer struct {
	// Run is the run that pays for the answer.
	Run     string
	Outcome Outcome
	// Reason says in one word why there is no match. It is empty for a match.
	Reason string
	// Status is the HTTP status.
	Status int
	// Body is the answer as received. The database stores a body that is valid
	// UTF-8 as readable text.
	Body []byte
	// Resolution and Request are the service's identifiers of the resolution
	// and of the call, empty if it sent none.
	Resolution, Request string
	// Credits is the cost, nil if the service did not say.
	Credits  *int64
	Received time.Time
}

func toMillis(t time.Time) int64 { return t.UnixMilli() }

func fromMillis(ms int64) time.Time { return time.UnixMilli(ms).UTC() }

// toMillisOrZero is toMillis, but returns 0 for the zero time.
func toMillisOrZero(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return toMillis(t)
}

func fromMillisOrZero(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return fromMillis(ms)
}

// KeptBody is the body of a 2xx that could not be read as an answer, with gzip. It is
// kept with its open call, because it may have been paid, and a later version may
// read it. It goes when the call ends or is forgotten.
type KeptBody []byte

const (
	// maxKeptBody bounds a kept body, compressed; a larger one is not kept.
	maxKeptBody = 64 << 10
	// maxKeptPlain bounds the same, as it was received: a client accepts no more.
	maxKeptPlain = 32 << 20
)

// keepBody returns a body as it is kept, nil if it is empty or too large.
func keepBody(body []byte) KeptBody {
	if len(body) == 0 || len(body) > maxKeptPlain {
		return nil
	}
	var kept bytes.Buffer
	w := gzip.NewWriter(&kept)
	if _, err := w.Write(body); err != nil || w.Close() != nil || kept.Len() > maxKeptBody {
		return nil
	}
	return kept.Bytes()
}

// Plain returns the body as it was received.
func (k KeptBody) Plain() ([]byte, error) {
	if len(k) == 0 {
		return nil, nil
	}
	r, err := gzip.NewReader(bytes.NewReader(k))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(r, maxKeptPlain))
}
