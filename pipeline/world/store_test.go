package world

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/leadetl/leadetl/internal/groupcommit"
	"github.com/leadetl/leadetl/internal/objects"
	"github.com/leadetl/leadetl/internal/testkit/worldtest"
	"github.com/leadetl/leadetl/pipeline/answers"
	"github.com/leadetl/leadetl/pipeline/purchase"
)

// store is the store of one life. After the crash its methods fail, and a change whose result
// the crash came before has none.
type store struct {
	purchase.Store
	history *history
}

var _ purchase.Store = store{}

// change makes a change of a question, which takes its time. Changes that are stored together end
// at two moments: timers that are set at one moment would fire in an order of chance.
func (s store) change(what string, q answers.Question, do func() error) error {
	h := s.history
	if h.plan.storeSlow > 0 {
		time.Sleep(time.Duration(h.world.Draw("slow"+h.name, what, q.Key, h.nextUse(q.Key)) % uint64(h.plan.storeSlow)))
	}
	h.pause(what + q.Key)
	defer h.world.Pause(what, q.Key, h.name, h.nextUse("end of "+what+q.Key))
	return alive(h.world, do)
}

// pause waits for a moment that belongs to the use of the store, such as of a key.
func (h *history) pause(of string) {
	n := h.nextUse(of)
	h.world.Pause(of+h.name, n)
	h.world.Note("%s%s %d", of, h.name, n)
}

// nextUse counts the uses of the store of a kind: the order of other uses changes nothing.
func (h *history) nextUse(of string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.world.Alive() == nil { // what follows the crash changes no other life
		h.uses[of]++
	}
	return h.uses[of]
}

// alive does something, if the machine is alive, and tells the result if it still is.
func alive(w *worldtest.World, do func() error) error {
	if err := w.Awake(); err != nil {
		return err
	}
	err := do()
	if dead := w.Awake(); dead != nil {
		return dead
	}
	return err
}

func (s store) Intent(ctx context.Context, q answers.Question, send answers.Send) (c answers.Call, err error) {
	err = s.change("intent", q, func() (err error) {
		c, err = s.Store.Intent(ctx, q, send)
		return err
	})
	return c, err
}

func (s store) Place(ctx context.Context, q answers.Question, a answers.Answer, placed func()) error {
	err := s.change("place", q, func() error { return s.Store.Place(ctx, q, a, placed) })
	if errors.Is(err, objects.ErrLockLost) && !errors.Is(err, objects.ErrUnavailable) && a.Outcome != answers.Refused {
		s.history.tooLate(s.history.service.records[q.Key].number)
	}
	return err
}

func (s store) Put(ctx context.Context, q answers.Question, a answers.Answer) error {
	return s.change("put", q, func() error { return s.Store.Put(ctx, q, a) })
}

func (s store) Fail(ctx context.Context, q answers.Question, f answers.Failure) error {
	err := s.change("fail", q, func() error { return s.Store.Fail(ctx, q, f) })
	if errors.Is(err, objects.ErrLockLost) {
		s.history.endsTooLate(s.history.service.records[q.Key].number)
	}
	return err
}

func (s store) Park(ctx context.Context, q answers.Question, p answers.Parking) error {
	return s.change("park", q, func() error { return s.Store.Park(ctx, q, p) })
}

func (s store) Keep(ctx context.Context, q answers.Question, body []byte) error {
	return s.change("keep", q, func() error { return s.Store.Keep(ctx, q, body) })
}

func (s store) Lookup(ctx context.Context, of answers.Scope, keys []string, f answers.Freshness, bodies bool, into []answers.Found) (found []answers.Found, err error) {
	s.history.pause("lookup " + keys[0])
	if h := s.history; h.plan.several && h.world.Below(8, "slow look"+h.name, keys[0], h.nextUse("look "+keys[0])) == 0 { // others buy meanwhile
		time.Sleep(time.Duration(h.world.Draw("looks"+h.name, keys[0]) % uint64(time.Minute)))
	}
	err = alive(s.history.world, func() (err error) {
		found, err = s.Store.Lookup(ctx, of, keys, f, bodies, into)
		return err
	})
	return found, err
}

func (s store) LookupHashes(ctx context.Context, hashes []answers.Hash, f answers.Freshness, into []answers.Found) (found []answers.Found, err error) {
	s.history.pause("lookup " + hashes[0].String())
	err = alive(s.history.world, func() (err error) {
		found, err = s.Store.LookupHashes(ctx, hashes, f, into)
		return err
	})
	return found, err
}

func (s store) SumSpent(ctx context.Context, run string) (paid answers.Spending, open []answers.OpenCall, err error) {
	s.history.pause("sum")
	err = alive(s.history.world, func() (err error) {
		paid, open, err = s.Store.SumSpent(ctx, run)
		return err
	})
	return paid, open, err
}

func (s store) SpentSince(ctx context.Context, day string) (spent []answers.DaySpending, err error) {
	s.history.pause("since")
	err = alive(s.history.world, func() (err error) {
		spent, err = s.Store.SpentSince(ctx, day)
		return err
	})
	return spent, err
}

func (s store) OpenAnywhere(ctx context.Context) iter.Seq2[answers.OpenCall, error] {
	s.history.pause("open")
	return s.Store.OpenAnywhere(ctx)
}

// Find is looked for by all calls of a task at one moment.
func (s store) Find(ctx context.Context, h answers.Hash) (c answers.OpenCall, err error) {
	s.history.pause("find " + h.String())
	err = alive(s.history.world, func() (err error) {
		c, err = s.Store.Find(ctx, h)
		return err
	})
	return c, err
}

func (s store) FindByResolution(ctx context.Context, service, id string) (c answers.OpenCall, err error) {
	err = alive(s.history.world, func() (err error) {
		c, err = s.Store.FindByResolution(ctx, service, id)
		return err
	})
	return c, err
}

var errQueueClosed = errors.New("the queue is closed")

// liveWithdrawing lets callers make changes in groups, some of whom give up before their turn. What
// they were told is what was made, once each.
func liveWithdrawing(w *worldtest.World, callers int) (wrong []string) {
	draw := func(most time.Duration, of ...any) time.Duration {
		return time.Duration(w.Draw(append(of, "withdrawn")...) % uint64(most))
	}
	var made []int
	groups := 0
	queue := groupcommit.NewQueue(4, w.Below(2, "patient") == 0, errQueueClosed, func(group []*groupcommit.Change[int]) {
		groups++
		time.Sleep(1 + draw(20*time.Millisecond, "begins", groups))
		results := make([]error, len(group))
		for i, c := range group {
			if results[i] = c.Take(); results[i] == nil {
				made = append(made, c.What)
			}
		}
		time.Sleep(1 + draw(20*time.Millisecond, "ends", groups))
		for i, c := range group {
			c.Settle(results[i])
		}
	})
	told := make([]error, callers)
	var calling sync.WaitGroup
	for i := range callers {
		calling.Go(func() {
			time.Sleep(1 + draw(100*time.Millisecond, "calls", i))
			ctx, stop := context.WithTimeout(context.Background(), 1+draw(60*time.Millisecond, "patience", i))
			defer stop()
			told[i] = queue.Do(ctx, i)
		})
	}
	calling.Wait()
	queue.Close()
	for i, err := range told {
		if is := slices.Contains(made, i); is != (err == nil) {
			wrong = append(wrong, fmt.Sprintf("change %d is made: %t, and its caller was told %v", i, is, err))
		}
	}
	if n := len(made); n != len(slices.Compact(slices.Sorted(slices.Values(made)))) {
		wrong = append(wrong, fmt.Sprintf("of %d changes some are made twice", n))
	}
	return wrong
}
