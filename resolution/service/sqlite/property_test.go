package sqlite

import (
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/service/state"
)

// act is one thing a goroutine of the property test does. Credits that a
// reservation has not are refused, which is fine too.
type act struct {
	kind    state.Kind
	credits int64
	direct  bool // a capture of available credits
}

func drawActs(t *rapid.T, i int) []act {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) act {
		a := act{
			kind:    rapid.SampledFrom([]state.Kind{state.Grant, state.Adjust, state.Reserve, state.Capture, state.Capture, state.Release}).Draw(t, "kind"),
			credits: rapid.Int64Range(1, 20).Draw(t, "credits"),
			direct:  rapid.Bool().Draw(t, "direct"),
		}
		if a.kind == state.Adjust {
			a.credits = -a.credits
		}
		return a
	}), 1, 15).Draw(t, fmt.Sprint("goroutine ", i))
}

// At any interleaving of everything that moves credits, in any grouping: the
// ledger's promise holds at every look, no key passes its limit, and in the end what is available is
// what the successful calls leave.
func TestLedgerProperty(t *testing.T) {
	s := serve(t, t.TempDir())
	var round atomic.Int64
	rapid.Check(t, func(r *rapid.T) {
		given := rapid.Int64Range(0, 50).Draw(r, "given")
		scripts := make([][]act, rapid.IntRange(1, 8).Draw(r, "goroutines"))
		for i := range scripts {
			scripts[i] = drawActs(r, i)
		}
		org := organization(t, s, fmt.Sprint("organization ", round.Add(1)), given)
		key := limitedKey(t, s, org, rapid.Int64Range(1, 40).Draw(r, "limit"))
		var available, reserved atomic.Int64
		available.Store(given)
		var all sync.WaitGroup
		for _, script := range scripts {
			all.Go(func() {
				of := uuid.Must(uuid.NewV7())
				for _, a := range script {
					err := do(t, s, org, key, of, a)
					if err == nil {
						add, set := entry{kind: a.kind, credits: a.credits, reserved: !a.direct}.changes()
						available.Add(add)
						reserved.Add(set)
					} else if !errors.As(err, new(*state.InsufficientError)) && !errors.Is(err, resolution.ErrInvalid) {
						t.Errorf("%+v: %v", a, err)
					}
				}
			})
		}
		for range 5 { // while they are at it
			audit(t, s)
		}
		all.Wait()
		audit(t, s)
		if b, err := s.Balance(t.Context(), org); err != nil || b.Available != available.Load() || b.Reserved != reserved.Load() {
			r.Errorf("balance %+v (%v), the calls leave %d and %d reserved", b, err, available.Load(), reserved.Load())
		}
		if t.Failed() {
			r.FailNow()
		}
	})
}

func limitedKey(t testing.TB, s *Store, org, limit int64) int64 {
	t.Helper()
	k := state.Key{Organization: org, Created: noon, Limit: limit}
	rand.Read(k.Hash[:])
	k, err := s.AddKey(t.Context(), k)
	if err != nil {
		t.Fatal(err)
	}
	return k.ID
}

func do(t *testing.T, s *Store, org, key int64, of uuid.UUID, a act) error {
	const op = resolution.KeywordToLead
	var err error
	var b state.Balance
	switch {
	case a.kind == state.Grant || a.kind == state.Adjust:
		b, err = s.ChangeCredits(t.Context(), state.CreditChange{Organization: org, Credits: a.credits, At: noon})
	case a.kind == state.Capture && a.direct:
		b.Available, err = s.Settle(t.Context(), state.Charge{Organization: org, Key: key, Resolution: uuid.Must(uuid.NewV7()), Operation: op, Credits: a.credits, At: noon})
	default:
		err = s.db.writer.Write(t.Context(), func(tx *tx) error {
			return tx.enter(entry{organization: org, key: key, kind: a.kind, credits: a.credits, reserved: true, resolution: of, operation: op, at: noon})
		})
	}
	if b.Available < 0 {
		t.Errorf("%+v left %d", a, b.Available)
	}
	return err
}
