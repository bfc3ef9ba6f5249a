package steps

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/sourcegraph/conc/pool"

	"github.com/leadetl/leadetl/pipeline/answers"
	"github.com/leadetl/leadetl/pipeline/objectstate"
	"github.com/leadetl/leadetl/pipeline/outcome"
	"github.com/leadetl/leadetl/pipeline/purchase"
	"github.com/leadetl/leadetl/pipeline/stats"
	"github.com/leadetl/leadetl/resolution"
)

// Asking buys the answers to the questions of one wave. It is the only step that
// costs money, so one process at a time does it: the session of the state
// fences the one before. Everything that protects the money is in
// purchase.Buyer, which gets the questions in batches.
type Asking struct {
	State *objectstate.State
	// Remote is the service, and how it may be asked. Its Answers are not used.
	Remote    *purchase.Remote
	Operation resolution.Operation
	// Run names the run that pays. Another process that asks for it is replaced.
	Run string
	// Lots is the number of lots, which hold the questions in the order of their
	// hashes. Read reads one. It is called several times for each lot.
	Lots int
	Read func(ctx context.Context, lot int) ([]Question, error)
	// Close records that all questions of a lot were asked.
	Close func(ctx context.Context, lot int, done Lot) error
	// Lane is the lane that it asks in, beside those of other processes; nil means
	// that it is alone. The budget of Remote is then what the lane may spend.
	Lane    *objectstate.Lane
	Scratch string // folder for temporary files; empty means the system's
	Log     *slog.Logger
}

// Question is a question to ask.
type Question struct {
	Hash  answers.Hash
	Asked string // its key, as resolution.WithAddress returns it
}

// Failure is a question without an answer, and the reason that its rows get.
type Failure struct {
	Hash   answers.Hash
	Reason string
}

// Lot is a lot whose questions were all asked.
type Lot struct {
	Keys, Matched int64
	Failed        []Failure // in the order of their hashes
}

// Asked counts what an Asking has done. It holds no data.
type Asked struct {
	// Keys are the questions taken up, Closed those of them that need no more
	// work: Stored were answered before, Matched have a match, Failed have no
	// answer.
	Keys    int64 `json:"keys"`
	Closed  int64 `json:"closed"`
	Stored  int64 `json:"stored"`
	Matched int64 `json:"matched"`
	Failed  int64 `json:"failed"`
	// Requests left in this process. Calls and Credits are what the run has spent
	// so far, earlier processes and waves included; of a lane, what the lane has.
	// Unknown calls may have been billed and have no answer.
	Requests int64 `json:"requests"`
	Calls    int64 `json:"calls"`
	Credits  int64 `json:"credits"`
	Unknown  int64 `json:"unknown"`
	// Paid is the part of Credits that answers have cost; the rest is the most
	// that calls without an answer can cost.
	Paid int64 `json:"paid"`
	// Made is what the requests of this process came to.
	Made stats.CallRecord `json:"made"`
	// InFlight and Rate are those of the moment.
	InFlight int     `json:"in_flight"`
	Rate     float64 `json:"rate"`
}

const (
	// batchKeys and batchesAtOnce bound the questions in memory. They are enough
	// for some seconds of calls, so that the places in flight stay full while the
	// slowest call of a batch is waited for.
	batchKeys     = 256
	batchesAtOnce = 64
	beatEvery     = time.Second
)

// Do asks until every question is answered or has failed, and calls beat every
// second and at the end. The answers are in the manifest of the state when it
// returns. When ctx ends it makes no further call, waits for those in flight and
// stores their answers. The error says why it stopped: it is one of those that
// purchase.Buyer stops with, objects.ErrLockLost if another process has taken
// over, or ctx's.
func (a *Asking) Do(ctx context.Context, beat func(Asked)) (asked Asked, err error) {
	dir, err := os.MkdirTemp(a.Scratch, "leadetl-answers-*")
	if err != nil {
		return asked, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	session, err := a.session(ctx, dir)
	if err != nil {
		return asked, err
	}
	defer func() { err = errors.Join(err, session.Close(ctx)) }()
	if err := session.Answers.Load(ctx, a.hashes(ctx)); err != nil {
		return asked, err
	}
	session.Linger(a.Remote.Pace.Crowded)
	remote := *a.Remote
	remote.Answers, remote.Counters = session.Answers, &stats.CallCounters{}
	remote.Counters.PacedSince(a.Remote.Pace.Snapshot)
	w := &asking{Asking: a, counters: remote.Counters, earlier: remote.OpenOf(a.Run, session.Inherited())}
	remote.Budget = remote.Budget.Above(w.earlier)
	var ended context.Context
	if w.buyer, ended, err = purchase.Open(ctx, &remote, a.Operation, a.Run, a.Log); err != nil {
		return asked, err
	}
	stopBeats := w.beats(beat)
	err = w.askAll(ended)
	w.buyer.Close() // waits for the calls in flight
	if err == nil {
		err = w.buyer.Refused()
	}
	stopBeats()
	return w.count(), purchase.EndOf(ended, err)
}

// session opens the session.
func (a *Asking) session(ctx context.Context, dir string) (*objectstate.Session, error) {
	scope := a.Remote.Scope(a.Operation)
	if a.Lane != nil {
		return a.State.WriteLane(ctx, scope, *a.Lane, a.hashes(ctx), dir)
	}
	return a.State.WriteFor(ctx, scope, a.Run, dir)
}

// hashes yields the hashes of all questions.
func (a *Asking) hashes(ctx context.Context) iter.Seq2[answers.Hash, error] {
	return func(yield func(answers.Hash, error) bool) {
		for lot := range a.Lots {
			questions, err := a.Read(ctx, lot)
			if err != nil {
				yield(answers.Hash{}, err)
				return
			}
			for _, q := range questions {
				if !yield(q.Hash, nil) {
					return
				}
			}
		}
	}
}

// asking is one Do.
type asking struct {
	*Asking
	buyer    *purchase.Buyer
	counters *stats.CallCounters
	earlier  purchase.Spending // of the run, before its lane was opened

	mu     sync.Mutex
	failed int64
}

// askAll asks the questions of all lots. Batches of the next lot are asked while
// the last ones of a lot are waited for. ctx is the buyer's.
func (w *asking) askAll(ctx context.Context) error {
	batches := pool.New().WithMaxGoroutines(batchesAtOnce)
	start := func(do func() error) {
		batches.Go(func() {
			if err := do(); err != nil {
				w.buyer.Stop(err) // the first cause counts
			}
		})
	}
	hash := w.Remote.Scope(w.Operation).Hasher()
	for number := 0; number < w.Lots && ctx.Err() == nil; number++ {
		questions, err := w.Read(ctx, number)
		if err == nil {
			err = w.check(questions, hash)
		}
		if err != nil {
			w.buyer.Stop(fmt.Errorf("lot %d: %w", number, err))
			break
		}
		l := &lot{number: number, left: (len(questions) + batchKeys - 1) / batchKeys}
		if l.left == 0 {
			start(func() error { return w.Close(ctx, l.number, Lot{}) })
		}
		for some := range slices.Chunk(questions, batchKeys) {
			start(func() error { return w.ask(ctx, l, some) })
		}
	}
	batches.Wait()
	return context.Cause(ctx)
}

// check makes sure that the keys are those whose answers the session has: a key
// under another hash would be bought although it is stored.
func (w *asking) check(questions []Question, hash func([]byte) answers.Hash) error {
	for _, q := range questions {
		if key, _ := resolution.CutAddress(q.Asked); hash([]byte(key)) != q.Hash {
			return fmt.Errorf("%w: a key does not have its hash", objectstate.ErrDamaged)
		}
	}
	return nil
}

// lot is a lot that is being asked.
type lot struct {
	number int

	mu   sync.Mutex
	left int // batches
	done Lot
}

// ask asks a batch, and closes the lot after its last one.
func (w *asking) ask(ctx context.Context, l *lot, some []Question) error {
	asked := make([]string, len(some))
	for i, q := range some {
		asked[i] = q.Asked
	}
	got, err := w.buyer.Answer(ctx, asked)
	if err != nil {
		return err
	}
	var failed []Failure
	matched := int64(0)
	for i, a := range got {
		switch a.Outcome {
		case outcome.Failed:
			failed = append(failed, Failure{some[i].Hash, a.Reason})
		case outcome.Matched:
			matched++
		}
	}
	w.mu.Lock()
	w.failed += int64(len(failed))
	w.mu.Unlock()
	l.mu.Lock()
	l.done.Keys += int64(len(some))
	l.done.Matched += matched
	l.done.Failed = append(l.done.Failed, failed...)
	l.left--
	last := l.left == 0
	l.mu.Unlock()
	if !last {
		return nil
	}
	slices.SortFunc(l.done.Failed, func(a, b Failure) int { return a.Hash.Compare(b.Hash) })
	return w.Close(ctx, l.number, l.done)
}

// count returns the counts of this moment.
func (w *asking) count() Asked {
	now := w.counters.Snapshot()
	a := Asked{
		Keys: now.Asked, Closed: now.Closed, Stored: now.Stored, Matched: now.Matched, Requests: now.Calls, Unknown: now.Unknown,
		Paid: now.EarlierCredits + now.Credits, Made: w.counters.Record(), InFlight: now.InFlight, Rate: now.Rate,
	}
	a.Calls, a.Credits = w.buyer.Spent()
	a.Calls, a.Credits = a.Calls-w.earlier.Calls, a.Credits-w.earlier.Credits()
	w.mu.Lock()
	a.Failed = w.failed
	w.mu.Unlock()
	return a
}

// beats calls beat every second, and once more when it is told to stop.
func (w *asking) beats(beat func(Asked)) (stop func()) {
	if beat == nil {
		return func() {}
	}
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		ticker := time.NewTicker(beatEvery)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				beat(w.count())
			case <-quit:
				beat(w.count())
				return
			}
		}
	}()
	return func() { close(quit); <-done }
}
