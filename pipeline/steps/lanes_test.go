package steps

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leadetl/leadetl/internal/badservice"
	"github.com/leadetl/leadetl/internal/objects"
	"github.com/leadetl/leadetl/pipeline/answers"
	"github.com/leadetl/leadetl/pipeline/pace"
	"github.com/leadetl/leadetl/pipeline/purchase"
	"github.com/leadetl/leadetl/resolution"
)

const (
	testLanes      = 3
	laneConcurrent = 4 // calls in flight of each lane
)

// inLanes lets a run ask in lanes.
func inLanes(more func(*purchase.Remote)) func(*purchase.Remote) {
	return func(r *purchase.Remote) {
		options := pace.DefaultOptions()
		options.Concurrency, options.GiveUp = testLanes*laneConcurrent, 10*time.Second
		r.Pace, r.Concurrency, r.Lanes = pace.New(options), options.Concurrency, testLanes
		r.Counters.Paced(r.Pace.Snapshot)
		if more != nil {
			more(r)
		}
	}
}

// gathered takes the steps before the first wave is asked.
func (p *paid) gathered() (d Division, lots int) {
	t, ctx := p.t, p.t.Context()
	t.Helper()
	d = p.divided()
	r := p.join()
	for window := range d.Windows {
		if _, err := r.Spread(ctx, window); err != nil {
			t.Fatal(err)
		}
	}
	lots, err := r.Lots(ctx, 0)
	if err != nil {
		t.Fatal(err)
	}
	for lot := range lots {
		if _, err := r.Gather(ctx, 0, lot); err != nil {
			t.Fatal(err)
		}
	}
	return d, lots
}

// built takes the steps after the first wave was asked.
func (p *paid) built(d Division, lots int) {
	t, ctx := p.t, p.t.Context()
	t.Helper()
	r := p.join()
	for lot := range lots {
		if err := r.Share(ctx, 0, lot); err != nil {
			t.Fatal(err)
		}
	}
	for part := range d.Parts {
		if _, err := r.Build(ctx, part); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := r.Finish(ctx); err != nil {
		t.Fatal(err)
	}
}

// torment asks in lanes. Every caller but the last of a lane is cut off from the
// run while it calls: it is told to stop, or a successor takes over while it goes
// on, as after a sleep. It returns how many were replaced in this way.
func (p *paid) torment(l Lanes, random *rand.Rand, callers int) (replaced int) {
	t := p.t
	t.Helper()
	var asking sync.WaitGroup
	var slow sync.WaitGroup
	var dice sync.Mutex
	for lane := range l.Count {
		asking.Go(func() {
			for caller := range callers {
				dice.Lock()
				stops, calls := random.IntN(3) == 0, 3+random.IntN(20)
				if last := caller == callers-1; last {
					stops = false
				} else if !stops {
					replaced++
				}
				dice.Unlock()
				ctx, cancel := context.WithCancel(t.Context())
				r, seen := p.join(), p.service.Seen()
				if caller == callers-1 {
					_, err := r.AskLane(ctx, 0, l, lane, nil)
					for errors.Is(err, objects.ErrLockLost) { // an earlier one was slow to begin
						_, err = r.AskLane(ctx, 0, l, lane, nil)
					}
					if cancel(); err != nil {
						t.Errorf("the last caller of lane %d: %v", lane, err)
					}
					return
				}
				ended := make(chan error, 1)
				slow.Go(func() {
					_, err := r.AskLane(ctx, 0, l, lane, nil)
					ended <- err
				})
				for p.service.Seen() < seen+calls {
					select {
					case err := <-ended:
						if err != nil {
							t.Errorf("lane %d: %v", lane, err)
						}
						ended <- nil
						seen = -calls // it has nothing more to ask
					case <-time.After(time.Millisecond):
					}
				}
				if stops {
					cancel()
					if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
						t.Errorf("lane %d is told to stop: %v", lane, err)
					}
					continue
				}
				slow.Go(func() {
					defer cancel()
					if err := <-ended; err != nil && !errors.Is(err, objects.ErrLockLost) {
						t.Errorf("lane %d was replaced: %v", lane, err)
					}
				})
			}
		})
	}
	asking.Wait()
	slow.Wait()
	return replaced
}

func (p *paid) requireOnce() {
	p.t.Helper()
	for key, times := range p.service.BilledKeys() {
		if times != 1 || key == "192.31.196.4" || strings.HasPrefix(key, "10.") {
			p.t.Errorf("%s is billed %d times", key, times)
		}
	}
}

// TestLanes asks a wave in three lanes whose callers are replaced while they call.
// Each key is billed once, and the parts are those of one machine, offline.
func TestLanes(t *testing.T) {
	for seed, window := range []time.Duration{purchase.DefaultKeyWindow, 0} {
		t.Run(fmt.Sprint("idempotent ", window), func(t *testing.T) {
			o := badservice.DefaultOptions()
			o.Matched, o.Refused, o.Latency = 0.6, 0.05, 10*time.Millisecond
			p := newPaid(t, visits(150), 50, o)
			p.change = inLanes(func(r *purchase.Remote) { r.Keys = purchase.NewKeyWindow(window) })
			d, lots := p.gathered()
			if lots < testLanes*lotsPerLane/2 {
				t.Fatalf("%d lots", lots)
			}
			l, err := p.join().OpenLanes(t.Context(), 0)
			if err != nil || l.Count != testLanes || l.MaxCalls != -1 {
				t.Fatalf("%+v, %v", l, err)
			}
			replaced := p.torment(l, rand.New(rand.NewPCG(uint64(seed), 1)), 2)
			p.requireOnce()
			asked, err := p.join().Ask(t.Context(), 0, nil)
			p.requireOnce()
			if err != nil || asked.Keys != asked.Closed || asked.Matched == 0 {
				t.Errorf("%+v, %v", asked, err)
			}
			p.built(d, lots)
			calls, err := p.state().OpenCalls(t.Context(), answers.Scope{Service: p.url, Operation: resolution.IPToCompany})
			if err != nil || window > 0 && len(calls) > 0 || len(calls) > replaced*laneConcurrent {
				t.Errorf("%d calls are unknown after %d were replaced, %v", len(calls), replaced, err)
			}
			if len(calls) == 0 && window > 0 {
				p.requireSame(3)
			}
			t.Logf("%d replaced, %d unknown, %+v", replaced, len(calls), asked)
		})
	}
}

// TestLanesBudget: lanes never pass a budget together, and what one leaves is spent
// by another, also when their callers are replaced.
func TestLanesBudget(t *testing.T) {
	o := badservice.DefaultOptions()
	o.Matched, o.Latency = 0.6, 5*time.Millisecond
	p := newPaid(t, visits(150), 50, o)
	const calls, more = 50, 80
	limit := int64(calls)
	p.change = inLanes(func(r *purchase.Remote) {
		r.Keys, r.Budget.MaxCalls = purchase.NewKeyWindow(purchase.DefaultKeyWindow), limit
	})
	d, lots := p.gathered()
	random := rand.New(rand.NewPCG(7, 7))
	for _, limit = range []int64{calls, more} {
		l, err := p.join().OpenLanes(t.Context(), 0)
		if err != nil || l.Count != testLanes || l.MaxCalls*testLanes > limit-l.Calls {
			t.Fatalf("%+v, %v", l, err)
		}
		p.torment(l, random, 2)
		if billed := int64(len(p.service.BilledKeys())); billed > limit || billed < limit-testLanes {
			t.Errorf("%d are billed in lanes, the limit is %d", billed, limit)
		}
		asked, err := p.join().Ask(t.Context(), 0, nil)
		if billed := int64(len(p.service.BilledKeys())); !errors.Is(err, purchase.ErrBudget) || billed != limit || asked.Calls != limit {
			t.Errorf("%d are billed, the limit is %d: %+v, %v", billed, limit, asked, err)
		}
		p.requireOnce()
	}
	if l, err := p.join().OpenLanes(t.Context(), 0); err != nil || l.Count != 0 {
		t.Errorf("without money %+v, %v", l, err)
	}
	limit = -1
	if _, err := p.join().Ask(t.Context(), 0, nil); err != nil {
		t.Fatal(err)
	}
	p.requireOnce()
	p.built(d, lots)
	p.requireSame(3)
}

// TestLanesOfADeadRun: what a dead run has bought in lanes is stored for the next
// run, which is another one, and no caller of the dead run goes on.
func TestLanesOfADeadRun(t *testing.T) {
	o := badservice.DefaultOptions()
	o.Matched, o.Latency = 0.6, 5*time.Millisecond
	p := newPaid(t, visits(100), 50, o)
	p.change = inLanes(nil)
	p.gathered()
	dead := p.join()
	l, err := dead.OpenLanes(t.Context(), 0)
	if err != nil || l.Count != testLanes {
		t.Fatalf("%+v, %v", l, err)
	}
	if _, err := dead.AskLane(t.Context(), 0, l, 0, nil); err != nil {
		t.Fatal(err)
	}
	bought := len(p.service.BilledKeys())
	scope := answers.Scope{Service: p.url, Operation: resolution.IPToCompany}
	stored := 0
	for _, err := range p.state().Sorted(t.Context(), scope) {
		if stored++; err != nil {
			t.Fatal(err)
		}
	}
	if bought == 0 || stored != bought {
		t.Errorf("%d answers are found, %d were bought", stored, bought)
	}
	// The lease of the dead run expires.
	p.expire()
	session, err := p.state().Write(t.Context(), scope, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	spent, err := session.Answers.SumSpent(t.Context(), dead.Header().Run)
	if err != nil || spent.Answers != int64(bought) {
		t.Errorf("the next run finds %+v, %v, want %d answers", spent, err, bought)
	}
	for lane := range l.Count {
		p.expire()
		if _, err := p.join().AskLane(t.Context(), 0, l, lane, nil); !errors.Is(err, objects.ErrLockLost) {
			t.Errorf("lane %d goes on: %v, want %v", lane, err, objects.ErrLockLost)
		}
	}
	if now := len(p.service.BilledKeys()); now != bought {
		t.Errorf("%d are bought after the run was dead", now-bought)
	}
	if err := session.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.expire()
	// The dead run comes back, and goes on.
	if asked, err := p.join().Ask(t.Context(), 0, nil); err != nil || asked.Keys != asked.Closed {
		t.Errorf("%+v, %v", asked, err)
	}
	p.requireOnce()
}

// expire removes the leases, as if their holders had been silent for long.
func (p *paid) expire() {
	p.t.Helper()
	at, err := objects.ParseFolder("s3://leads/state/lease/")
	if err != nil {
		p.t.Fatal(err)
	}
	for info, err := range p.store.List(p.t.Context(), at) {
		if err := errors.Join(err, p.store.Remove(p.t.Context(), info.Location)); err != nil {
			p.t.Fatal(err)
		}
	}
}
