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

// batch bounds the questions of one read transaction: enough that what it
// costs is little for each, few enough that the log can soon go back into the
// database.
const batch = 4096

// reader looks questions up. A list of which everything is stored is read at
// its speed, so it goes past database/sql: with a million stored, bodies of
// 400 bytes and keys in any order, a statement for each batch whose rows
// database/sql scans takes 22 µs of processor time a question, this takes 12
// at the same time and on the same two cores, which others use too (and 8
// while they do not so much). A quarter of that is the system's, for handing
// over the page with the body.
type reader struct {
	conn   *sqlite.Conn
	hashes []byte // of the questions of a batch
	byHash []questionAt
	bySeq  []questionAt

	begin, commit, key, answer, body *sqlite.Stmt
}

// questionAt is a place among the questions of a batch, and what they are
// ordered by.
type questionAt struct {
	by uint64
	i  int
}

// openReader opens a reader that keeps up to cache bytes of pages.
func openReader(path string, cache int) (r *reader, err error) {
	r = &reader{}
	if r.conn, err = sqlite.OpenConn(path, sqlite.OpenReadWrite|sqlite.OpenNoMutex); err != nil {
		return nil, err
	}
	r.conn.SetBusyTimeout(10 * time.Second)
	for _, pragma := range []string{"query_only = 1", fmt.Sprintf("cache_size = -%d", cache>>10)} {
		if err := sqlitex.ExecuteTransient(r.conn, "PRAGMA "+pragma, nil); err != nil {
			return nil, errors.Join(err, r.conn.Close())
		}
	}
	r.hashes = make([]byte, batch*len(Hash{}))
	const answer = "SELECT outcome, reason, status, credits, resolution, request, received"
	for _, s := range []struct {
		into  **sqlite.Stmt
		query string
	}{
		{&r.begin, "BEGIN"},
		{&r.commit, "COMMIT"},
		{&r.key, "SELECT seq FROM keys WHERE hash = ?"},
		{&r.answer, answer + " FROM answers WHERE seq = ?"},
		{&r.body, answer + ", body FROM answers WHERE seq = ?"},
	} {
		if *s.into, err = r.conn.Prepare(s.query); err != nil {
			return nil, errors.Join(err, r.conn.Close())
		}
	}
	return r, nil
}

// find fills into with the answers to the questions whose hashes are in
// r.hashes and that have none yet, all as of one moment.
func (r *reader) find(ctx context.Context, f Freshness, bodies bool, into []Found) (err error) {
	if _, err := row(r.begin, nil); err != nil {
		return err
	}
	defer func() {
		_, ended := row(r.commit, nil)
		err = cmp.Or(err, ended)
	}()
	// Pages are found sooner in the order in which they lie.
	r.byHash = r.byHash[:0]
	for i := range into {
		if into[i].Stored {
			continue
		}
		r.byHash = append(r.byHash, questionAt{binary.BigEndian.Uint64(r.hashes[i*len(Hash{}):]), i})
	}
	slices.SortFunc(r.byHash, order)
	r.bySeq = r.bySeq[:0]
	for n, q := range r.byHash {
		if n%256 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		at := q.i * len(Hash{})
		r.key.BindBytes(1, r.hashes[at:at+keyBytes])
		if _, err := row(r.key, func() { r.bySeq = append(r.bySeq, questionAt{uint64(r.key.ColumnInt64(0)), q.i}) }); err != nil {
			return err
		}
	}
	slices.SortFunc(r.bySeq, order)
	answer := r.answer
	if bodies {
		answer = r.body
	}
	for n, q := range r.bySeq {
		if n%256 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		answer.BindInt64(1, int64(q.by))
		if _, err := row(answer, func() { readAnswer(answer, bodies, f, &into[q.i]) }); err != nil {
			return err
		}
	}
	return nil
}

func order(a, b questionAt) int { return cmp.Compare(a.by, b.by) }

// row runs a statement that has one row at most, and use while it is there.
func row(s *sqlite.Stmt, use func()) (found bool, err error) {
	found, err = s.Step()
	if found && use != nil {
		use()
	}
	s.Reset()
	return found, err
}

func readAnswer(s *sqlite.Stmt, bodies bool, f Freshness, found *Found) {
	a := &found.Answer
	a.Outcome = outcome(s.ColumnText(0))
	a.Reason, a.Status = s.ColumnText(1), s.ColumnInt(2)
	if !s.ColumnIsNull(3) {
		credits := s.ColumnInt64(3)
		a.Credits = &credits
	}
	a.Resolution, a.Request, a.Received = s.ColumnText(4), s.ColumnText(5), moment(s.ColumnInt64(6))
	if bodies {
		a.Body = make([]byte, s.ColumnLen(7))
		s.ColumnBytes(7, a.Body)
	}
	found.Stored, found.Fresh = true, f.of(a.Outcome, a.Received)
}

// outcome is the Outcome that a column holds, without a copy of the word.
func outcome(word string) Outcome {
	for _, o := range [...]Outcome{Matched, NoMatch, Refused} {
		if string(word) == string(o) {
			return o
		}
	}
	return Outcome(word)
}

// readers lends readers out.
type readers chan *reader

// readersCache is how many bytes of pages all readers together keep: the keys
// of half a million questions. More are read from the system's cache, which
// costs a copy.
const readersCache = 16 << 20

// openReaders opens n readers.
func openReaders(path string, n int) (readers, error) {
	all := make(readers, n)
	for range n {
		r, err := openReader(path, readersCache/n)
		if err != nil {
			return nil, errors.Join(err, all.close(len(all)))
		}
		all <- r
	}
	return all, nil
}

// take waits for a reader.
func (all readers) take(ctx context.Context) (*reader, error) {
	select {
	case r, open := <-all:
		if !open {
			return nil, errClosed
		}
		return r, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (all readers) give(r *reader) { all <- r }

// close closes the n readers there are.
func (all readers) close(n int) error {
	var errs []error
	for range n {
		r := <-all
		errs = append(errs, r.conn.Close())
	}
	close(all)
	return errors.Join(errs...)
}
