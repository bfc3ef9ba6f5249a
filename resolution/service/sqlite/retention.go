package sqlite

import (
	"context"
	"time"

	"github.com/leadetl/leadetl/resolution/service/state"
)

// stepRows bounds the rows that one step of a large change touches. A charge
// that arrives meanwhile waits for at most one step.
const stepRows = 100

// Purge removes what is older than r allows, and gives its space back. It works in many small steps, so
// that other changes can run between them, until nothing is left or ctx ends.
// The counts are valid even when it returns an error.
func (s *Store) Purge(ctx context.Context, now time.Time, r state.Retention) (p state.Purged, err error) {
	if p.Replies, err = s.purgeReplies(ctx, millis(now), millis(now.Add(-r.Replies))); err != nil {
		return p, err
	}
	for _, step := range []struct {
		count      *int
		kept       time.Duration
		statements []string // one change: ?1 is the latest time to remove, ?2 the maximum of rows
	}{
		{&p.Results, r.Results, []string{`UPDATE resolutions SET expired = 1, work = NULL, payload = NULL, result = NULL, callback = NULL, receiver = NULL
			WHERE rowid IN (SELECT rowid FROM resolutions WHERE expired = 0 AND finished <= ?1 LIMIT ?2)`}},
		{&p.Tombstones, r.Results + r.Tombstones, []string{`DELETE FROM resolutions
			WHERE rowid IN (SELECT rowid FROM resolutions WHERE expired = 1 AND finished <= ?1 LIMIT ?2)`}},
		{&p.Snapshots, r.Snapshots, []string{`DELETE FROM snapshots
			WHERE (organization, fingerprint) IN (SELECT organization, fingerprint FROM snapshots WHERE taken <= ?1 LIMIT ?2)`}},
		{&p.DeliveredBodies, min(r.DeliveredBodies, r.Delivered), []string{
			"DELETE FROM bodies WHERE delivery IN " + oldDeliveries("state = 'delivered' AND kept = 1"),
			"UPDATE outbox SET kept = 0 WHERE id IN " + oldDeliveries("state = 'delivered' AND kept = 1"),
		}},
		{&p.Delivered, r.Delivered, []string{"DELETE FROM outbox WHERE id IN " + oldDeliveries("state = 'delivered' AND kept = 0")}},
		{&p.Dead, r.Dead, []string{"DELETE FROM outbox WHERE id IN " + oldDeliveries("state = 'dead' AND kept = 1")}},
	} {
		*step.count, err = s.db.purge(ctx, step.statements, millis(now.Add(-step.kept)))
		if err != nil {
			return p, err
		}
	}
	if p.Deleted, err = s.db.purgeDeleted(ctx, now); err != nil {
		return p, err
	}
	return p, s.giveBack(ctx)
}

// purgeDeleted removes the jobs and callbacks of deleted organizations.
func (db *database) purgeDeleted(ctx context.Context, now time.Time) (count int, err error) {
	for _, statement := range []string{
		"DELETE FROM resolutions WHERE rowid IN (SELECT r.rowid FROM organizations o JOIN resolutions r ON r.organization = o.id WHERE o.deleted <= ?1 LIMIT ?2)",
		"DELETE FROM outbox WHERE id IN (SELECT x.id FROM organizations o JOIN outbox x ON x.organization = o.id WHERE o.deleted <= ?1 LIMIT ?2)",
	} {
		n, err := db.purge(ctx, []string{statement}, millis(now))
		count += n
		if err != nil {
			return count, err
		}
	}
	return count, db.writer.Write(ctx, func(t *tx) error { // few, and none while the organization has deliveries
		return t.sql.Exec("DELETE FROM lanes WHERE organization IN (SELECT id FROM organizations WHERE deleted IS NOT NULL)")
	})
}

// oldDeliveries selects deliveries. It selects the same ones for all statements of
// one change.
func oldDeliveries(which string) string {
	return "(SELECT id FROM outbox WHERE " + which + " AND finished <= ?1 ORDER BY finished, id LIMIT ?2)"
}

// purge repeats a change until it removes less than a full step, and counts the
// rows of its last statement.
func (db *database) purge(ctx context.Context, statements []string, before int64) (count int, err error) {
	for {
		var n int64
		err := db.writer.Write(ctx, func(t *tx) (err error) {
			for _, statement := range statements {
				if n, err = t.sql.Update(statement, before, stepRows); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return count, err
		}
		count += int(n)
		if n < stepRows {
			return count, nil
		}
	}
}

// purgeReplies reads the replies in the order they were appended, and stops at a
// step without an old one. An index by time would slow down every call. The
// order is the order of time unless the clock was set. Replies with a time in
// the future, from a clock that was ahead, are skipped. Once that time has
// passed, they delay the removal of later replies until they are removed
// themselves.
func (s *Store) purgeReplies(ctx context.Context, now, before int64) (count int, err error) {
	for last := int64(0); ; {
		var end, old, ahead int64
		err := s.db.reads.QueryRowContext(ctx, `SELECT coalesce(max(seq), 0), coalesce(sum(at <= ?), 0), coalesce(sum(at > ?), 0)
			FROM (SELECT seq, at FROM replies WHERE seq > ? ORDER BY seq LIMIT ?)`, before, now, last, stepRows).Scan(&end, &old, &ahead)
		if err != nil || old+ahead == 0 {
			return count, unavailable(err)
		}
		if old > 0 {
			n, err := s.purgeRepliesTo(ctx, last, end, before)
			if err != nil {
				return count, err
			}
			count += n
		}
		last = end
	}
}

func (s *Store) purgeRepliesTo(ctx context.Context, last, end, before int64) (n int, err error) {
	err = s.db.writer.Write(ctx, func(t *tx) error {
		rows, err := t.sql.Update("DELETE FROM replies WHERE seq > ? AND seq <= ? AND at <= ?", last, end, before)
		n = int(rows)
		return err
	})
	if err != nil {
		return 0, err
	}
	return n, nil
}

// SQLite keeps the pages of deleted rows for later rows. Purge gives most of them
// back to the file system, a few at a time.

// keptPages are free pages that stay for the next rows: 4 MiB.
const keptPages = 1024

// giveBack returns free pages to the file system, except those that the next rows need.
func (s *Store) giveBack(ctx context.Context) error {
	for free, before := int64(0), int64(-1); ; before = free {
		if err := s.db.reads.QueryRowContext(ctx, "PRAGMA freelist_count").Scan(&free); err != nil {
			return unavailable(err)
		}
		if free <= keptPages || free == before { // or nothing can be given back
			return nil
		}
		err := s.db.writer.Write(ctx, func(t *tx) error { return t.sql.Exec("PRAGMA incremental_vacuum(256)") })
		if err != nil {
			return err
		}
	}
}
