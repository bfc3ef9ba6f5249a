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

// BatchResolver is an optional skill of a Resolver whose answers are look-ups
// in memory: many keys at once, without a request or an allocation a row.
type BatchResolver interface {
	Resolver
	// NewBatch returns memory for the answers of an operation on one record.
	NewBatch(Operation) Batch
}

// Batch answers many keys at once. It is used by one goroutine.
type Batch interface {
	// Resolve sets answers to those that Resolver.Resolve gives to each key, in
	// canonical form. Nothing is asked about an empty key, and its answer is
	// zero. The answers are valid until the next call, and the keys must stay
	// valid as long. Companies stay valid for good, and are shared: who has the
	// same pointer has the same company.
	Resolve(ctx context.Context, keys []string, answers []Answer) error
}

// CompanyBatch is an optional skill of a Batch of ip_to_company, for addresses that the
// caller has parsed. A row then needs no key and no lead.
type CompanyBatch interface {
	// Companies sets what is found of each address. It leaves out the zero address.
	Companies(ctx context.Context, addrs []netip.Addr, found Companies) error
}

// Companies are answers to addresses: element i of every slice belongs to address i. They are
// as in Answer; a match has a company and no reason.
type Companies struct {
	CompanyCodes
	OrgTypes, Reasons []string
}

// CompanyCodes is a column of companies: their codes in a table, 0 for none. Where a company
// is met again, it has its code again, or another one that stands for the same.
type CompanyCodes struct {
	Table CompanyTable
	Codes []int32
}

// CompanyTable gives companies codes. It belongs to the caller of a batch, and is safe from
// many goroutines. Without it, every row would have a pointer to a company, and all companies
// would stay in memory.
type CompanyTable interface {
	// Add copies a company, and returns its code, which is above 0.
	Add(c *Company) int32
}

// ProfileBatch is an optional skill of a Batch of email_to_hem, for addresses whose hashes
// the caller makes itself. It does not know suppressed people.
type ProfileBatch interface {
	// Profiles sets profiles to the NetworkURL of the person who has each address, empty
	// without one. The addresses are in canonical form; it leaves out empty ones.
	Profiles(ctx context.Context, addresses, profiles *Texts) error
}

// PeopleBatch is an optional skill of a Batch of an operation that finds people.
type PeopleBatch interface {
	// ResolvePeople is Resolve with the answers as columns of p. It answers fewer keys, at
	// least one, if the columns would have more than limit bytes, and returns their
	// number.
	ResolvePeople(ctx context.Context, keys []string, limit int, p *People) (n int, err error)
}
