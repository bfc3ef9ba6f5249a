// Package request turns the bodies of the service's operations into typed
// calls: Parse reads a body, and Single, Keyword and Result read what an
// operation asks of it.
//
// The one thing to know before using it: a body is judged whole. Every field
// that is wrong has its Problem, all of them are in one answer, and none ever
// repeats what was submitted. A member that is null is a missing one, and a
// member nobody asks for is passed over and echoed.
package request

import (
	"encoding/json"

	"github.com/leadetl/leadetl/resolution"
)

// Problem is one thing wrong with one field.
type Problem struct {
	// Pointer leads to the value in the body. Source: RFC 6901.
	Pointer string `json:"pointer"`
	// Code is a word for programs: required, wrong_type, invalid_email.
	Code string `json:"code"`
	// Detail is a sentence for people. It says what was expected, never what
	// came.
	Detail string `json:"detail"`
}

// SingleCall is a well-formed body of a single-record operation.
type SingleCall struct {
	// Key is the identifier in the canonical form of resolution.Request.
	Key string
	// CallbackURL is an absolute URI with a host, as submitted; empty when
	// none was given or the operation has none. Whether the service may call
	// it is not decided here.
	CallbackURL string
	// Payload is the echo of the body, compact.
	Payload json.RawMessage
}

// KeywordCall is a well-formed body of a list or count creation.
type KeywordCall struct {
	// Search is what is asked for, the dates complete and the values trimmed
	// and without duplicates. Edition is empty.
	Search resolution.KeywordSearch
	Page   resolution.SearchPage
	// CallbackURL is as in SingleCall.
	CallbackURL string
	// Payload is as in SingleCall.
	Payload json.RawMessage
	// Fingerprint is the same for bodies that ask for the same leads: SHA-256
	// over the fields that choose them, whatever the order, the case and the
	// spacing of their values. A day that was not given counts as not given,
	// so that the next page of a search has the fingerprint of its first page
	// also after midnight.
	Fingerprint [32]byte
}
