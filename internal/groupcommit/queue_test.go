package groupcommit

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A queue that lingers makes groups of what comes in the time, ends them at once
// when it is told to hurry or a group is full, and loses no change at its end.
func TestLinger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex // of the variables below, which the queue's goroutine uses too
		var sizes []int
		var began time.Time
		hurry := false
		q := NewQueue(8, false, errGone, func(group []*Change[int]) {
			mu.Lock()
			sizes = append(sizes, len(group))
			mu.Unlock()
			for _, c := range group {
				c.Settle(c.Take())
			}
		})
		q.DelayWrites(func() time.Duration {
			mu.Lock()
			defer mu.Unlock()
			if hurry {
				return 0
			}
			return 100*time.Millisecond - time.Since(began)
		})
		change := func() {
			go func() {
				if err := q.Do(t.Context(), 1); err != nil {
					t.Error(err)
				}
			}()
			synctest.Wait()
		}
		expect := func(what string, want ...int) {
			t.Helper()
			mu.Lock()
			defer mu.Unlock()
			if !slices.Equal(sizes, want) {
				t.Errorf("%s: groups of %v, want %v", what, sizes, want)
			}
			sizes = nil
		}
		set := func(last time.Time, inAHurry bool) {
			mu.Lock()
			defer mu.Unlock()
			began, hurry = last, inAHurry
		}
		set(time.Now().Add(-time.Second), false)
		change()
		expect("after a lull", 1)
		set(time.Now(), false)
		for range 5 {
			change()
			time.Sleep(10 * time.Millisecond)
		}
		expect("in the time")
		time.Sleep(51 * time.Millisecond)
		synctest.Wait()
		expect("at its end", 5)
		set(time.Now(), false)
		for range 8 {
			change()
		}
		expect("a full group", 8)
		change()
		set(time.Now(), true)
		change()
		expect("in a hurry", 2)
		set(time.Now(), false)
		change()
		change()
		q.Close()
		expect("at the end of the queue", 2)
	})
}
