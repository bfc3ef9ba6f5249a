package world

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/leadetl/leadetl/pipeline/purchase"
	"github.com/leadetl/leadetl/resolution"
)

// delivery is an answer that is posted later.
type delivery struct {
	resolution.Delivery
	number, tries   int
	copy            int // of one that is posted more than once
	polls           int
	failed, spoiled bool
	made, due       time.Time
	wait            time.Duration
	done            bool
}

// promise lets an answer come later, or twice.
func (s *service) promise(r *record, call resolution.Call, d *delivery) {
	d.spoiled = s.world.Chance(s.plan.spoils, "spoils", r.number, r.requests)
	if s.world.Below(2, "client ref", r.number, r.requests) == 0 {
		d.ClientRef = call.ClientRef
	}
	wait := time.Duration(s.world.Draw("due", r.number, r.requests) % uint64(2*time.Minute))
	if s.world.Below(4, "at once", r.number, r.requests) == 0 {
		wait /= 10_000
	}
	d.made, d.wait, d.due = time.Now(), wait, time.Now().Add(wait)
	s.pages[d.ID] = d
	if s.plan.batch > 0 || s.plan.operation.IsKeyword() && s.world.Below(2, "never posted", r.number, r.requests) == 0 {
		return
	}
	s.send(d)
	if s.world.Below(4, "posted twice", r.number, r.requests) == 0 {
		again, most := *d, time.Second
		again.copy = 1
		if s.world.Below(2, "again much later", r.number, r.requests) == 0 {
			most = time.Minute
		}
		again.due = again.due.Add(time.Duration(s.world.Draw("again", r.number, r.requests) % uint64(most)))
		s.later = append(s.later, &again)
	}
}

// send lets a delivery be posted when it is due.
func (s *service) send(d *delivery) {
	s.later = append(s.later, d)
	select {
	case s.promised <- struct{}{}:
	default:
	}
}

// postAgain posts, while a request is out, that an earlier one was given up: services repeat
// what they posted.
func (s *service) postAgain(r *record, request int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.givenUp != nil && s.world.Below(2, "given up again", r.number, request) == 0 {
		again := *r.givenUp
		again.copy = 1 + request
		again.tries, again.due, again.done = 0, time.Now(), false
		again.spoiled = s.world.Chance(s.plan.spoils, "spoils again", r.number, request)
		s.send(&again)
	}
}

// Poll is that of purchase.Service. It costs nothing, and may fail. A page is kept for a day,
// or as long as the key that it was asked for with.
func (s caller) Poll(_ context.Context, op resolution.Operation, id, _ string) (resolution.Reply, error) {
	w := s.world
	if err := s.machine.Awake(); err != nil {
		return resolution.Reply{}, err
	}
	s.mu.Lock()
	d := s.pages[id]
	d.polls++
	n := d.polls
	s.mu.Unlock()
	time.Sleep(time.Duration(w.Draw("poll", id, n) % uint64(20*time.Millisecond)))
	if err := s.machine.Awake(); err != nil {
		return resolution.Reply{}, err
	}
	w.Note("poll %s", id)
	e := &resolution.CallError{Operation: op, Class: resolution.Unavailable, Status: 500, Sent: true}
	switch {
	case n <= oddLooks && w.Chance(s.plan.faulty/2, "page is odd", id):
		e.Class, e.Status, e.Body = resolution.Protocol, 200, []byte("<html>")
		return resolution.Reply{}, e
	case n <= patient && w.Chance(s.plan.faulty/2, "poll fails", id, n):
		switch w.Below(8, "how poll fails", id, n) {
		case 0:
			e.Class, e.Status = resolution.Denied, 401
		case 1, 2, 3:
			e.Class, e.Status = resolution.Limited, 429
		case 4, 5:
			if time.Since(d.made) < 20*time.Second { // it is not yet known everywhere
				e.Class, e.Status = resolution.Invalid, 404
			}
		}
		return resolution.Reply{}, e
	}
	return s.find(op, d)
}

// find is what a look for an answer finds.
func (s *service) find(op resolution.Operation, d *delivery) (resolution.Reply, error) {
	switch {
	case time.Since(d.made) > 24*time.Hour && (s.plan.window > 0 || !s.plan.honours):
		return resolution.Reply{}, &resolution.CallError{Operation: op, Class: resolution.Invalid, Status: 404, Code: "not_found", Sent: true}
	case time.Since(d.made) < d.wait:
		return s.read(op, 200, fmt.Appendf(nil, `{"resolution":{"id":%q,"status":"processing"}}`, d.ID), nil)
	}
	return s.read(op, 200, d.Body, nil)
}

// oddLooks is after how many looks a page that could not be read can be: more than a call makes.
const oddLooks = 12

// maxPosts bounds how often a delivery is tried.
const maxPosts = 40

// post posts what was promised, when it is due, until ctx ends.
func (s *service) post(ctx context.Context, to *purchase.Deliveries, h *history) {
	var posts sync.WaitGroup
	defer posts.Wait()
	for ctx.Err() == nil {
		d, wait := s.next(h)
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-s.promised:
		case <-ctx.Done():
		}
		timer.Stop()
		if d != nil && ctx.Err() == nil && s.takeUp(h, d) {
			posts.Go(func() { s.postOne(ctx, to, h, d) })
		}
	}
}

// takeUp begins a try to post a delivery, if it is due.
func (s *service) takeUp(h *history, d *delivery) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Now().Before(s.dueAt(h, d)) {
		return false
	}
	d.tries++
	d.due = time.Now().Add(time.Duration(d.tries) * 30 * time.Second)
	d.done = d.tries == maxPosts
	return true
}

// dueAt is when a delivery is due at a machine. Of several that are at work, each may be the first.
func (s *service) dueAt(h *history, d *delivery) time.Time {
	if h.bucket == nil {
		return d.due
	}
	return d.due.Add(time.Duration(s.world.Below(1_000_000, "due at", d.ID, d.tries, h.lives)))
}

// next is the delivery that is due first, and when.
func (s *service) next(h *history) (first *delivery, wait time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var due time.Time
	for _, d := range s.later {
		if at := s.dueAt(h, d); !d.done && (first == nil || at.Before(due)) {
			first, due = d, at
		}
	}
	if first == nil {
		return nil, time.Hour
	}
	return first, time.Until(due)
}

func (s *service) postOne(ctx context.Context, to *purchase.Deliveries, h *history, d *delivery) {
	s.mu.Lock()
	posted, spoiled := d.Delivery, d.spoiled
	if d.spoiled = false; spoiled {
		posted.Body = []byte("<html>")
	}
	if cost := s.costs(d.number); s.plan.prices && !d.failed {
		posted.Spent = &cost
	}
	tries := d.tries
	s.mu.Unlock()
	s.world.Pause("post", d.ID, d.copy, tries) // many may be due when a life begins
	if s.world.Below(4, "posted too early", d.ID, tries) == 0 {
		early := posted
		early.Body = fmt.Appendf(nil, `{"resolution":{"id":%q,"status":"processing"}}`, d.ID)
		_ = alive(h.world, func() error {
			return errors.Join(to.Hint(context.WithoutCancel(ctx), d.ID), to.Deliver(context.WithoutCancel(ctx), early))
		})
	}
	err := alive(h.world, func() error { return to.Deliver(context.WithoutCancel(ctx), posted) })
	s.world.Note("post %s: %v", d.ID, err == nil)
	switch {
	case spoiled:
	case err == nil:
		if !d.failed {
			h.acknowledge(d.number)
		}
		s.mu.Lock()
		d.done = true
		s.mu.Unlock()
	case errors.Is(err, resolution.ErrInvalid):
		h.wrongly("the answer of key %d is refused: %v", d.number, err)
	}
}
