// Package secret holds values that must not be shown: API keys, system keys,
// signing secrets.
//
// The one thing to know before using it: a Text prints as the word redacted in
// every form that fmt, encoding/json and log/slog know. Only Reveal returns the
// value, so its callers are all the places where a secret goes.
package secret

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"io"
	"log/slog"
)

// redacted is what is shown in place of a value.
const redacted = "redacted"

// Text is a string that is not shown. The zero value is empty. It may be copied
// and used from many goroutines. It cannot be compared with ==, because the time
// that takes tells how much of two secrets is equal; use Equal.
type Text struct {
	_ [0]func() // not comparable

	// A pointer, because fmt does not call the methods of a value in an
	// unexported field: it prints an address there.
	value *string
}

var (
	_ fmt.Formatter  = Text{}
	_ fmt.Stringer   = Text{}
	_ fmt.GoStringer = Text{}
	_ slog.LogValuer = Text{}
)

// New makes a Text of s.
func New(s string) Text {
	if s == "" {
		return Text{}
	}
	return Text{value: &s}
}

// Reveal returns the value.
func (t Text) Reveal() string {
	if t.value == nil {
		return ""
	}
	return *t.value
}

// Empty reports whether there is no value.
func (t Text) Empty() bool { return t.value == nil }

// Equal compares in a time that does not depend on the values or their lengths.
// An empty Text equals nothing, not even another empty one: a missing credential
// must not match.
func (t Text) Equal(other Text) bool {
	a, b := sha256.Sum256([]byte(t.Reveal())), sha256.Sum256([]byte(other.Reveal()))
	same := subtle.ConstantTimeCompare(a[:], b[:]) == 1
	return same && !t.Empty()
}

// String is the word redacted.
func (t Text) String() string { return redacted }

// GoString is the word redacted.
func (t Text) GoString() string { return redacted }

// Format writes the word redacted for every verb, %x and %d included.
func (t Text) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, redacted) }

// MarshalText is the word redacted, for encoders such as JSON. There is no
// UnmarshalText.
func (t Text) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// LogValue is the word redacted.
func (t Text) LogValue() slog.Value { return slog.StringValue(redacted) }
