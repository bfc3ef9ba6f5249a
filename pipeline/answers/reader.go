package answers

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// readerPool lends readers to Lookups.
type readerPool chan *reader

// poolCache is how many bytes of pages all readers together cache: the keys of
// half a million questions. Other pages come from the system's cache and must
// be copied.
const poolCache = 16 << 20

// openReaders opens n readers of the database at path.
func openReaders(path string, n int) (readerPool, error) {
	pool := make(readerPool, n)
	for range n {
		r, err := openReader(path, poolCache/n)
		if err != nil {
			return nil, errors.Join(err, pool.close(len(pool)))
		}
		pool <- r
	}
	return pool, nil
}

// get waits for a reader.
func (p readerPool) get(ctx context.Context) (*reader, error) {
	select {
	case r, open := <-p:
		if !open {
			return nil, errClosed
		}
		return r, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (p readerPool) put(r *reader) { p <- r }

// close waits for the n readers of the pool and closes them.
func (p readerPool) close(n int) error {
	var errs []error
	for range n {
		r := <-p
		errs = append(errs, r.conn.Close())
	}
	close(p)
	return errors.Join(errs...)
}

// reader looks up questions. It determines the speed of a run whose answers are
// all stored, so it does not use database/sql: with a million stored answers,
// bodies of 400 bytes and keys in random order, a question takes 22 µs of
// processor time with database/sql and 12 µs here.
type reader struct {
	conn   *sqlite.Conn
	hashes []Hash // the questions of a batch
	byHash []position
	bySeq  []position
	runs   map[int64]string // names of the runs that were read

	begin, commit, key, answer, body, run *sqlite.Stmt
}

// batchSize bounds the questions of one read transaction: enough to spread its
// cost, and few enough that the write-ahead log can soon move back into the
// database.
const batchSize = 4096

// position is the index of a question in its batch, with its sort key.
type position struct {
	by uint64
	i  int
}

// openReader opens a reader that caches up to cacheBytes of pages.
func openReader(path string, cacheBytes int) (_ *reader, err error) {
	// Not read-only: readers of a write-ahead log write to its index.
	conn, err := sqlite.OpenConn(path, sqlite.OpenReadWrite)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, conn.Close())
		}
	}()
	conn.SetBusyTimeout(10 * time.Second)
	for _, pragma := range []string{"query_only = 1", fmt.Sprintf("cache_size = -%d", cacheBytes>>10)} {
		if err := sqlitex.ExecuteTransient(conn, "PRAGMA "+pragma, nil); err != nil {
			return nil, err
		}
	}
	r := &reader{conn: conn, hashes: make([]Hash, 0, batchSize), runs: map[int64]string{}}
	const answer = "SELECT outcome, reason, status, credits, resolution, request, received, run"
	for _, s := range []struct {
		into  **sqlite.Stmt
		query string
	}{
		{&r.begin, "BEGIN"},
		{&r.commit, "COMMIT"},
		{&r.key, "SELECT seq FROM keys WHERE hash = ?"},
		{&r.answer, answer + " FROM answers WHERE seq = ?"},
		{&r.body, answer + ", body FROM answers WHERE seq = ?"},
		{&r.run, "SELECT name FROM runs WHERE id = ?"},
	} {
		if *s.into, err = conn.Prepare(s.query); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// find fills into with the answers to the questions in r.hashes that have none
// yet, as of one moment.
func (r *reader) find(ctx context.Context, f Freshness, bodies bool, into []Found) (err error) {
	if err := readRow(r.begin, nil); err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, readRow(r.commit, nil)) }()
	// Pages are found faster in file order.
	r.byHash = r.byHash[:0]
	for i := range into {
		if !into[i].Stored {
			r.byHash = append(r.byHash, position{binary.BigEndian.Uint64(r.hashes[i][:]), i})
		}
	}
	slices.SortFunc(r.byHash, comparePositions)
	r.bySeq = r.bySeq[:0]
	for n, p := range r.byHash {
		if n%256 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		r.key.BindBytes(1, r.hashes[p.i][:keyBytes])
		if err := readRow(r.key, func() { r.bySeq = append(r.bySeq, position{uint64(r.key.ColumnInt64(0)), p.i}) }); err != nil {
			return err
		}
	}
	slices.SortFunc(r.bySeq, comparePositions)
	answer := r.answer
	if bodies {
		answer = r.body
	}
	for n, p := range r.bySeq {
		if n%256 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		answer.BindInt64(1, int64(p.by))
		run := int64(0)
		if err := readRow(answer, func() { run = readAnswer(answer, bodies, f, &into[p.i]) }); err != nil {
			return err
		}
		if into[p.i].Answer.Run, err = r.runOf(run); err != nil {
			return err
		}
	}
	return nil
}

func comparePositions(a, b position) int { return cmp.Compare(a.by, b.by) }

// readRow runs a statement that returns at most one row, and calls use at that
// row.
func readRow(s *sqlite.Stmt, use func()) error {
	found, err := s.Step()
	if found && use != nil {
		use()
	}
	return errors.Join(err, s.Reset())
}

// runOf is the name of a run.
func (r *reader) runOf(id int64) (string, error) {
	name, known := r.runs[id]
	if known {
		return name, nil
	}
	r.run.BindInt64(1, id)
	err := readRow(r.run, func() { name = r.run.ColumnText(0) })
	if err == nil {
		r.runs[id] = name
	}
	return name, err
}

// readAnswer reads an answer, and returns the id of its run.
func readAnswer(s *sqlite.Stmt, bodies bool, f Freshness, found *Found) (run int64) {
	a := &found.Answer
	a.Outcome, a.Reason, a.Status = Outcome(s.ColumnText(0)), s.ColumnText(1), s.ColumnInt(2)
	if !s.ColumnIsNull(3) {
		a.Credits = new(s.ColumnInt64(3))
	}
	a.Resolution, a.Request, a.Received = s.ColumnText(4), s.ColumnText(5), fromMillis(s.ColumnInt64(6))
	if size := s.ColumnLen(8); bodies && size > 0 {
		a.Body = make([]byte, size)
		s.ColumnBytes(8, a.Body)
	}
	found.Stored, found.Fresh = true, f.Of(a.Outcome, a.Received)
	return s.ColumnInt64(7)
}
