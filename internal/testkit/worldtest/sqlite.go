package worldtest

import (
	"strings"
	"sync"

	"modernc.org/sqlite"
)

// guarded are the worlds by the folder of their databases.
var guarded struct {
	mu     sync.Mutex
	worlds map[string]*World
}

var hookOnce sync.Once

// GuardSQLite makes each COMMIT of a database below a folder a step of the world, until free
// is called. A commit that fails, or comes after the crash, is rolled back. During a crash the
// transaction is either there or not. failing is the probability that a commit fails.
//
// The databases themselves are real: nothing changes them after the crash, so what is in them
// then is what survives.
func (w *World) GuardSQLite(dir string, failing float64) (free func()) {
	hookOnce.Do(func() { sqlite.RegisterConnectionHook(guard) })
	guarded.mu.Lock()
	defer guarded.mu.Unlock()
	if guarded.worlds == nil {
		guarded.worlds = map[string]*World{}
	}
	guarded.worlds[dir] = w
	w.failing = failing
	return func() {
		guarded.mu.Lock()
		defer guarded.mu.Unlock()
		delete(guarded.worlds, dir)
	}
}

// guard is called for each connection that the driver opens.
func guard(c sqlite.ExecQuerierContext, uri string) error {
	guarded.mu.Lock()
	defer guarded.mu.Unlock()
	for dir, w := range guarded.worlds {
		if hooks, can := c.(sqlite.HookRegisterer); can && strings.Contains(uri, dir+"/") {
			hooks.RegisterCommitHook(w.commit)
		}
	}
	return nil
}

// commit says whether a transaction is committed: 0, or else it is rolled back. It runs in
// SQLite, which holds locks that only this connection waits for.
func (w *World) commit() int32 {
	w.mu.Lock()
	w.commits++
	life, nth := w.life, w.commits
	w.mu.Unlock()
	w.Pause("commit", life, nth)
	at, ours, err := w.step("commit")
	switch {
	case ours && w.Draw("commit", w.life)%2 == 0:
		return 0
	case err != nil:
		return 1
	case w.Chance(w.failing, "commit fails", w.life, at):
		_ = w.fault("commit", nil)
		return 1
	}
	return 0
}
