package answers

import (
	"bytes"
	"io"
	"time"

	"github.com/klauspost/compress/gzip"
)

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
