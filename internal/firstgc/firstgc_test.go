package firstgc

import (
	"runtime"
	"slices"
	"testing"
	"time"
)

// TestThen: what is asked for before the first collection is done after it, in order, and later at once.
func TestThen(t *testing.T) {
	defer func(before *collection) { first = before }(first)
	var done []int
	did := make(chan []int, 3)
	for i := range 3 {
		if i == 0 {
			first = newCollection()
		}
		Then(func() {
			done = append(done, i)
			did <- slices.Clone(done)
		})
	}
	if len(did) > 0 {
		t.Errorf("%d were done before a collection", len(did))
	}
	for n := range 3 {
		runtime.GC()
		select {
		case got := <-did:
			if want := []int{0, 1, 2}[:n+1]; !slices.Equal(got, want) {
				t.Errorf("%v were done, want %v", got, want)
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("after a collection, %d of 3 were done", n)
		}
	}
	now := false
	if Then(func() { now = true }); !now {
		t.Error("after the first collection, it is not done at once")
	}
}
