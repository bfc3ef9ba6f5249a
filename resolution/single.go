package resolution

import (
	"context"
	"fmt"
	"math"
	"net/netip"
	"sync"
)

// Answer is the answer to a Request.
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

// Single asks a Resolver about one key at a time. It is safe from many goroutines, and uses the
// memory of its look-ups again.
type Single struct {
	resolver Resolver
	memory   sync.Pool // of *lookUp
}

// NewSingle returns a Single of r.
func NewSingle(r Resolver) *Single { return &Single{resolver: r} }

// lookUp is the memory of a look-up. One goroutine at a time has it.
type lookUp struct {
	batches   map[Operation]Batch
	ask       Questions
	answers   Answers
	companies CompanyList
}

// Resolve answers a request. The error is ErrInvalid also for an address that is not in
// canonical form.
func (s *Single) Resolve(ctx context.Context, r Request) (Answer, error) {
	l, used := s.memory.Get().(*lookUp)
	if !used {
		l = &lookUp{batches: map[Operation]Batch{}}
		l.answers.Companies.Table = &l.companies
	}
	if l.batches[r.Operation] == nil {
		l.batches[r.Operation] = s.resolver.NewBatch(r.Operation)
	}
	a, err := l.resolve(ctx, r)
	s.memory.Put(l)
	return a, err
}

func (l *lookUp) resolve(ctx context.Context, r Request) (Answer, error) {
	if err := l.question(r); err != nil {
		return Answer{}, err
	}
	l.companies.Reset()
	if _, err := l.batches[r.Operation].Resolve(ctx, l.ask, math.MaxInt, &l.answers); err != nil {
		return Answer{}, err
	}
	a := Answer{Lead: l.answers.Lead(0), Reason: l.answers.Reasons[0]}
	if len(l.answers.OrgTypes) > 0 {
		a.OrgType = l.answers.OrgTypes[0]
	}
	return a, nil
}

// question makes a request the only question.
func (l *lookUp) question(r Request) error {
	if r.Key == "" {
		return fmt.Errorf("%w: empty key", ErrInvalid)
	}
	l.ask.Hashes, l.ask.Addrs = true, l.ask.Addrs[:0]
	l.ask.Keys.Reset()
	l.ask.Keys.Add(bytesOf(r.Key))
	if r.Operation.Identifier() != IP {
		return nil
	}
	a, err := netip.ParseAddr(r.Key)
	if err != nil || a.Zone() != "" || a.Is4In6() {
		// err would repeat the key.
		return fmt.Errorf("%w: the key is not an IP address in canonical form", ErrInvalid)
	}
	l.ask.Addrs = append(l.ask.Addrs, a)
	return nil
}
