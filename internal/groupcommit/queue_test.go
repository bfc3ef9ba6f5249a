package groupcommit

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// A queue that lingers makes groups of what comes in the time, ends them at once
// when it is told to hurry or a group is full, and loses no change at its end.
func TestLinger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sizes []int
		q := NewQueue(8, false, errGone, func(group []*Change[int]) {
			sizes = append(sizes, len(group))
			for _, c := range group {
				c.Settle(c.Take())
			}
		})
		var began time.Time
		hurry := false
		q.Linger(func() time.Duration {
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
			if !slices.Equal(sizes, want) {
				t.Errorf("%s: groups of %v, want %v", what, sizes, want)
			}
			sizes = nil
		}
		began = time.Now().Add(-time.Second)
		change()
		expect("after a lull", 1)
		began = time.Now()
		for range 5 {
			change()
			time.Sleep(10 * time.Millisecond)
		}
		expect("in the time")
		time.Sleep(51 * time.Millisecond)
		synctest.Wait()
		expect("at its end", 5)
		began = time.Now()
		for range 8 {
			change()
		}
		expect("a full group", 8)
		change()
		hurry = true
		change()
		expect("in a hurry", 2)
		hurry = false
		began = time.Now()
		change()
		change()
		q.Close()
		expect("at the end of the queue", 2)
	})
}
