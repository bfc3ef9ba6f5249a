package purchase

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/leadetl/leadetl/pipeline/answers"
	"github.com/leadetl/leadetl/resolution"
)

// Deliveries stores the answers that come after their calls, and wakes their waiters. It is
// safe from many goroutines.
type Deliveries struct {
	remote *Remote
	now    func() time.Time

	mu      sync.Mutex
	waiting map[answers.Hash][]waiter
	failed  map[answers.Hash]answers.OpenCall // what this process was told has failed
}

// NewDeliveries makes the Deliveries of a service.
func NewDeliveries(r *Remote, now func() time.Time) *Deliveries {
	return &Deliveries{remote: r, now: now, waiting: map[answers.Hash][]waiter{}, failed: map[answers.Hash]answers.OpenCall{}}
}

// Deliver stores an answer for the run that asked, and wakes its waiters. When it returns nil,
// the answer is on disk, and the service need not send it again. It also returns nil, and
// stores nothing, for an answer that is stored already and for a resolution that is not
// finished.
//
// A failed resolution ends its call without an answer; it was not billed. If the service
// completes it after all, that holds, whichever it says first.
//
// The error is resolution.ErrNotAsked, resolution.ErrInvalid for a body that cannot be
// understood or belongs to another question, or that of the store: then the service should
// send the answer again.
func (l *Deliveries) Deliver(ctx context.Context, d resolution.Delivery) error {
	call, err := l.find(ctx, d)
	switch {
	case errors.Is(err, answers.ErrNoCall):
		return l.unknown(ctx, d)
	case err != nil:
		return err
	}
	a, other, err := l.answer(call.Question, d)
	var failed *resolution.CallError
	switch {
	case errors.Is(err, errUnfinished):
		return nil
	case errors.As(err, &failed) && failed.Over && call.State == answers.UnderWay:
		return errTooEarly
	case errors.As(err, &failed) && failed.Over && d.ID != "" && call.Resolution != "" && call.Resolution != d.ID:
		return nil // an earlier request of the question has failed
	case errors.As(err, &failed) && failed.Over:
		l.fail(call) // before it is closed, when its answer may come
		err = l.remote.Answers.Fail(ctx, call.Question, answers.Failure{Reason: failed.Code, Status: http.StatusOK, Request: d.RequestID, Resolution: call.Resolution})
	case errors.As(err, &failed) && !failed.Swapped:
		if kept := l.remote.Answers.Keep(ctx, call.Question, d.Body); kept != nil && !errors.Is(kept, answers.ErrNoCall) {
			return kept
		}
		fallthrough
	case err != nil:
		return fmt.Errorf("%w: %v", resolution.ErrInvalid, err) // not the class of a CallError
	default:
		a.Run = call.Run
		err = l.remote.Answers.Place(ctx, call.Question, a, nil)
		if errors.Is(err, answers.ErrNoCall) {
			return l.unknown(ctx, d)
		}
	}
	if err != nil && !errors.Is(err, answers.ErrNoCall) { // another delivery or the call was faster
		return err
	}
	if other && err == nil {
		l.remote.Counters.OtherAddress(1)
	}
	l.wake(call.Hash)
	return nil
}

// errTooEarly says that a resolution has failed while a request about its question is out. The
// failure may be that of an earlier request, and this one may be billed. After its reply the
// resolution's id tells.
var errTooEarly = fmt.Errorf("%w: a request about the question is out; send the callback again", resolution.ErrUnavailable)

// find finds the open call of a delivery: by the id of the resolution or, while that is not
// known yet, by the client reference. If these are of two questions, and the service has not
// given both the same id, the delivery is of neither.
func (l *Deliveries) find(ctx context.Context, d resolution.Delivery) (answers.OpenCall, error) {
	byID, err := l.remote.Answers.FindByResolution(ctx, l.remote.Name, d.ID)
	h, bad := answers.ParseHash(d.ClientRef)
	if bad != nil || err == nil && byID.Hash == h || err != nil && !errors.Is(err, answers.ErrNoCall) {
		return byID, err
	}
	byRef, missing := l.remote.Answers.Find(ctx, h)
	if missing == nil && byRef.Service != l.remote.Name {
		missing = answers.ErrNoCall
	}
	if err == nil && (missing != nil || byRef.Resolution != byID.Resolution) {
		return answers.OpenCall{}, fmt.Errorf("%w: the callback's id and its client_ref are those of two calls", resolution.ErrInvalid)
	}
	return byRef, missing
}

// fail remembers a call that the service says has failed.
func (l *Deliveries) fail(call answers.OpenCall) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failed[call.Hash] = call
}

// takeFailed returns the failed call that a delivery is about, and forgets it: of two
// deliveries one stores the answer.
func (l *Deliveries) takeFailed(d resolution.Delivery) (call answers.OpenCall, found bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	h, bad := answers.ParseHash(d.ClientRef)
	call, found = l.failed[h]
	for _, c := range l.failed {
		if bad != nil && d.ID != "" && c.Resolution == d.ID {
			call, found = c, true
		}
	}
	if found {
		delete(l.failed, call.Hash)
	}
	return call, found
}

// revive stores the answer of a call that had failed, unless the question has been
// answered since.
func (l *Deliveries) revive(ctx context.Context, call answers.OpenCall, d resolution.Delivery) error {
	stored, err := l.remote.Answers.LookupHashes(ctx, []answers.Hash{call.Hash}, answers.Freshness{}, nil)
	if err != nil || stored[0].Stored && stored[0].Answer.Outcome != answers.Refused {
		return err
	}
	a, other, err := l.answer(call.Question, d)
	if failure, is := errors.AsType[*resolution.CallError](err); errors.Is(err, errUnfinished) || is && failure.Over {
		l.fail(call)
		return nil
	} else if err != nil {
		l.fail(call)
		return fmt.Errorf("%w: %v", resolution.ErrInvalid, err)
	}
	a.Run = call.Run
	if err := l.remote.Answers.Put(ctx, call.Question, a); err != nil {
		l.fail(call)
		return err
	}
	if other {
		l.remote.Counters.OtherAddress(1)
	}
	l.wake(call.Hash)
	return nil
}

// unknown handles a delivery without an open call. It is no error if the question has an
// answer.
func (l *Deliveries) unknown(ctx context.Context, d resolution.Delivery) error {
	if call, failed := l.takeFailed(d); failed {
		return l.revive(ctx, call, d)
	}
	h, err := answers.ParseHash(d.ClientRef)
	if err != nil {
		return resolution.ErrNotAsked
	}
	found, err := l.remote.Answers.LookupHashes(ctx, []answers.Hash{h}, answers.Freshness{}, nil)
	if err == nil && !found[0].Stored {
		err = resolution.ErrNotAsked
	}
	return err
}

// Hint says that a resolution may be ready; the sender is not verified. It wakes the waiter of
// a search, who then asks for the result. Answers about one record cannot be asked for.
func (l *Deliveries) Hint(ctx context.Context, id string) error {
	call, err := l.remote.Answers.FindByResolution(ctx, l.remote.Name, id)
	if errors.Is(err, answers.ErrNoCall) {
		return nil
	}
	if err == nil && call.Operation.IsKeyword() {
		l.wake(call.Hash)
	}
	return err
}

// errUnfinished says that the resolution of a delivery is not finished.
var errUnfinished = errors.New("the resolution is not finished")

// answer makes the stored form of a delivery. other says that its data are under another
// address than was asked about.
func (l *Deliveries) answer(q answers.Question, d resolution.Delivery) (a answers.Answer, other bool, err error) {
	if check := l.remote.Check; check != nil {
		call := resolution.Call{Request: resolution.Request{Operation: q.Operation, Key: q.Key}, ClientRef: q.Hash().String()}
		if other, err = check(call, d.Body); err != nil {
			return answers.Answer{}, false, err
		}
	}
	c := newCodec(q.Operation, l.remote)
	r, err := c.read(q.Operation, http.StatusOK, d.Body, nil)
	switch {
	case err != nil:
		return answers.Answer{}, false, err
	case r.Pending:
		return answers.Answer{}, false, errUnfinished
	}
	a = c.stored(q.Key, r)
	a.Body, a.Resolution, a.Request, a.Received = d.Body, cmp.Or(d.ID, r.ID), d.RequestID, l.now()
	if d.Spent != nil {
		a.Credits = d.Spent
	}
	return a, other, nil
}

// Listen returns a channel that receives when the answer to a question may be there: after a
// delivery, a failed resolution or a Hint. Earlier events are not reported, so look once after
// Listen. Call forget to stop listening.
func (l *Deliveries) Listen(h answers.Hash) (arrived <-chan struct{}, forget func()) {
	w := make(waiter, 1) // one event is enough until the waiter looks
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting[h] = append(l.waiting[h], w)
	return w, func() { l.leave(h, w) }
}

// waiter is the channel of one listener.
type waiter chan struct{}

func (l *Deliveries) leave(h answers.Hash, w waiter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	others := slices.DeleteFunc(l.waiting[h], func(o waiter) bool { return o == w })
	if len(others) == 0 {
		delete(l.waiting, h)
	} else {
		l.waiting[h] = others
	}
}

// wake tells all listeners of a question.
func (l *Deliveries) wake(h answers.Hash) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, w := range l.waiting[h] {
		select {
		case w <- struct{}{}:
		default: // it has an event already
		}
	}
}
