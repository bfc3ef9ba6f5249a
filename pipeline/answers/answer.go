package answers

import (
	"bytes"
	"time"
	"unicode/utf8"
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

// bodyValue returns a body as a column value: text if sqlite3 can show it,
// otherwise a blob. sqlite3 stops showing text at a NUL.
func bodyValue(body []byte) any {
	if utf8.Valid(body) && bytes.IndexByte(body, 0) < 0 {
		return string(body)
	}
	return body
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
