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

// Answer is the answer of a Resolver for one key.
type Answer struct {
	// Lead is the data found, nil when there was no match.
	Lead *Lead
	// Reason says why there was no match ("not_found", "org_type:isp"),
	// empty on a match.
	Reason string
	// OrgType is the kind of organization behind an address, match or not;
	// ip_to_company only. It is not part of the wire format.
	OrgType string
}

// Matched reports whether the answer holds data.
func (a Answer) Matched() bool { return a.Lead != nil }

// Resolver answers requests. Resolve is called from many goroutines at once,
// once per distinct key where the caller can tell; the answer and what it
// points to belong to the caller, but must not be changed (a Resolver may
// hand out shared companies).
//
// An error is about the call, never about the identifier's data: no match is
// an Answer. Errors wrap ErrInvalid, ErrUnavailable or ErrDenied where one of
// them is true, and never hold the identifier.
type Resolver interface {
	Resolve(ctx context.Context, r Request) (Answer, error)
}

// The three questions callers ask of an error.
var (
	ErrInvalid     = errors.New("invalid request")      // the request is wrong; the same again fails again
	ErrUnavailable = errors.New("resolver unavailable") // may be tried again
	ErrDenied      = errors.New("denied by resolver")   // credentials or credits; must not be retried as is
)

// BatchResolver answers many keys at once, in columns, without a request or an allocation a
// row. A run asks it for a Batch for each part that is made, from several goroutines.
type BatchResolver interface {
	// NewBatch returns memory for the look-ups of an operation on one record.
	NewBatch(Operation) Batch
}

// Batch answers many keys at once. One goroutine uses it, once for every few thousand rows;
// nothing has to be closed.
type Batch interface {
	// Resolve makes to the answers that Resolver.Resolve gives to each key. It answers fewer
	// keys, at least one, if the columns would have more than limit bytes, and returns their
	// number. The answers stay valid when the Batch is used again. The hashes of an address
	// that is the key are left out: they follow from the key.
	Resolve(ctx context.Context, of Questions, limit int, to *Answers) (n int, err error)
}

// Questions are keys in canonical form. Nothing is asked about an empty key, whose answer has
// no match and no reason.
type Questions struct {
	Keys Texts
	// Addrs are the keys of an operation on addresses, parsed; the zero address for an empty
	// key.
	Addrs []netip.Addr
}

// Slice returns the questions in [from, to).
func (q Questions) Slice(from, to int) Questions {
	s := Questions{Keys: q.Keys.Slice(from, to)}
	if len(q.Addrs) > 0 {
		s.Addrs = q.Addrs[from:to]
	}
	return s
}
