package purchase

import (
	"context"
	"sync"

	"github.com/leadetl/leadetl/resolution"
)

// inFlight makes sure that a question is asked by one caller at a time. A
// caller enters a question before it looks for a stored answer, and removes it
// after the answer is stored. The next caller then finds that answer.
type inFlight struct {
	mu      sync.Mutex
	entries map[string]*entry
}

// entry is a question in flight. Its duplicates wait for done.
type entry struct {
	key    string
	sent   string        // resolution.Call.Address
	shared bool          // it has duplicates; final when it is done
	again  bool          // the run has asked it before: it is counted already
	done   chan struct{} // closed when answer and err are set
	answer Result
	err    error
}

// join enters the keys that are not in flight. all[i] is the entry of asked[i],
// and added are the new entries: the caller has to remove them.
func (f *inFlight) join(asked []string) (all, added []*entry) {
	all = make([]*entry, len(asked))
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.entries == nil {
		f.entries = map[string]*entry{}
	}
	for i, text := range asked {
		key, address := resolution.CutAddress(text)
		if all[i] = f.entries[key]; all[i] == nil {
			all[i] = &entry{key: key, sent: address, done: make(chan struct{})}
			f.entries[key] = all[i]
			added = append(added, all[i])
		} else {
			all[i].shared = true
		}
	}
	return all, added
}

// of returns those of some keys that are in flight.
func (f *inFlight) of(some []string) map[string]bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.entries) == 0 {
		return nil
	}
	found := map[string]bool{}
	for _, key := range some {
		if f.entries[key] != nil {
			found[key] = true
		}
	}
	return found
}

// remove removes an entry and tells its duplicates the answer.
func (f *inFlight) remove(e *entry, a Result, err error) {
	e.answer, e.err = a, err
	f.mu.Lock()
	delete(f.entries, e.key)
	f.mu.Unlock()
	close(e.done)
}

// wait waits for the answer.
func (e *entry) wait(ctx context.Context) (Result, error) {
	select {
	case <-e.done: // also if ctx has ended: select would choose by chance
		return e.answer, e.err
	default:
	}
	select {
	case <-e.done:
		return e.answer, e.err
	case <-ctx.Done():
		return Result{}, context.Cause(ctx)
	}
}
