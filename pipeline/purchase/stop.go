package purchase

import (
	"context"
	"errors"

	"github.com/leadetl/leadetl/pipeline/pace"
	"github.com/leadetl/leadetl/resolution"
)

// The reasons of a service that stop a run. Run the same command again to resume.
var (
	// ErrNoCredits says that the account at the service is out of credits.
	ErrNoCredits = errors.New("the service's account is out of credits")
	// ErrRefused says that the service refuses to be called: credentials,
	// permissions, or an address without a service.
	ErrRefused = errors.New("the service refuses the calls")
	// ErrUnreachable says that the service gave no answer for too long.
	ErrUnreachable = errors.New("the service is out of reach")
)

// stopFor ends the run with an error, and returns why the run ended: the first cause counts.
func (b *Buyer) stopFor(err error) error {
	b.stop(b.outage.explain(stopOf(err)))
	return context.Cause(b.ctx)
}

// stopOf returns why an error of a call ends the run; nil if it concerns only the call.
func stopOf(err error) error {
	var failed *resolution.CallError
	switch {
	case errors.Is(err, pace.ErrDead):
		return &stopError{ErrUnreachable, err}
	case !errors.As(err, &failed):
		return err // of the stored answers, or the context's
	case failed.Class == resolution.NoCredits:
		return &stopError{ErrNoCredits, err}
	case failed.Class == resolution.Denied:
		return &stopError{ErrRefused, err}
	}
	return nil
}

// EndOf returns the cause of the end of ctx if err only says that it ended. Else it returns err.
func EndOf(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return context.Cause(ctx)
	}
	return err
}

// stopError says why a run stopped, and what the call said.
type stopError struct{ why, err error }

func (e *stopError) Error() string   { return e.why.Error() + ": " + e.err.Error() }
func (e *stopError) Unwrap() []error { return []error{e.why, e.err} }
