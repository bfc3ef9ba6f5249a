package purchase

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leadetl/leadetl/pipeline/outcome"
	"github.com/leadetl/leadetl/resolution"
)

// Whoever waits longest is next, one who gives up leaves nothing behind, and
// there is a place more for each page that was made.
func TestPlacesInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlaces(100)
		var mu sync.Mutex
		var order []int
		gaveUp, giveUp := context.WithCancelCause(t.Context())
		impatient := errors.New("impatient")
		var waiting sync.WaitGroup
		for i := range 12 {
			ctx := t.Context()
			if i == 6 || i == 7 {
				ctx = gaveUp
			}
			waiting.Go(func() {
				if err := p.take(ctx); err != nil {
					if !errors.Is(err, impatient) {
						t.Error(err)
					}
					return
				}
				mu.Lock()
				defer mu.Unlock()
				order = append(order, i)
			})
			synctest.Wait()
		}
		if !slices.Equal(order, []int{0, 1, 2, 3}) {
			t.Fatalf("%v have a place", order)
		}
		giveUp(impatient)
		synctest.Wait()
		p.free(false) // one place for another
		synctest.Wait()
		p.free(true) // and two
		synctest.Wait()
		slices.Sort(order) // two came at a time
		p.refuse()         // the four that are left are all there will be
		synctest.Wait()
		if !slices.Equal(order, []int{0, 1, 2, 3, 4, 5, 8}) {
			t.Errorf("%v had a place", order)
		}
		if p.limit != 4 || p.taken != 4 {
			t.Errorf("%d of %d places are taken", p.taken, p.limit)
		}
		for range 3 {
			p.free(true)
			synctest.Wait()
		}
		if !slices.Equal(order, []int{0, 1, 2, 3, 4, 5, 8, 9, 10, 11}) || p.limit != 4 || p.taken != 4 {
			t.Errorf("%v had a place, %d of %d are taken", order, p.taken, p.limit)
		}
		waiting.Wait()
	})
}

// However takers come, give up and leave, there are never more than the
// service has said it makes, and none is lost.
func TestPlacesAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const service = 7
		p := newPlaces(1000)
		active, most, refusals := 0, 0, 0
		var mu sync.Mutex
		var takers sync.WaitGroup
		for i := range 400 {
			takers.Go(func() {
				random := rand.New(rand.NewPCG(1, uint64(i)))
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+random.IntN(4000))*time.Millisecond)
				defer cancel()
				for p.take(ctx) == nil {
					mu.Lock()
					refused := active == service
					if refused {
						refusals++
					} else {
						active++
						most = max(most, active)
					}
					mu.Unlock()
					if refused {
						p.refuse()
						continue
					}
					time.Sleep(time.Duration(random.IntN(100)) * time.Millisecond)
					mu.Lock()
					active--
					mu.Unlock()
					p.free(true)
					return
				}
			})
		}
		takers.Wait()
		if most != service || refusals > 2 || p.taken != 0 || len(p.waiting) != 0 {
			t.Errorf("%d at a time, %d refusals; %d places are taken and %d wait in the end", most, refusals, p.taken, len(p.waiting))
		}
	})
}

// TestMostPlaces: a run takes no more of a service's places than it needs.
func TestMostPlaces(t *testing.T) {
	for concurrency, want := range map[int]int{1: 1, 16: 16, 64: 16} {
		_, store := laterOf(t)
		b := buyerFrom(t, resolution.KeywordToLead, store, nil, func(r *Remote) { r.Concurrency = concurrency })
		if b.places.ceiling != want {
			t.Errorf("%d places of %d calls, want %d", b.places.ceiling, concurrency, want)
		}
	}
}

// TestNoPlace: a page is refused for others that the service makes if these are too many, or if their
// credits are reserved.
func TestNoPlace(t *testing.T) {
	for _, f := range []struct {
		err    error
		others bool
		want   bool
	}{
		{&resolution.CallError{Class: resolution.Limited, Code: tooManyActive}, false, true},
		{&resolution.CallError{Class: resolution.Limited}, true, false},
		{&resolution.CallError{Class: resolution.NoCredits}, true, true},
		{&resolution.CallError{Class: resolution.NoCredits}, false, false},
		{&resolution.CallError{Class: resolution.Unavailable}, true, false},
		{errors.New("odd"), true, false}, {nil, true, false},
	} {
		if got := noPlace(f.err, f.others) != nil; got != f.want {
			t.Errorf("%v, with others %t: %t", f.err, f.others, got)
		}
	}
}

// TestPlacedCallGoesOn: a call that has a place, and failed, is sent again although all slots have calls that wait
// for its place.
func TestPlacedCallGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, _ := openIn(t)
		requests := 0
		b := buyerFrom(t, resolution.KeywordToLead, store, answering(func(string) (int, string, error) {
			if requests++; requests == 1 {
				return 0, "", &resolution.CallError{Class: resolution.Unavailable, Status: 503, Sent: true, Unbilled: true}
			}
			return 200, `{"resolution":{"id":"res_1","status":"completed"},"lead":{"leads":[{"full_name":"A"}]}}`, nil
		}), nil)
		var asking sync.WaitGroup
		ctx, stop := context.WithTimeout(t.Context(), time.Hour)
		defer stop()
		for i := range 3 {
			asking.Go(func() {
				page := aPage
				page.Keywords = []string{fmt.Sprint("crm", i)}
				if p, err := b.Page(ctx, page); err != nil || p.Answer.Outcome != outcome.Matched {
					t.Errorf("page %d is %s, %v", i, p.Answer.Outcome, err)
				}
			})
		}
		asking.Wait()
	})
}
