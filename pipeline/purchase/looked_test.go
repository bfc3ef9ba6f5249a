package purchase

import (
	"testing"

	"github.com/leadetl/leadetl/resolution"
)

// TestLookAtACallInFlight: a look at a question whose call is at work says that it needs a call, and
// not that its call is unknown. Who asks then gets the answer to that call.
func TestLookAtACallInFlight(t *testing.T) {
	_, store := laterOf(t)
	begun, answer := make(chan struct{}), make(chan struct{})
	b := buyerFrom(t, resolution.NetworkToPhone, store, judging{says: func(string) resolution.Result {
		close(begun) // a second call would panic
		<-answer
		return hit()
	}}, nil)
	const key = "network.example/in/a"
	first := make(chan Result)
	go func() {
		a, err := ask(t, b, key)
		if err != nil {
			t.Error(err)
		}
		first <- a
	}()
	<-begun
	look := func() (l Looked) {
		if err := b.Look([]string{key}, func(_ int, looked []Looked, _ *resolution.Answers, _ func()) { l = looked[0] }); err != nil {
			t.Error(err)
		}
		return l
	}
	if l := look(); l.Settled() || l.Decision != Ask {
		t.Errorf("while the call is at work: %+v", l)
	}
	second := make(chan Result)
	go func() {
		a, err := ask(t, b, key)
		if err != nil {
			t.Error(err)
		}
		second <- a
	}()
	close(answer)
	if a, other := <-first, <-second; a.Outcome != other.Outcome || !a.Found.Matched() || !other.Found.Matched() {
		t.Errorf("%+v and %+v", a, other)
	}
	before := b.counters.Snapshot()
	if l := look(); l.Decision != UseStored {
		t.Errorf("after it: %+v", l)
	} else {
		b.Use("", l)
	}
	after := b.counters.Snapshot()
	if asked, closed, stored := after.Asked-before.Asked, after.Closed-before.Closed, after.Stored-before.Stored; asked != 1 || closed != 1 || stored != 1 {
		t.Errorf("a stored answer counts as %d asked, %d closed and %d stored", asked, closed, stored)
	}
}

// TestMemoryIsUsedAgain: the memory of stored answers that were handed over begins empty again.
func TestMemoryIsUsedAgain(t *testing.T) {
	_, store := laterOf(t)
	b := buyerFrom(t, resolution.NetworkToPhone, store, judging{}, nil)
	used := resolution.NewAnswers()
	used.AddMiss("")
	b.memory.Put(used) // the pool may drop it
	if again := b.memory.get(); again.Len() != 0 {
		t.Errorf("%d answers are in it", again.Len())
	}
}
