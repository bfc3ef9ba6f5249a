package answers

import (
	"context"
	"fmt"
	"time"

	"github.com/leadetl/leadetl/resolution"
)

// Forget deletes what is stored about questions, answers and open calls, and
// returns of how many there was something. When it returns their bytes are
// overwritten in the file and its log, though not in copies of it. What runs
// have paid stays counted.
//
// A question whose open call is forgotten may be bought twice. The error is
// resolution.ErrUnavailable also when somebody else reads the file all the
// while, so that its log cannot be emptied: everything is deleted then, and
// Forget can be asked again.
func (s *Store) Forget(ctx context.Context, questions []Hash) (forgotten int, err error) {
	s.changing.Lock()
	defer s.changing.Unlock()
	if err := s.flushed(); err != nil { // the log's files go with it
		return 0, err
	}
	for len(questions) > 0 {
		n, some := min(len(questions), groupDeletes), 0
		err := s.writer.Write(ctx, func(g *group) (err error) {
			some, err = g.forget(questions[:n])
			return err
		})
		if err != nil {
			return forgotten, err
		}
		forgotten += some
		s.recent.forget(questions[:n])
		questions = questions[n:]
	}
	return forgotten, s.emptyLog(ctx)
}

// groupDeletes bounds the deletions of one group, so that others do not wait
// for long.
const groupDeletes = 256

func (g *group) forget(questions []Hash) (forgotten int, err error) {
	for _, h := range questions {
		some := int64(0)
		for _, d := range []struct {
			statement string
			hash      []byte
		}{
			{"DELETE FROM answers WHERE seq = (SELECT seq FROM keys WHERE hash = ?)", h[:keyBytes]},
			{"DELETE FROM keys WHERE hash = ?", h[:keyBytes]},
			{"DELETE FROM calls WHERE hash = ?", h[:]},
		} {
			n, err := g.Update(d.statement, d.hash)
			if err != nil {
				return 0, err
			}
			some += n
		}
		if some > 0 {
			forgotten++
		}
	}
	return forgotten, nil
}

// forget drops the open calls of questions that the database no longer has.
func (r *recent) forget(questions []Hash) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, h := range questions {
		r.put(h, nil)
	}
}

// Prune deletes the answers received before a moment, as Forget does, and
// returns how many. Open calls stay.
func (s *Store) Prune(ctx context.Context, before time.Time) (pruned int, err error) {
	if err := s.flush(); err != nil {
		return 0, err
	}
	type old struct {
		seq  int64
		hash Hash
	}
	last := int64(0)
	for {
		some, err := collect(ctx, s.reads, func(row interface{ Scan(...any) error }) (o old, err error) {
			var q Question
			err = row.Scan(&o.seq, &q.Service, &q.Operation, &q.Settings, &q.Key)
			o.hash = q.Hash()
			return o, err
		}, `SELECT a.seq, s.service, s.operation, s.settings, a.key FROM answers a CROSS JOIN scopes s ON s.id = a.scope
			WHERE a.seq > ? AND a.received < ? ORDER BY a.seq LIMIT ?`, last, millis(before), groupDeletes)
		if err != nil {
			return pruned, err
		}
		if len(some) == 0 {
			break
		}
		last = some[len(some)-1].seq
		gone := 0
		err = s.writer.Write(ctx, func(g *group) error {
			gone = 0
			for _, o := range some {
				// A younger answer may have come since, and taken its place.
				n, err := g.Update("DELETE FROM keys WHERE hash = ? AND seq = ?", o.hash[:keyBytes], o.seq)
				if err != nil {
					return err
				}
				if err := g.Exec("DELETE FROM answers WHERE seq = ?", o.seq); err != nil {
					return err
				}
				gone += int(n)
			}
			return nil
		})
		if err != nil {
			return pruned, err
		}
		pruned += gone
	}
	return pruned, s.emptyLog(ctx)
}

// emptyLog brings the log into the database and cuts it off: until then it
// holds what was deleted.
func (s *Store) emptyLog(ctx context.Context) error {
	var busy, frames, moved int
	if err := s.reads.QueryRowContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &frames, &moved); err != nil {
		return fault(err)
	}
	if busy != 0 {
		return fmt.Errorf("%w: stored answers: the log is in use, and still holds what was deleted", resolution.ErrUnavailable)
	}
	return nil
}
