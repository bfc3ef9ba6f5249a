package answers

import (
	"context"
	"maps"
	"sync"
)

// rowNames are the scopes and runs that changes were made for, by the ids of their rows. It is safe for
// concurrent use.
type rowNames struct {
	mu     sync.Mutex
	ids    map[scopeAndRun]rowIDs
	scopes map[int64]Scope
	runs   map[int64]runTotal // with what is in the log
}

type scopeAndRun struct {
	scope Scope
	run   string
}

type rowIDs struct{ scope, run int64 }

func newRowNames() *rowNames {
	return &rowNames{ids: map[scopeAndRun]rowIDs{}, scopes: map[int64]Scope{}, runs: map[int64]runTotal{}}
}

func (n *rowNames) find(of Scope, run string) (rowIDs, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	ids, known := n.ids[scopeAndRun{of, run}]
	return ids, known
}

// add adds rows of the database. What is known of the run already is newer.
func (n *rowNames) add(ids rowIDs, of Scope, total runTotal) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ids[scopeAndRun{of, total.Name}], n.scopes[ids.scope] = ids, of
	if _, known := n.runs[ids.run]; !known {
		n.runs[ids.run] = total
	}
}

func (n *rowNames) scope(id int64) Scope {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.scopes[id]
}

func (n *rowNames) run(id int64) runTotal {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.runs[id]
}

// setRuns replaces totals by those after a change.
func (n *rowNames) setRuns(totals map[int64]runTotal) {
	n.mu.Lock()
	defer n.mu.Unlock()
	maps.Copy(n.runs, totals)
}

// reload reads the totals of runs again, which have changed in the database.
func (n *rowNames) reload(g *sqliteTx) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	for id, total := range n.runs {
		if err := g.readTotal(id, &total); err != nil {
			return err
		}
		n.runs[id] = total
	}
	return nil
}

// readTotal reads the total of a run.
func (g *sqliteTx) readTotal(id int64, into *runTotal) error {
	_, err := g.Row("SELECT intents, answers, unpriced, credits FROM runs WHERE id = ?", []any{id}, &into.Intents, &into.Answers, &into.Unpriced, &into.Credits)
	return err
}

// scopeAndRun returns the row ids of a scope and a run. It adds missing rows,
// and returns after they are on disk.
func (s *Store) scopeAndRun(ctx context.Context, of Scope, name string) (scope, run int64, err error) {
	ids, known := s.names.find(of, name)
	if known {
		return ids.scope, ids.run, nil
	}
	total := runTotal{Name: name}
	err = s.writer.Write(ctx, func(g *sqliteTx) (err error) {
		if ids.scope, err = g.scopeID(of); err == nil {
			ids.run, err = g.rowID("SELECT id FROM runs WHERE name = ?", "INSERT INTO runs(name) VALUES (?)", name)
		}
		if err == nil {
			err = g.readTotal(ids.run, &total)
		}
		return err
	})
	if err == nil {
		s.names.add(ids, of, total)
	}
	return ids.scope, ids.run, err
}
