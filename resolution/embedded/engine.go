// Package embedded answers the operations of the interface from a directory, in this
// process.
//
// The one thing to know before using it: an Engine has the directory it was made with and
// nothing else. So it is as current as that directory, safe from many goroutines, and has
// no Close.
package embedded

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/directory"
)

// Options are the settings of an Engine.
type Options struct {
	// IncludeProviders also answers with companies that are access or hosting
	// providers, carriers, CDNs or VPNs.
	IncludeProviders bool
	// Listed reports whether an identifier is suppressed; nil suppresses no one. A
	// person with a suppressed identifier in the directory is never found. It is
	// called from many goroutines.
	Listed func(kind resolution.Identifier, value string) bool
}

// Engine is a resolution.Resolver.
type Engine struct {
	directory *directory.Directory // may be nil
	options   Options
	codes     atomic.Pointer[companyCodes] // of the table that batches use now
}

var _ resolution.Resolver = (*Engine)(nil)

// New makes an engine. With a nil directory, emails have their hashes, and everything else
// is not_found.
func New(d *directory.Directory, o Options) *Engine {
	e := &Engine{directory: d, options: o}
	if d != nil && o.Listed != nil {
		d.LeaveOut(e.hidesWho)
	}
	return e
}

// The reasons of answers without a match. There are also ip_class:… for addresses that are
// never looked up, and org_type:… for providers.
const (
	NotFound  = "not_found"  // the directory does not know the key
	NoEmail   = "no_email"   // it knows the person, but no email
	NoPhone   = "no_phone"   // it knows the person, but no phone number
	NoCompany = "no_company" // it knows the range, but not its company
)

// Resolve answers a request. Errors wrap resolution.ErrInvalid for a key that is not in
// canonical form and for other operations, and resolution.ErrUnavailable if the directory
// cannot be read.
func (e *Engine) Resolve(ctx context.Context, r resolution.Request) (resolution.Answer, error) {
	answer, err := e.resolve(ctx, r)
	if err != nil {
		return resolution.Answer{}, fmt.Errorf("embedded %s: %w", r.Operation, err)
	}
	return answer, nil
}

func (e *Engine) resolve(ctx context.Context, r resolution.Request) (resolution.Answer, error) {
	if err := ctx.Err(); err != nil {
		return resolution.Answer{}, err
	}
	if r.Key == "" {
		return resolution.Answer{}, fmt.Errorf("%w: empty key", resolution.ErrInvalid)
	}
	if e.listed(r.Operation.Identifier(), r.Key) {
		return noMatch(NotFound), nil
	}
	switch r.Operation {
	case resolution.EmailToHEM:
		return e.emailToHEM(ctx, r.Key)
	case resolution.NetworkToHEM:
		return e.networkToHEM(ctx, r.Key)
	case resolution.NetworkToPhone:
		return e.networkToPhone(ctx, r.Key)
	case resolution.Enrichment:
		return e.enrichment(ctx, r.Key)
	case resolution.IPToCompany:
		return e.ipToCompany(r.Key)
	case resolution.Deanonymization:
		return e.deanonymization(ctx, r.Key)
	}
	return resolution.Answer{}, fmt.Errorf("%w: not an operation on one record", resolution.ErrInvalid)
}

func match(l *resolution.Lead) resolution.Answer { return resolution.Answer{Lead: l} }

func noMatch(reason string) resolution.Answer { return resolution.Answer{Reason: reason} }

// unreadable makes an error of a directory that cannot be read. It keeps that of a caller
// who gave up.
func unreadable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return fmt.Errorf("%w: read directory: %w", resolution.ErrUnavailable, err)
}
