package answers

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leadetl/leadetl/resolution"
)

// Forget deletes the answers and open calls of questions, and returns how many
// questions had any. It overwrites their bytes in the database and its log, but
// not in copies of these. The totals that runs have paid do not change.
//
// If an open call is forgotten, its question may be bought twice. If another
// process keeps reading the file, the log cannot be emptied, and the error is
// also resolution.ErrUnavailable. Everything is deleted even then, and Forget
// can be called again.
func (s *Store) Forget(ctx context.Context, questions []Hash) (forgotten int, err error) {
	s.logMu.Lock()
	defer s.logMu.Unlock()
	if err := s.flushLocked(); err != nil { // also removes the log files
		return 0, err
	}
	for len(questions) > 0 {
		n, some := min(len(questions), s.atMost(maxDeletes)), 0
		err := s.writer.Write(ctx, func(g *sqliteTx) (err error) {
			some, err = g.forget(questions[:n])
			return err
		})
		if err != nil {
			return forgotten, err
		}
		forgotten += some
		s.mem.removeCalls(questions[:n])
		questions = questions[n:]
	}
	return forgotten, s.emptyWAL(ctx)
}

// maxDeletes bounds the deletions in one group, so that other changes do not
// wait long.
const maxDeletes = 256

func (g *sqliteTx) forget(questions []Hash) (forgotten int, err error) {
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

// removeCalls removes the open calls of questions that were deleted from the
// database.
func (m *memtable) removeCalls(questions []Hash) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, h := range questions {
		m.setCall(h, nil)
	}
}

// Prune deletes, as Forget does, the answers received before a time, and
// returns how many. Open calls stay, without the bodies kept of those sent before.
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
			err = row.Scan(&o.seq, &q.Service, &q.Operation, &q.Key)
			o.hash = q.Hash()
			return o, err
		}, `SELECT a.seq, s.service, s.operation, a.key FROM answers a CROSS JOIN scopes s ON s.id = a.scope
			WHERE a.seq > ? AND a.received < ? ORDER BY a.seq LIMIT ?`, last, toMillis(before), s.atMost(maxDeletes))
		if err != nil {
			return pruned, err
		}
		if len(some) == 0 {
			break
		}
		last = some[len(some)-1].seq
		gone := 0
		err = s.writer.Write(ctx, func(g *sqliteTx) error {
			gone = 0
			for _, o := range some {
				// A newer answer may have replaced it in the meantime.
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
	err = s.writer.Write(ctx, func(g *sqliteTx) error {
		return g.Exec("DELETE FROM bodies WHERE hash IN (SELECT hash FROM calls WHERE sent < ?)", toMillis(before))
	})
	return pruned, errors.Join(err, s.emptyWAL(ctx))
}

// emptyWAL moves SQLite's write-ahead log into the database and truncates it.
// Until then the log holds deleted data.
func (s *Store) emptyWAL(ctx context.Context) error {
	var busy, frames, moved int
	if err := s.reads.QueryRowContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &frames, &moved); err != nil {
		return fault(err)
	}
	if busy != 0 {
		return fmt.Errorf("%w: stored answers: the log is in use, and still holds what was deleted", resolution.ErrUnavailable)
	}
	return nil
}
