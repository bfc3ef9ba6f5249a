package purchase

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"

	"github.com/leadetl/leadetl/pipeline/answers"
	"github.com/leadetl/leadetl/pipeline/outcome"
	"github.com/leadetl/leadetl/pipeline/pace"
	"github.com/leadetl/leadetl/resolution"
)

// Plain404 says what a 404 without a code of its own means: the answer of some
// services for what they do not know, and of others for a wrong address.
type Plain404 string

// The meanings.
const (
	// Plain404Learned is a miss once the service has given a match or a stated miss.
	Plain404Learned Plain404 = ""
	Plain404Miss    Plain404 = "miss"
	Plain404Stop    Plain404 = "stop"
)

const (
	// maxDenials bounds the requests for a question that the service does not accept,
	// and maxDenials401 those with wrong credentials: the key is read again in between.
	maxDenials, maxDenials401 = 3, 2
	// As many different questions in a row mean that the service accepts none: before
	// the first answer and after it, and of plain 404s.
	firstDenied, laterDenied, plain404s = 3, 5, 5
	// badRows different questions are bad rows for a provider before it has answered one: then its
	// entry asks for something else than it knows.
	badRows = 20 // the usual Remote.BadRows
)

// refusals tells a service that refuses one question from one that refuses all:
// for its key, its address, or its rights. It is safe from many goroutines.
type refusals struct {
	log     *slog.Logger
	badRows int

	mu       sync.Mutex
	answered bool // an answer of this run is there
	rows     bool // a question was refused in the end
	last     error
	untold   []func()              // warnings, until the first answer: without one the error of the run says it
	denied   map[answers.Hash]bool // since the last answer
	plain    map[answers.Hash]bool // plain 404s, until the service is known
	bad      map[answers.Hash]bool // bad rows, until the first answer
	known    bool                  // a match or a stated miss is stored
	looked   bool                  // in the store, for known
}

// answer notes an answer of the service, or a stored one.
func (r *refusals) answer() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answered = true
	clear(r.denied)
	for _, warn := range r.untold {
		warn()
	}
	r.untold = nil
}

// state notes that a match or a stated miss is stored.
func (r *refusals) state() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.known = true
}

// deny notes that the service refuses a question in the end, and reports whether
// it refuses all.
func (r *refusals) deny(h answers.Hash, f *resolution.CallError, plain404 bool) (all bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.denied == nil {
		r.denied = map[answers.Hash]bool{}
	}
	r.rows, r.last = true, f
	if !plain404 { // which are counted apart
		r.denied[h] = true
	}
	limit := firstDenied
	if r.answered {
		limit = laterDenied
	}
	if len(r.denied) >= limit {
		return true
	}
	warn := func() {
		r.log.Warn("the service refuses an identifier; its rows fail", "key_hash", h.String(), "why", f.Reason())
	}
	if !r.answered {
		r.untold = append(r.untold, warn)
		return false
	}
	warn()
	return false
}

// allBad is the refusal of a provider that calls the first rows bad, all of them.
func allBad(op resolution.Operation, rows int) *resolution.CallError {
	return &resolution.CallError{
		Operation: op, Class: resolution.Denied, General: true, Sent: true,
		Detail: fmt.Sprintf("each of the first %d rows is a bad one for it; check the request of its entry", rows),
	}
}

// areBad notes that a question is a bad row for a provider, and reports whether all are.
func (r *refusals) areBad(h answers.Hash) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.answered {
		return false
	}
	if r.bad == nil {
		r.bad = map[answers.Hash]bool{}
	}
	r.bad[h] = true
	return len(r.bad) >= r.badRows
}

// all returns the last refusal if the service has refused all questions of the run. It warns if all
// were bad rows, too few to stop for.
func (r *refusals) all() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n := len(r.bad); n > 1 && !r.answered {
		r.log.Warn("each row that the provider was asked about is a bad one for it; check the request of its entry", "rows", n)
	}
	if r.answered || !r.rows {
		return nil
	}
	return r.last
}

// isMiss404 reports whether a plain 404 is a miss. While that is not known, it notes
// the question.
func (r *refusals) isMiss404(c *call, f *resolution.CallError) (bool, error) {
	b := c.buyer
	if !f.IsPlain404() || b.remote.Judged || b.codec.operation.IsKeyword() || b.remote.Plain404 == Plain404Stop || !c.settles(f) {
		return false, nil
	}
	if b.remote.Plain404 == Plain404Miss {
		return true, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.known && !r.looked {
		known, _, err := b.remote.Answers.Knows(context.WithoutCancel(b.ctx), b.scope)
		if err != nil {
			return false, err
		}
		r.known, r.looked = known, true
	}
	if !r.known {
		if r.plain == nil {
			r.plain = map[answers.Hash]bool{}
		}
		r.plain[c.question.Hash()] = true
	}
	return r.known, nil
}

// are404 reports whether so many questions got a plain 404 that the address is wrong.
func (r *refusals) are404() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.known && len(r.plain) >= plain404s
}

// miss404 is the reply that a plain 404 is.
func miss404(f *resolution.CallError) resolution.Reply {
	return resolution.Reply{
		About:  resolution.About{RequestID: f.RequestID, Status: f.Status, Body: f.Body},
		Reason: resolution.NoMatch,
	}
}

// judgeDenied decides about a call that the service does not accept, for the same reason so
// many times in a row. done says that a is the answer of its rows, or err the end of
// the run; otherwise it is to be sent again.
func (r *refusals) judgeDenied(c *call, f *resolution.CallError, same int) (a Result, done bool, err error) {
	b := c.buyer
	plain, most := f.IsPlain404() && !b.remote.Judged, maxDenials
	if f.Status == http.StatusUnauthorized {
		most = maxDenials401
	}
	switch {
	case f.General, plain && b.remote.Plain404 == Plain404Stop, plain && r.are404():
		return Result{}, true, b.stopFor(f)
	case same < most:
		return Result{}, false, nil
	case r.deny(c.question.Hash(), f, plain):
		return Result{}, true, b.stopFor(f)
	case c.maybeBilled():
		return failed(outcome.ReasonUnknownCall), true, nil
	}
	b.counters.Refused(1)
	return failed(refusedReason(f)), true, nil
}

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

// stopFor ends the buying with an error, and returns why it ended: the first cause counts. What says
// that nothing can be paid any more ends what may cost something: answers that are promised are paid
// for, and are waited for until Stop.
func (b *Buyer) stopFor(err error) error {
	why := b.outage.explain(stopOf(err))
	if errors.Is(why, ErrBudget) || errors.Is(why, ErrNoCredits) {
		b.end(why)
		return context.Cause(b.ctx)
	}
	b.endLooks(why)
	return context.Cause(b.looks)
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
