package inorder

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []int
		q := New(func(i int) { got = append(got, i) })
		for i := range 100 {
			q.Do(func() int {
				time.Sleep(time.Duration(i%3) * time.Second) // those that come later finish earlier
				return i
			})
		}
		q.Wait()
		if len(got) != 100 || !slices.IsSorted(got) {
			t.Error(got)
		}
	})
}

func TestPanicIsRepeated(t *testing.T) {
	taken := 0
	q := New(func(int) { taken++ })
	q.Do(func() int { return 1 })
	q.Do(func() int { panic("work") })
	defer func() {
		if p := recover(); p == nil || taken != 1 {
			t.Error(p, taken)
		}
	}()
	q.Wait()
}
