package purchase

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/leadetl/leadetl/resolution"
)

// initialPlaces is the first number of pages that a service makes at a time, and maxPlaces the
// highest.
const initialPlaces, maxPlaces = 4, 16

// places bounds the pages that a service makes at a time. Services do not announce their limit,
// so each finished page adds a place, until the service refuses one. Callers are served in
// their order.
type places struct {
	mu      sync.Mutex
	limit   int // present number of places
	ceiling int // highest number of places
	taken   int
	takes   int // so far
	waiting []chan struct{}
}

func newPlaces(ceiling int) *places {
	ceiling = max(ceiling, 1)
	return &places{limit: min(initialPlaces, ceiling), ceiling: ceiling}
}

// take waits for a place.
func (p *places) take(ctx context.Context) error {
	p.mu.Lock()
	if p.taken < p.limit && len(p.waiting) == 0 {
		p.grant()
		p.mu.Unlock()
		return nil
	}
	turn := make(chan struct{})
	p.waiting = append(p.waiting, turn)
	p.mu.Unlock()
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
		p.mu.Lock()
		defer p.mu.Unlock()
		at := slices.Index(p.waiting, turn)
		if at < 0 { // it came at the same time
			p.taken--
			p.next()
		} else {
			p.waiting = slices.Delete(p.waiting, at, at+1)
		}
		return context.Cause(ctx)
	}
}

// occupy takes a place even if none is free, because the service already makes the page.
func (p *places) occupy() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.grant()
}

func (p *places) grant() {
	p.taken++
	p.takes++
}

// send waits for one of the service's places, and sends a call.
func (p *places) send(c *call) (a Result, err error) {
	b := c.buyer
	for {
		if !c.placed {
			if err := p.take(b.ctx); err != nil {
				return Result{}, err
			}
			c.placed = true
		}
		others := p.watch(func() { a, err = c.send() })
		refusal := noPlace(err, others)
		if refusal == nil {
			return a, b.codec.explain(err, c.question.Key, c.charge.price)
		}
		p.refuse()
		c.placed = false
		b.counters.Retried(string(refusal.Class))
	}
}

// leave frees the place of a call that has one. made says that the service made a page in it.
func (p *places) leave(c *call, made bool) {
	if c.placed {
		c.placed = false
		p.free(made)
	}
}

// free frees a place. made says that the service made a page in it.
func (p *places) free(made bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken--
	if made && p.limit < p.ceiling {
		p.limit++
	}
	p.next()
}

// refuse removes a place that the service does not have, and adds no more.
func (p *places) refuse() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken--
	p.ceiling = max(min(p.ceiling, p.taken), 1)
	p.limit = min(p.limit, p.ceiling)
	p.next()
}

// next gives free places to waiters.
func (p *places) next() {
	for p.taken < p.limit && len(p.waiting) > 0 {
		p.grant()
		close(p.waiting[0])
		p.waiting = p.waiting[1:]
	}
}

// watch reports whether others than the caller had a place while send ran.
func (p *places) watch(send func()) (others bool) {
	look := func() (takes int, others bool) {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.takes, p.taken > 1
	}
	takes, before := look()
	send()
	now, after := look()
	return before || after || now != takes
}

// tooManyActive is the code of a service that makes its highest number of pages.
const tooManyActive = "too_many_active_resolutions"

// noPlace returns the refusal of a page because of other pages that the service makes: there are
// too many, or it reserves the credits of a full page for each. It returns nil for any other
// error.
func noPlace(err error, others bool) *resolution.CallError {
	var failure *resolution.CallError
	if errors.As(err, &failure) && (failure.Class == resolution.Limited && failure.Code == tooManyActive || failure.Class == resolution.NoCredits && others) {
		return failure
	}
	return nil
}
