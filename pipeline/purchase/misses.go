package purchase

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/leadetl/leadetl/pipeline/answers"
	"github.com/leadetl/leadetl/pipeline/outcome"
)

// firstMisses is the usual Remote.FirstMisses: how many keys without a match, and with none before, say that the address may be
// wrong: a gateway calls everything not found.
const firstMisses = 1000

// misses has the keys without a match, until there is one. It is safe from many goroutines.
type misses struct {
	first int         // how many say so
	over  atomic.Bool // a match is there, or all was told
	mu    sync.Mutex
	keys  map[answers.Hash]bool
}

// note notes what became of a question, and reports whether the first keys are all misses.
func (m *misses) note(q answers.Question, a Result) (all bool) {
	if m.over.Load() {
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case a.Outcome == outcome.Matched:
		m.over.Store(true)
		m.keys = nil
	case a.Outcome == outcome.NoMatch:
		if m.keys == nil {
			m.keys = map[answers.Hash]bool{}
		}
		m.keys[q.Hash()] = true
	}
	return len(m.keys) >= m.first
}

// take returns the number of keys if they are all misses, once.
func (m *misses) take() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := len(m.keys)
	m.over.Store(true)
	m.keys = nil
	return n
}

// note notes the answer to a question of the run. If the first keys are all misses it warns, or
// stops the run.
func (b *Buyer) note(key string, a Result) {
	if b.remote.Offline || b.codec.operation.IsKeyword() || !b.misses.note(answers.Question{Scope: b.scope, Key: key}, a) {
		return
	}
	if err := b.allMissed(); err != nil {
		_ = b.stopFor(err)
	}
}

// allMissed warns of a service all of whose answers are misses, and that has no stored match. The
// error is that of a user who wants the run to stop then.
func (b *Buyer) allMissed() error {
	n := b.misses.take()
	if n < 2 {
		return nil
	}
	_, matched, err := b.remote.Answers.Knows(context.WithoutCancel(b.ctx), b.scope)
	if err != nil || matched {
		return err
	}
	why := &missedError{cmp.Or(b.remote.Address, b.remote.Name), n}
	if b.remote.Plain404 == Plain404Stop {
		return why
	}
	b.log.Warn(why.Error(), "keys", n)
	return nil
}

// missedError is ErrRefused of a service that does not know any key.
type missedError struct {
	address string
	keys    int
}

func (e *missedError) Error() string {
	return fmt.Sprintf("%s has no match for any of the first %d keys, and none is stored; check the address", e.address, e.keys)
}

func (e *missedError) Unwrap() error { return ErrRefused }
