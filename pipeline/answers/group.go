package answers

import (
	"bytes"
	"maps"
	"slices"

	"github.com/leadetl/leadetl/internal/groupcommit"
)

// group is a transaction of the database.
type group struct {
	*groupcommit.Tx
	last int64 // number of an answer

	replaced, answers, keys *groupcommit.Batch
	closed, calls           *groupcommit.Batch
}

func newGroup(t *groupcommit.Tx) *group {
	return &group{
		Tx:       t,
		replaced: groupcommit.NewBatch("DELETE FROM answers WHERE seq IN (SELECT seq FROM keys WHERE hash IN (", 1, "))"),
		answers: groupcommit.NewBatch("INSERT INTO answers(seq, scope, run, received, outcome, reason, status, credits, resolution, request, key, body) VALUES ",
			12, ""),
		keys:   groupcommit.NewBatch("INSERT INTO keys(hash, seq) VALUES ", 2, " ON CONFLICT(hash) DO UPDATE SET seq = excluded.seq"),
		closed: groupcommit.NewBatch("DELETE FROM calls WHERE hash IN (", 1, ")"),
		calls: groupcommit.NewBatch("INSERT OR REPLACE INTO calls(hash, scope, run, key, idempotency, attempts, sent, state, doubtful, reason, status, "+
			"resolution, request, deadline) VALUES ", 14, ""),
	}
}

// count finds the number of the last answer.
func (g *group) count() error {
	_, err := g.Row("SELECT coalesce(max(seq), 0) FROM answers", nil, &g.last)
	return err
}

// disown makes unknown what an earlier process had under way.
func (g *group) disown() error {
	return g.Exec("UPDATE calls SET state = 'unknown', doubtful = 1 WHERE state = 'under_way'")
}

// Reset starts a group. Numbers of answers that were undone are not given
// again.
func (g *group) Reset() {
	for _, b := range g.batches() {
		b.Reset()
	}
}

// batches are in the order in which they are written: what an answer replaces
// is found by the keys as they were.
func (g *group) batches() [5]*groupcommit.Batch {
	return [...]*groupcommit.Batch{g.replaced, g.answers, g.keys, g.closed, g.calls}
}

// Flush writes what the group held back.
func (g *group) Flush() error {
	for _, b := range g.batches() {
		if err := b.Flush(g.Tx); err != nil {
			return err
		}
	}
	return nil
}

// takeIn writes a generation. That it is in the database, and that its file
// has nothing new, is one transaction.
func (g *group) takeIn(from *generation) error {
	if err := g.addAnswers(from); err != nil {
		return err
	}
	for _, h := range slices.SortedFunc(maps.Keys(from.calls), func(a, b Hash) int { return bytes.Compare(a[:], b[:]) }) {
		c := from.calls[h]
		if c == nil {
			g.closed.Add(h[:])
			continue
		}
		var deadline any
		if !c.Deadline.IsZero() {
			deadline = millis(c.Deadline)
		}
		g.calls.Add(h[:], c.scope, c.run, c.Key, c.IdempotencyKey, c.Attempts, millis(c.Sent), string(c.State), c.doubtful, c.Reason, c.Status,
			c.Resolution, c.Request, deadline)
	}
	for run, s := range from.spending {
		err := g.Exec("UPDATE runs SET answers = answers + ?, unpriced = unpriced + ?, credits = credits + ? WHERE id = ?", s.answers, s.unpriced, s.credits, run)
		if err != nil {
			return err
		}
	}
	return g.Exec("UPDATE log SET applied = ?", from.number)
}

// addAnswers writes the answers in the order in which they came, which is
// about that of the list, and their keys in their own: pages are written to
// once.
func (g *group) addAnswers(from *generation) error {
	sorted := from.sorted()
	for _, a := range sorted {
		key := a.hash.key()
		g.replaced.Add(key[:])
	}
	if err := g.replaced.Flush(g.Tx); err != nil { // found by the keys as they were
		return err
	}
	numbers := make(map[*answered]int64, len(from.latest))
	for i, a := range from.answers {
		if from.latest[a.hash.key()] != a {
			continue // another came after it
		}
		g.last++
		numbers[a] = g.last
		var credits any
		if a.Credits != nil {
			credits = *a.Credits
		}
		g.answers.Add(g.last, a.scope, a.run, millis(a.Received), string(a.Outcome), a.Reason, a.Status, credits, a.Resolution, a.Request, a.key, stored(a.Body))
		if i%heldBack == heldBack-1 {
			if err := g.answers.Flush(g.Tx); err != nil {
				return err
			}
		}
	}
	for _, a := range sorted {
		key := a.hash.key()
		g.keys.Add(key[:], numbers[a])
	}
	return nil
}

// heldBack bounds the answers whose values are held for statements, at some
// hundred bytes each and their bodies once more.
const heldBack = 256
