package sqlite

import (
	"context"
	"database/sql"
	"os"
	"time"

	"github.com/leadetl/leadetl/resolution/service/state"
)

// queryer is a pool of read connections, or one read transaction.
type queryer interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// collect reads all rows of a query. The error is resolution.ErrUnavailable or
// the context's.
func collect[T any](ctx context.Context, from queryer, scan func(interface{ Scan(...any) error }) (T, error), query string, args ...any) (all []T, err error) {
	rows, err := from.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, unavailable(err)
	}
	defer rows.Close() // the rows are read to the end, so it cannot fail
	for rows.Next() {
		one, err := scan(rows)
		if err != nil {
			return nil, unavailable(err)
		}
		all = append(all, one)
	}
	return all, unavailable(rows.Err())
}

// millis is a time as the database stores it: milliseconds since 1970 UTC.
func millis(t time.Time) int64 { return t.UnixMilli() }

func moment(ms int64) time.Time { return time.UnixMilli(ms).UTC() }

// optional is millis for a time that may be missing: the zero time is NULL.
func optional(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return millis(t)
}

// optionalMoment reads what optional wrote.
func optionalMoment(ms *int64) time.Time {
	if ms == nil {
		return time.Time{}
	}
	return moment(*ms)
}

// Stats counts unfinished jobs and deliveries, and the bytes of the database with its log. The numbers of deliveries are kept
// by triggers, so reading them is cheap however many there are.
func (s *Store) Stats(ctx context.Context) (st state.Stats, err error) {
	var job, due *int64
	err = s.db.reads.QueryRowContext(ctx, `WITH RECURSIVE `+awaiting+` SELECT
		(SELECT count(*) FROM resolutions WHERE finished IS NULL AND status = 'queued'),
		(SELECT count(*) FROM resolutions WHERE status = 'processing'),
		(SELECT min(requested) FROM resolutions WHERE finished IS NULL),
		(SELECT count FROM undelivered WHERE state = 'pending'),
		(SELECT count FROM undelivered WHERE state = 'dead'),
		(SELECT min(due) FROM awaiting),
		(SELECT page_count * page_size FROM pragma_page_count, pragma_page_size),
		(SELECT freelist_count * page_size FROM pragma_freelist_count, pragma_page_size)`).
		Scan(&st.Queued, &st.Processing, &job, &st.Pending, &st.Dead, &due, &st.Bytes, &st.FreeBytes)
	st.OldestJob, st.OldestDue = optionalMoment(job), optionalMoment(due)
	if log, err := os.Stat(s.db.path + "-wal"); err == nil {
		st.Bytes += log.Size()
	}
	return st, unavailable(err)
}
