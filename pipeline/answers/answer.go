package answers

import (
	"bytes"
	"time"
	"unicode/utf8"
)

// Outcome is what an answer says about its question.
type Outcome string

// The outcomes. Refused is an answer about the record that is neither: the
// service would not work on it. It is kept for the report, and never fresh.
const (
	Matched Outcome = "matched"
	NoMatch Outcome = "no_match"
	Refused Outcome = "refused"
)

// Answer is what a service said to one question.
type Answer struct {
	// Run is the run that pays for it.
	Run     string
	Outcome Outcome
	// Reason says why there is no match, a word; empty on a match.
	Reason string
	// Status is the HTTP status.
	Status int
	// Body is the answer as it was received. A body that is UTF-8 is readable
	// text in the database.
	Body []byte
	// Resolution and Request are the service's names for the resolution and
	// for the call, empty where it has none.
	Resolution, Request string
	// Credits are what it cost, nil when the service did not say.
	Credits  *int64
	Received time.Time
}

// stored is how a body goes into the database: text can be read with any
// sqlite3, but not behind a NUL.
func stored(body []byte) any {
	if utf8.Valid(body) && bytes.IndexByte(body, 0) < 0 {
		return string(body)
	}
	return body
}

func millis(t time.Time) int64 { return t.UnixMilli() }

func moment(ms int64) time.Time { return time.UnixMilli(ms).UTC() }
