package callback

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/leadetl/leadetl/internal/retry"
	"github.com/leadetl/leadetl/resolution/service/state"
)

const (
	maxFetch  = 16 // deliveries asked for at once, beyond those in flight
	maxPasses = 16 // over the outbox before ended attempts are handled
	minPause  = 100 * time.Millisecond

	// restBetween is the pause between looks at the outbox for new deliveries, as a multiple
	// of the time of the last look, and at most maxRest. So looks take a fifth of the time
	// under any load, and one look finds all that came meanwhile.
	restBetween = 4
	maxRest     = 10 * time.Millisecond
	// maxAhead is how many deliveries of a lane are read ahead, and aheadLife how
	// long they may wait in memory: others may have become more urgent.
	maxAhead  = 64
	aheadLife = 250 * time.Millisecond
)

// outboxBackoff is the pause after errors of the outbox.
var outboxBackoff = retry.Backoff{Initial: time.Second, Max: 30 * time.Second}

// Sender attempts the deliveries of an Outbox. Make one with NewSender and Run
// it once.
type Sender struct {
	o    Options
	wake chan struct{} // holds one: waking twice is waking
}

// NewSender returns a sender that does not run yet.
func NewSender(o Options) *Sender {
	return &Sender{o: o.withDefaults(), wake: make(chan struct{}, 1)}
}

// Wake tells the sender that a delivery was added. It never blocks, and any
// goroutine may call it at any time.
func (s *Sender) Wake() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Run attempts deliveries as they become due, until ctx ends. Then it begins no
// more, gives attempts in flight Options.Grace to end, cuts off the rest, which
// stay due, and returns nil. Nothing runs on after it returned.
//
// An error of the outbox is logged and tried again.
func (s *Sender) Run(ctx context.Context) error {
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	transport := s.o.Policy.Transport
	if transport == nil {
		connections := s.transport(life)
		defer connections.close()
		transport = connections
	}
	defer end() // first: what is still dialling must not become idle
	r := &run{
		sender:    s,
		now:       s.o.Now,
		life:      life,
		transport: transport,
		inFlight:  newUnderway(s.o.Concurrency, s.o.PerReceiver, s.o.Timeout),
		events:    make(chan event, 2*unsettled*s.o.Concurrency), // room for all: an attempt never waits to say that it ended
		idle:      time.NewTimer(0),
	}
	defer r.idle.Stop()
	for ctx.Err() == nil {
		r.pause(ctx, r.fill(ctx))
	}
	grace := time.AfterFunc(s.o.Grace, end)
	defer grace.Stop()
	r.attempts.Wait()
	return nil
}

// transport returns the connections of a run.
func (s *Sender) transport(life context.Context) *transport {
	plain, secure := s.o.dial, s.o.dial
	if s.o.dial == nil {
		plain, secure = s.o.Policy.dialer(true), s.o.Policy.dialer(false)
	}
	return newTransport(life, plain, secure, s.o.Roots, s.o.PerReceiver)
}

// run is the state of Run. One goroutine owns everything except the attempts.
type run struct {
	sender    *Sender
	now       func() time.Time
	life      context.Context // of the attempts: ends when the grace is over
	transport http.RoundTripper
	inFlight  *slots
	attempts  sync.WaitGroup
	events    chan event
	idle      *time.Timer
	rested    time.Time // when the outbox may be asked for what is new
	failures  int       // of the outbox, in a row
}

// event is the end of an attempt, and then that it is settled, or was cut off.
type event struct {
	delivery state.Delivery
	took     time.Duration
	settled  bool
	again    bool // it is settled, and due again later
}

// fill begins attempts until no slot is free or nothing more is due. It returns
// how long to wait unless something happens.
func (r *run) fill(ctx context.Context) time.Duration {
	began := r.now()
	r.inFlight.drop(began)
	defer func() {
		now := r.now()
		r.rested = now.Add(min(restBetween*now.Sub(began), maxRest))
	}()
	for pass := 0; pass < maxPasses && r.inFlight.free() > 0 && ctx.Err() == nil; pass++ {
		now := r.now()
		began := 0
		var next time.Time
		view := r.inFlight.look(now)
		for _, scope := range r.inFlight.questions(view) {
			n, soonest, err := r.ask(ctx, view, scope)
			if err != nil {
				return r.logAndPause(ctx, "callbacks: the due ones cannot be read", err)
			}
			began += n
			if next.IsZero() || !soonest.IsZero() && soonest.Before(next) {
				next = soonest
			}
		}
		r.failures = 0
		if err := r.readAhead(ctx, view); err != nil {
			return r.logAndPause(ctx, "callbacks: the next ones cannot be read", err)
		}
		if began == 0 || next.IsZero() || next.After(now) {
			return r.until(next, now)
		}
	}
	if r.inFlight.free() <= 0 {
		return r.sender.o.Poll // an end wakes sooner
	}
	return minPause
}

// ask begins the attempts of one answer of the outbox. It returns their number
// and when the next delivery is due.
func (r *run) ask(ctx context.Context, v *view, scope state.Scope) (began int, next time.Time, err error) {
	scope.Begun = r.inFlight.deliveries
	due, next, err := r.sender.o.Outbox.DueDeliveries(ctx, v.now, min(r.inFlight.free(), maxFetch), scope)
	for _, d := range due {
		if r.inFlight.begins(d, v) {
			r.begin(d, v)
			began++
		}
	}
	return began, next, err
}

// readAhead reads deliveries of lanes that have all the attempts they may have, so
// that the next ones begin without another look.
func (r *run) readAhead(ctx context.Context, v *view) error {
	lanes := r.inFlight.starved(v)
	if len(lanes) == 0 {
		return nil
	}
	scope := state.Scope{Only: lanes, Each: maxAhead, Begun: r.inFlight.deliveries, Bytes: largeBytes}
	due, _, err := r.sender.o.Outbox.DueDeliveries(ctx, v.now, maxAhead*len(lanes), scope)
	for _, d := range due {
		r.inFlight.hold(d, v.now)
	}
	return err
}

// until returns how long to wait for the next delivery, at least minPause: one
// that is due already but was not returned may not exist.
func (r *run) until(next, now time.Time) time.Duration {
	if next.IsZero() {
		return r.sender.o.Poll
	}
	return min(max(next.Sub(now), minPause), r.sender.o.Poll)
}

// logAndPause logs an error of the outbox and returns how long to pause.
func (r *run) logAndPause(ctx context.Context, message string, err error) time.Duration {
	if ctx.Err() != nil {
		return 0 // Run ends
	}
	r.failures++
	wait := outboxBackoff.Wait(r.failures)
	r.sender.o.Log.LogAttrs(ctx, slog.LevelError, message, slog.Any("error", err), slog.Duration("again_in", wait))
	return wait
}

// pause waits until there may be something to do. After an error it waits the
// whole time, however often it is woken.
func (r *run) pause(ctx context.Context, wait time.Duration) {
	r.idle.Reset(wait)
	for {
		ended, woken := false, false
		select {
		case <-ctx.Done():
			return
		case <-r.idle.C:
			return
		case e := <-r.events:
			ended = r.handle(ctx, e)
		case <-r.sender.wake:
			woken = true
		}
		for len(r.events) > 0 { // handle all that ended before looking again
			ended = r.handle(ctx, <-r.events) || ended
		}
		early := r.rested.Sub(r.now())
		switch {
		case r.failures > 0 || !ended && !woken:
		case ended || early <= 0:
			return
		default:
			r.idle.Reset(early)
		}
	}
}

// handle notes what became of an attempt, and begins the next of its lane that was
// read ahead. It reports whether the outbox may have more to begin.
func (r *run) handle(ctx context.Context, e event) (look bool) {
	if e.settled {
		full := r.inFlight.free() <= 0
		r.inFlight.settled(e.delivery.ID)
		// A look at the outbox before this leaves the delivery out, so it does not say when
		// it is due again.
		return full || e.again
	}
	now := r.now()
	r.inFlight.end(e.delivery, e.took, now)
	if ctx.Err() != nil {
		return false
	}
	began := false
	v := r.inFlight.look(now)
	for d := range r.inFlight.next(e.delivery, v) {
		r.begin(d, v)
		began = true
	}
	return !began
}

// begin starts an attempt.
func (r *run) begin(d state.Delivery, v *view) {
	r.inFlight.begin(d, v)
	r.attempts.Go(func() {
		again := r.deliver(d)
		r.events <- event{delivery: d, settled: true, again: again}
	})
}

// deliver makes an attempt, says how long the receiver took, and settles it: its
// place is free while the outbox writes. An attempt that was cut off is not
// settled: it is unknown whether it arrived, so it is made again. It reports whether
// the delivery is settled and due again later.
func (r *run) deliver(d state.Delivery) (again bool) {
	began := r.now()
	a := r.sender.attempt(r.life, r.transport, d)
	now := r.now()
	took := now.Sub(began)
	r.events <- event{delivery: d, took: took}
	if a.failure != "" && r.life.Err() != nil {
		return false
	}
	result := r.sender.judge(d, a, now)
	result.Took = took
	if !r.settle(d, result) {
		return false
	}
	if result.State == state.Dead {
		r.sender.o.Log.LogAttrs(r.life, slog.LevelWarn, "callbacks: a delivery is dead",
			slog.Int64("organization", d.Organization), slog.String("webhook", d.WebhookID), slog.String("failure", result.Failure))
	}
	r.sender.o.Observe(result)
	return result.State == state.Pending
}

// settle stores a result, and tries again after errors. It returns false when
// the grace ended first.
func (r *run) settle(d state.Delivery, result state.Attempt) bool {
	for failures := 1; ; failures++ {
		err := r.sender.o.Outbox.SettleDelivery(r.life, result)
		if err == nil || errors.Is(err, state.ErrNotFound) || errors.Is(err, state.ErrFinished) {
			return true
		}
		if r.life.Err() != nil {
			return false
		}
		r.sender.o.Log.LogAttrs(r.life, slog.LevelError, "callbacks: an attempt cannot be settled",
			slog.Int64("organization", d.Organization), slog.String("webhook", d.WebhookID), slog.Any("error", err))
		select {
		case <-r.life.Done():
			return false
		case <-time.After(outboxBackoff.Wait(failures)):
		}
	}
}
