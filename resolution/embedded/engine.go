// Package embedded answers the interface's single-record operations from a
// directory, in process.
//
// The one thing to know before using it: an Engine holds the directory it was
// made with and nothing else, so it is as current as that directory, safe
// from many goroutines, and has no Close of its own.
package embedded

import (
	"context"
	"fmt"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/directory"
)

// Options are the choices an Engine has.
type Options struct {
	// IncludeProviders answers with the company of a range also when it is an
	// access or hosting provider, a carrier, a CDN or a VPN.
	IncludeProviders bool
	// Listed reports whether somebody is suppressed by an identifier; nil is
	// nobody. Who is, by any identifier that the directory has of them, is as
	// unknown as if they were not in it. Called from many goroutines.
	Listed func(kind resolution.Identifier, value string) bool
}

// Engine is a resolution.Resolver.
type Engine struct {
	directory *directory.Directory // may be nil
	options   Options
}

var _ resolution.Resolver = (*Engine)(nil)

// New makes an engine. A nil directory knows nobody: emails still have their
// hashes, and everything else is not_found.
func New(d *directory.Directory, o Options) *Engine {
	e := &Engine{d, o}
	if d != nil && o.Listed != nil {
		d.LeaveOut(e.hidesWho)
	}
	return e
}

// The reasons of answers without a match. Beside them there are ip_class:…
// for addresses that are never looked up, and org_type:… for providers.
const (
	NotFound  = "not_found"  // the directory does not know the key
	NoEmail   = "no_email"   // it knows the person, but no email
	NoPhone   = "no_phone"   // it knows the person, but no phone number
	NoCompany = "no_company" // it knows the range, but not whose it is
)

// Resolve answers one request. Errors wrap resolution.ErrInvalid when the
// request's key is not in canonical form or the operation is another one, and
// resolution.ErrUnavailable when the directory cannot be read.
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

// unreadable says that the directory's files failed us, unless the caller
// gave up.
func unreadable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return fmt.Errorf("%w: read directory: %w", resolution.ErrUnavailable, err)
}
