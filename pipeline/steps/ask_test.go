package steps

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/leadetl/leadetl/internal/badservice"
	"github.com/leadetl/leadetl/internal/objects"
	"github.com/leadetl/leadetl/internal/s3test"
	"github.com/leadetl/leadetl/internal/secret"
	"github.com/leadetl/leadetl/pipeline/answers"
	"github.com/leadetl/leadetl/pipeline/objectstate"
	"github.com/leadetl/leadetl/pipeline/outcome"
	"github.com/leadetl/leadetl/pipeline/pace"
	"github.com/leadetl/leadetl/pipeline/purchase"
	"github.com/leadetl/leadetl/pipeline/stats"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/client"
)

// askBench is a service and a store, and the lots of a wave.
type askBench struct {
	t       *testing.T
	store   *objects.Store
	service *badservice.Service
	url     string
	keys    []string
	lots    [][]Question
	scope   answers.Scope

	mu     sync.Mutex
	closed map[int][]Failure // by lot
}

// newAskBench makes lots of keys in order of their hashes, of 300 each.
func newAskBench(t *testing.T, keys int, o badservice.Options) *askBench {
	t.Helper()
	server := s3test.Start(t, "leads")
	s3test.Setenv(t)
	b := &askBench{t: t, store: objects.New(t.Context(), objects.Options{Endpoint: server.URL, PathStyle: true, GiveUpAfter: 20 * time.Second}), closed: map[int][]Failure{}}
	b.service = badservice.New(o)
	var err error
	if b.url, err = b.service.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.service.Close(); err != nil {
			t.Error(err)
		}
	})
	b.scope = answers.Scope{Service: b.url, Operation: resolution.NetworkToPhone}
	var all []Question
	for n := range keys {
		key := fmt.Sprintf("network.example/in/person-%d", n)
		b.keys = append(b.keys, key)
		all = append(all, Question{answers.Question{Scope: b.scope, Key: key}.Hash(), key})
	}
	slices.SortFunc(all, func(a, b Question) int { return a.Hash.Compare(b.Hash) })
	b.lots = slices.Collect(slices.Chunk(all, 300))
	return b
}

// asking is an attempt at the wave, by a process of its own.
func (b *askBench) asking(change func(*purchase.Remote)) *Asking {
	b.t.Helper()
	o := client.DefaultOptions()
	o.BaseURL, o.Key = b.url, secret.New("key")
	service, err := client.New(o)
	if err != nil {
		b.t.Fatal(err)
	}
	state, err := objectstate.Open(b.store, "s3://leads/state/")
	if err != nil {
		b.t.Fatal(err)
	}
	counters := &stats.CallCounters{}
	remote := &purchase.Remote{
		Service: service, Read: client.Read, Name: b.url, Concurrency: 16, Budget: purchase.NoBudget,
		Price: purchase.Price{Match: 3}, Patience: time.Minute, Counters: counters,
	}
	if change != nil {
		change(remote)
	}
	p := pace.DefaultOptions()
	p.Concurrency, p.GiveUp = remote.Concurrency, 10*time.Second
	remote.Pace = pace.New(p)
	counters.Paced(remote.Pace.Snapshot)
	return &Asking{
		State: state, Remote: remote, Operation: b.scope.Operation, Run: "night", Scratch: b.t.TempDir(), Log: slog.New(slog.DiscardHandler),
		Lots: len(b.lots),
		Read: func(_ context.Context, lot int) ([]Question, error) { return b.lots[lot], nil },
		Close: func(_ context.Context, lot int, done Lot) error {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.closed[lot] = done.Failed
			return nil
		},
	}
}

// requireOnce makes sure that no key was billed twice.
func (b *askBench) requireOnce() {
	b.t.Helper()
	for key, times := range b.service.BilledKeys() {
		if times > 1 {
			b.t.Errorf("%s was billed %d times", key, times)
		}
	}
}

// stored counts the answers and open calls in the state. refused are those of
// the answers that a new process asks for again, because they are free.
func (b *askBench) stored() (n, refused, open int) {
	b.t.Helper()
	state := b.asking(nil).State
	for i, err := range state.Sorted(b.t.Context(), b.scope) {
		if err != nil {
			b.t.Fatal(err)
		}
		n++
		if i.Outcome == answers.Refused {
			refused++
		}
	}
	calls, err := state.OpenCalls(b.t.Context(), b.scope)
	if err != nil {
		b.t.Fatal(err)
	}
	return n, refused, len(calls)
}

// Every key is bought once, by one attempt or several: a budget, a cancellation
// and another process only interrupt.
func TestAsk(t *testing.T) {
	o := badservice.DefaultOptions()
	o.Latency, o.Refused = time.Millisecond, 0.02
	b := newAskBench(t, 1000, o)
	const budget = 100
	limited := b.asking(func(r *purchase.Remote) { r.Budget.MaxCalls = budget })
	asked, err := limited.Do(t.Context(), nil)
	if !errors.Is(err, purchase.ErrBudget) || asked.Calls != budget || asked.Unknown != 0 {
		t.Fatalf("with a budget: %+v, %v", asked, err)
	}
	if n, _, open := b.stored(); n < budget || open != 0 {
		t.Errorf("%d answers and %d open calls are stored after the budget is used up", n, open)
	}

	ctx, cancel := context.WithCancel(t.Context())
	beats := 0
	asked, err = b.asking(func(r *purchase.Remote) { r.Concurrency = 2 }).Do(ctx, func(a Asked) {
		if beats++; a.Requests > 0 {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) || asked.Unknown != 0 || asked.InFlight != 0 || beats < 2 {
		t.Errorf("cancelled: %+v, %v, after %d beats", asked, err, beats)
	}
	before, refused, open := b.stored()
	if open != 0 {
		t.Errorf("%d open calls are left of the cancelled one", open)
	}

	asked, err = b.asking(nil).Do(t.Context(), nil)
	if err != nil || asked.Keys != 1000 || asked.Closed != 1000 || int(asked.Stored) != before-refused || asked.Failed == 0 {
		t.Errorf("the last one: %+v, %v; want all 1000, %d of them stored", asked, err, before-refused)
	}
	b.requireOnce()
	failed := 0
	for lot := range b.lots {
		answered, found := b.closed[lot]
		if !found {
			t.Errorf("lot %d is not closed", lot)
		}
		for _, f := range answered {
			if failed++; len(f.Reason) < len(outcome.ReasonRefused) || f.Reason[:len(outcome.ReasonRefused)] != outcome.ReasonRefused {
				t.Errorf("failed for %q", f.Reason)
			}
		}
	}
	if int64(failed) != asked.Failed {
		t.Errorf("%d failures are recorded, want %d", failed, asked.Failed)
	}
	if n, _, open := b.stored(); n != 1000 || open != 0 {
		t.Errorf("%d answers and %d open calls are stored, want 1000 and 0", n, open)
	}
}

// A successor takes over at once from a process that is slow to die. That one
// makes no call after it found out, and what it had in flight is not bought again.
func TestAskTakenOver(t *testing.T) {
	for _, window := range []time.Duration{0, purchase.DefaultKeyWindow} {
		t.Run(fmt.Sprint("idempotent ", window), func(t *testing.T) {
			o := badservice.DefaultOptions()
			o.Latency = 100 * time.Millisecond
			b := newAskBench(t, 400, o)
			change := func(r *purchase.Remote) { r.Keys = purchase.NewKeyWindow(window) }
			first := make(chan error)
			begun := make(chan struct{})
			slow := b.asking(change)
			go func() {
				once := sync.Once{}
				_, err := slow.Do(t.Context(), func(a Asked) {
					if a.Requests > 0 {
						once.Do(func() { close(begun) })
					}
				})
				once.Do(func() { close(begun) })
				first <- err
			}()
			<-begun
			asked, err := b.asking(change).Do(t.Context(), nil)
			if err != nil || asked.Closed != 400 {
				t.Errorf("the successor: %+v, %v", asked, err)
			}
			if err := <-first; err != nil && !errors.Is(err, objects.ErrLockLost) {
				t.Errorf("the one before: %v, want nothing or %v", err, objects.ErrLockLost)
			}
			b.requireOnce()
			// What was in flight came late, and counts at the next takeover.
			if asked, err = b.asking(change).Do(t.Context(), nil); err != nil {
				t.Errorf("afterwards: %+v, %v", asked, err)
			}
			n, _, open := b.stored()
			if n+open != 400 || open > slow.Remote.Concurrency || window > 0 && open > 0 {
				t.Errorf("%d answers and %d open calls are stored, want 400", n, open)
			}
			b.requireOnce()
		})
	}
}

// Keys that do not have their hashes, lots that grow, and lots that cannot be read,
// stop the asking before a call.
func TestAskRefusesWrongLots(t *testing.T) {
	b := newAskBench(t, 10, badservice.DefaultOptions())
	wrong := b.asking(nil)
	b.lots[0][3].Asked += "x"
	if _, err := wrong.Do(t.Context(), nil); !errors.Is(err, objectstate.ErrDamaged) || b.service.Seen() > 0 {
		t.Errorf("keys without their hash: %v, after %d calls", err, b.service.Seen())
	}
	b.lots[0][3] = Question{answers.Question{Scope: b.scope, Key: "other"}.Hash(), "other"}
	lots, read := b.lots[0], 0
	wrong.Read = func(context.Context, int) ([]Question, error) {
		if read++; read == 1 {
			return lots[:3], nil
		}
		return lots, nil
	}
	if _, err := wrong.Do(t.Context(), nil); !errors.Is(err, objectstate.ErrNotLoaded) || b.service.Seen() > 0 {
		t.Errorf("a lot that grows: %v, after %d calls", err, b.service.Seen())
	}
	gone := errors.New("gone")
	wrong.Read = func(context.Context, int) ([]Question, error) { return nil, gone }
	if _, err := wrong.Do(t.Context(), nil); !errors.Is(err, gone) {
		t.Errorf("a lot that cannot be read: %v", err)
	}
}
