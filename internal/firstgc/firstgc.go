// Package firstgc defers the first garbage collection until the heap has some 50 MB. The variables of the packages of
// a large program are nearly 20 MB of it, all of it in use, which Go collects four times; a run of few rows takes
// little more, and ends without a collection.
//
// debug.SetGCPercent could say so, but runtime/debug is initialized after most packages, as those are in the order
// of their paths where they can be. So this package imports little: its variables are set before those of others.
package firstgc

import (
	"runtime"
	"sync"
)

// reserve is live for the collection that its allocation begins, of a heap with nothing else in it. Go then waits until
// as much was allocated again. The system provides no memory for it.
var reserve = make([]byte, Reserve)

// Reserve is how much is allocated before the first collection where the heap may grow by 100%.
const Reserve = 64 << 20

var first = newCollection()

// collection says what to do once garbage was collected.
type collection struct {
	mu   sync.Mutex
	done bool
	then []func()
}

func newCollection() *collection {
	c := &collection{}
	runtime.AddCleanup(new([64]byte), (*collection).end, c)
	return c
}

func (c *collection) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.done = true
	for _, f := range c.then {
		f()
	}
	c.then = nil
}

// Done reports whether garbage was collected.
func Done() bool {
	first.mu.Lock()
	defer first.mu.Unlock()
	return first.done
}

// Then calls f after the first collection, or now if that was before. More than one are called in their order.
func Then(f func()) {
	first.mu.Lock()
	defer first.mu.Unlock()
	runtime.KeepAlive(reserve)
	reserve = nil
	if first.done {
		f()
	} else {
		first.then = append(first.then, f)
	}
}
