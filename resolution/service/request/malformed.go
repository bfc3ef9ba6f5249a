package request

import (
	"errors"
	"fmt"
)

// ErrMalformed says that a body is no JSON object Parse takes.
var ErrMalformed = errors.New("malformed JSON")

// MalformedError is an ErrMalformed with what is wrong and where. Its text
// never holds any of the body.
type MalformedError struct {
	What   string // "a name occurs twice in one object"
	Offset int    // of the first byte that is wrong, from 0; the body's length when it ends too early
}

func (e *MalformedError) Error() string {
	return fmt.Sprintf("%v: %s, at byte %d", ErrMalformed, e.What, e.Offset)
}

// Unwrap returns ErrMalformed.
func (e *MalformedError) Unwrap() error { return ErrMalformed }
