package answers

import "github.com/leadetl/leadetl/internal/groupcommit"

// group is the transaction of one group. Intents and answers are held back and
// written together when it ends. A question has one of them held back at most:
// whoever looks at a question calls turn first.
type group struct {
	*groupcommit.Tx
	held     map[Hash]bool
	spending map[int64]*spending // by run
	last     int64               // number of an answer

	replaced, answers, keys *groupcommit.Batch
	answered, intents       *groupcommit.Batch
}

// spending is what a group adds to a run.
type spending struct{ answers, unpriced, credits int64 }

func newGroup(t *groupcommit.Tx) *group {
	return &group{
		Tx:       t,
		held:     map[Hash]bool{},
		spending: map[int64]*spending{},
		replaced: groupcommit.NewBatch("DELETE FROM answers WHERE seq IN (SELECT seq FROM keys WHERE hash IN (", 1, "))"),
		answers: groupcommit.NewBatch("INSERT INTO answers(seq, scope, run, received, outcome, reason, status, credits, resolution, request, key, body) VALUES ",
			12, ""),
		keys:     groupcommit.NewBatch("INSERT INTO keys(hash, seq) VALUES ", 2, " ON CONFLICT(hash) DO UPDATE SET seq = excluded.seq"),
		answered: groupcommit.NewBatch("DELETE FROM calls WHERE hash IN (", 1, ")"),
		intents:  groupcommit.NewBatch("INSERT INTO calls(hash, scope, run, key, idempotency, attempts, sent, state, doubtful) VALUES ", 9, ""),
	}
}

// begin is a store's first change: what an earlier process had under way is
// unknown now.
func (g *group) begin() error {
	if _, err := g.Row("SELECT coalesce(max(seq), 0) FROM answers", nil, &g.last); err != nil {
		return err
	}
	return g.Exec("UPDATE calls SET state = 'unknown', doubtful = 1 WHERE state = 'under_way'")
}

// Reset starts a group. Numbers of answers that were undone are not given
// again.
func (g *group) Reset() {
	clear(g.held)
	clear(g.spending)
	for _, b := range g.batches() {
		b.Reset()
	}
}

// batches are in the order in which they are written: what an answer replaces
// is found by the keys as they were.
func (g *group) batches() [5]*groupcommit.Batch {
	return [...]*groupcommit.Batch{g.replaced, g.answers, g.keys, g.answered, g.intents}
}

// Flush writes what the group held back.
func (g *group) Flush() error {
	for _, b := range g.batches() {
		if err := b.Flush(g.Tx); err != nil {
			return err
		}
	}
	for run, s := range g.spending {
		err := g.Exec("UPDATE runs SET answers = answers + ?, unpriced = unpriced + ?, credits = credits + ? WHERE id = ?", s.answers, s.unpriced, s.credits, run)
		if err != nil {
			return err
		}
	}
	clear(g.held)
	clear(g.spending)
	return nil
}

// turn makes the tables say all that the group knows of a question.
func (g *group) turn(h Hash) error {
	if !g.held[h] {
		return nil
	}
	wrote := g.Wrote
	err := g.Flush()
	g.Wrote = wrote // that was others: this change may still refuse
	return err
}

// hold says that something is held back about a question.
func (g *group) hold(h Hash) {
	g.held[h] = true
	g.Wrote = true
}
