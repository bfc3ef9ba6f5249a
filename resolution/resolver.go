// Package resolution is the Lead Resolution Service Interface as Go types:
// operations, requests, leads and the Resolver that answers them. It says
// what; the packages below it say how.
package resolution

import (
	"context"
	"errors"
	"net/netip"
)

// Request asks one operation about one identifier.
type Request struct {
	Operation Operation
	// Key is the identifier in canonical form: the cleaned lower-case email
	// or lower-case hex digest of one, the profile address without scheme,
	// the IP address as netip prints it.
	Key string
}

// Resolver answers the operations on one record: many keys at once, in columns, without an
// allocation a row. Single asks one about one key. NewBatch is called from many goroutines: a
// run has a Batch for each part that is made.
type Resolver interface {
	// NewBatch returns memory for the look-ups of an operation.
	NewBatch(Operation) Batch
}

// Batch answers many keys at once. One goroutine at a time uses it; nothing has to be closed.
//
// An error is about the call, never about the data of an identifier: no match is an answer.
// Errors wrap ErrInvalid, ErrUnavailable or ErrDenied where one of them is true, and never hold
// an identifier.
type Batch interface {
	// Resolve makes to the answers to all keys. It answers fewer keys, at least one, if the
	// columns would have more than limit bytes, and returns their number. The answers stay
	// valid when the Batch is used again.
	Resolve(ctx context.Context, of Questions, limit int, to *Answers) (n int, err error)
}

// Questions are keys in canonical form. Nothing is asked about an empty key, whose answer has
// no match and no reason.
type Questions struct {
	Keys Texts
	// Addrs are the keys of an operation on addresses, parsed; the zero address for an empty
	// key.
	Addrs []netip.Addr
	// Hashes asks email_to_hem also for the hashes of keys that are addresses. A run leaves
	// them out, because they follow from the key.
	Hashes bool
}

// Slice returns the questions in [from, to).
func (q Questions) Slice(from, to int) Questions {
	s := Questions{Keys: q.Keys.Slice(from, to), Hashes: q.Hashes}
	if len(q.Addrs) > 0 {
		s.Addrs = q.Addrs[from:to]
	}
	return s
}

// The three questions callers ask of an error.
var (
	ErrInvalid     = errors.New("invalid request")      // the request is wrong; the same again fails again
	ErrUnavailable = errors.New("resolver unavailable") // may be tried again
	ErrDenied      = errors.New("denied by resolver")   // credentials or credits; must not be retried as is
)
