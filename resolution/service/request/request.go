// Package request turns the bodies of the service's operations into typed
// calls: Parse reads a body, and Single, Keyword and Result read what an
// operation asks of it.
//
// The one thing to know before using it: all fields of a body are checked, and one
// answer has the Problems of all of them. A Problem never repeats what was
// submitted. A null member counts as missing. Unknown members are ignored and
// echoed.
package request

import (
	"encoding/json"

	"github.com/leadetl/leadetl/resolution"
)

// Problem is a fault of one field.
type Problem struct {
	// Pointer leads to the value in the body. Source: RFC 6901.
	Pointer string `json:"pointer"`
	// Code is a word for programs: required, wrong_type, invalid_email.
	Code string `json:"code"`
	// Detail is a sentence for people. It says what was expected, never what was
	// sent.
	Detail string `json:"detail"`
}

// SingleCall is a well-formed body of a single-record operation.
type SingleCall struct {
	// Key is the identifier in the canonical form of resolution.Request.
	Key string
	// CallbackURL is an absolute URI with a host, as submitted; empty when
	// none was given or the operation has none. The caller has to check that
	// the service may call it.
	CallbackURL string
	// Payload is the echo of the body, compact.
	Payload json.RawMessage
}

// KeywordCall is a well-formed body of a list or count creation.
type KeywordCall struct {
	// Search has complete dates, and trimmed values without duplicates. Edition
	// is empty.
	Search resolution.KeywordSearch
	Page   resolution.SearchPage
	// CallbackURL is as in SingleCall.
	CallbackURL string
	// Payload is as in SingleCall.
	Payload json.RawMessage
	// Fingerprint is the same for bodies that ask for the same leads. It is the
	// SHA-256 of the fields that choose leads, without regard to order, case and
	// spacing of their values. The default of a missing day is not part of it, so
	// that the pages of a search have one fingerprint also after midnight.
	Fingerprint [32]byte
}
