package answers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/leadetl/leadetl/internal/appendlog"
	"github.com/leadetl/leadetl/internal/groupcommit"
)

// sqliteTx is a transaction of the database.
type sqliteTx struct {
	*groupcommit.Tx
	lastSeq int64 // number of the last answer
	maxHeld int   // answers that wait for their statement

	replaced, answers, keys *groupcommit.Batch
	closed, calls           *groupcommit.Batch
}

func newSQLiteTx(t *groupcommit.Tx, maxHeld int) *sqliteTx {
	return &sqliteTx{
		Tx: t, maxHeld: maxHeld,
		replaced: groupcommit.NewBatch("DELETE FROM answers WHERE seq IN (SELECT seq FROM keys WHERE hash IN (", 1, "))"),
		answers: groupcommit.NewBatch("INSERT INTO answers(seq, scope, run, received, outcome, reason, status, credits, resolution, request, key, body) VALUES ",
			12, ""),
		keys:   groupcommit.NewBatch("INSERT INTO keys(hash, seq) VALUES ", 2, " ON CONFLICT(hash) DO UPDATE SET seq = excluded.seq"),
		closed: groupcommit.NewBatch("DELETE FROM calls WHERE hash IN (", 1, ")"),
		calls: groupcommit.NewBatch("INSERT OR REPLACE INTO calls(hash, scope, run, key, idempotency, attempts, sent, state, doubtful, reason, status, "+
			"resolution, request, deadline) VALUES ", 14, ""),
	}
}

// Reset starts a group. It does not reset lastSeq: the numbers of answers that
// were rolled back are not used again.
func (g *sqliteTx) Reset() {
	for _, b := range g.batches() {
		b.Reset()
	}
}

// Flush writes the rows that the group has buffered.
func (g *sqliteTx) Flush() error {
	for _, b := range g.batches() {
		if err := b.Flush(g.Tx); err != nil {
			return err
		}
	}
	return nil
}

// batches returns the batches in the order of writing. replaced comes first,
// because it reads the keys before they change.
func (g *sqliteTx) batches() [5]*groupcommit.Batch {
	return [...]*groupcommit.Batch{g.replaced, g.answers, g.keys, g.closed, g.calls}
}

// loadLastSeq reads the number of the last answer.
func (g *sqliteTx) loadLastSeq() error {
	_, err := g.Row("SELECT coalesce(max(seq), 0) FROM answers", nil, &g.lastSeq)
	return err
}

// markUnknown marks the calls that an earlier process had under way as unknown. All that its log had is
// in the database.
func (g *sqliteTx) markUnknown() error {
	return errors.Join(g.Exec("UPDATE calls SET state = 'unknown', doubtful = 1 WHERE state = 'under_way'"), g.Exec("UPDATE log SET open = 0"))
}

// checkNames compares the names that a log refers to with those of the database, which had them first.
func (g *sqliteTx) checkNames(from *generation) error {
	lacks := func(what string, id int64) error {
		return fmt.Errorf("stored answers: %w: %s lacks %s %d of %s: is %s-wal missing?", appendlog.ErrDamaged, databaseName, what, id, logName(from.number), databaseName)
	}
	for id, of := range from.scopes {
		var found Scope
		if _, err := g.Row("SELECT service, operation FROM scopes WHERE id = ?", []any{id}, &found.Service, &found.Operation); err != nil {
			return err
		} else if found != of {
			return lacks("scope", id)
		}
	}
	for id, r := range from.runs {
		var found string
		if _, err := g.Row("SELECT name FROM runs WHERE id = ?", []any{id}, &found); err != nil {
			return err
		} else if found != r.Name {
			return lacks("run", id)
		}
	}
	return nil
}

// apply writes a generation and, in the same transaction, records that its log
// file is no longer needed.
func (g *sqliteTx) apply(from *generation) error {
	if err := g.addAnswers(from); err != nil {
		return err
	}
	for _, h := range slices.SortedFunc(maps.Keys(from.calls), Hash.Compare) {
		c := from.calls[h]
		if c == nil {
			g.closed.Add(h[:])
			continue
		}
		var deadline any
		if !c.open.Deadline.IsZero() {
			deadline = toMillis(c.open.Deadline)
		}
		g.calls.Add(h[:], c.scope, c.run, c.open.Asked(), c.open.IdempotencyKey, c.open.Attempts, toMillis(c.open.Sent), string(c.open.State), c.open.MaybeBilled, c.open.Reason, c.open.Status,
			c.open.Resolution, c.open.Request, deadline)
	}
	for h, body := range from.bodies {
		statement, args := "INSERT OR REPLACE INTO bodies(hash, body) VALUES (?, ?)", []any{h[:], []byte(body)}
		if body == nil {
			statement, args = "DELETE FROM bodies WHERE hash = ?", args[:1]
		}
		if err := g.Exec(statement, args...); err != nil {
			return err
		}
	}
	for id, r := range from.runs {
		err := g.Exec("UPDATE runs SET intents = ?, answers = ?, unpriced = ?, credits = ? WHERE id = ?", r.Intents, r.Answers, r.Unpriced, r.Credits, id)
		if err != nil {
			return err
		}
	}
	for of, s := range from.days {
		err := g.Exec(`INSERT INTO days(day, scope, answers, unpriced, credits) VALUES (?, ?, ?, ?, ?) ON CONFLICT(day, scope) DO UPDATE
			SET answers = answers + excluded.answers, unpriced = unpriced + excluded.unpriced, credits = credits + excluded.credits`,
			of.day, of.scope, s.Answers, s.Unpriced, s.Credits)
		if err != nil {
			return err
		}
	}
	return g.Exec("UPDATE log SET number = ?, before = ?", from.end.Number, from.end.Before)
}

// addAnswers writes the answers in order of arrival, which is roughly the order
// of the list, and their keys in key order. So each page is written once.
func (g *sqliteTx) addAnswers(from *generation) error {
	sorted := from.sortedAnswers()
	for _, a := range sorted {
		key := a.hash.key()
		g.replaced.Add(key[:])
	}
	if err := g.replaced.Flush(g.Tx); err != nil { // while the keys are unchanged
		return err
	}
	seqs := make(map[*answered]int64, len(from.latest))
	for i, a := range from.answers {
		if from.latest[a.hash.key()] != a {
			continue // a later answer replaces it
		}
		g.lastSeq++
		seqs[a] = g.lastSeq
		var credits any
		if a.answer.Credits != nil {
			credits = *a.answer.Credits
		}
		g.answers.Add(g.lastSeq, a.scope, a.run, toMillis(a.answer.Received), string(a.answer.Outcome), a.answer.Reason, a.answer.Status, credits, a.answer.Resolution, a.answer.Request, a.key, bodyValue(a.answer.Body))
		if i%g.maxHeld == g.maxHeld-1 {
			if err := g.answers.Flush(g.Tx); err != nil {
				return err
			}
		}
	}
	for _, a := range sorted {
		key := a.hash.key()
		g.keys.Add(key[:], seqs[a])
	}
	return nil
}

// maxHeldAnswers bounds the answers that wait in memory for their statement.
// Each takes some hundred bytes and a copy of the body.
const maxHeldAnswers = 256

// scopeID returns the id of a scope. It adds a missing one.
func (g *sqliteTx) scopeID(of Scope) (int64, error) {
	// The column settings is reserved: it is empty in every row.
	return g.rowID("SELECT id FROM scopes WHERE service = ? AND operation = ? AND settings = ''",
		"INSERT INTO scopes(service, operation, settings) VALUES (?, ?, '')", of.Service, string(of.Operation))
}

// rowID returns the id of a row. It adds a missing one.
func (g *sqliteTx) rowID(find, insert string, args ...any) (id int64, err error) {
	found, err := g.Row(find, args, &id)
	if err == nil && !found {
		id, err = g.Insert(insert, args...)
	}
	return id, err
}

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
