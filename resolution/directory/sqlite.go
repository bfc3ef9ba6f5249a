package directory

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	_ "modernc.org/sqlite"

	"github.com/leadetl/leadetl/internal/atomicfile"
)

// sqliteFile is a finished database file, open for reading.
type sqliteFile struct{ db *sql.DB }

// openSQLite opens path as a file nobody writes any more: no locks, no
// journal, nothing left beside it. It is not mapped into memory, although a
// look-up would take a third less: a page that cannot be read is an error this
// way, and the end of the process the other.
func openSQLite(path string) (*sqliteFile, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	uri := url.URL{Scheme: "file", Path: filepath.ToSlash(path),
		RawQuery: "mode=ro&immutable=1&_pragma=query_only(1)&_pragma=cache_size(-8192)"}
	db, err := sql.Open("sqlite", uri.String())
	if err != nil {
		return nil, err
	}
	// All connections are opened now and kept: an import may remove the file
	// under us, which open connections survive and new ones would not.
	n := min(max(runtime.GOMAXPROCS(0), 2), 8)
	db.SetMaxOpenConns(n)
	db.SetMaxIdleConns(n)
	conns := make([]*sql.Conn, 0, n)
	for range n {
		var c *sql.Conn
		if c, err = db.Conn(context.Background()); err == nil {
			conns = append(conns, c)
			// The file itself is opened by the first statement only.
			_, err = c.ExecContext(context.Background(), "SELECT count(*) FROM sqlite_schema")
		}
		if err != nil {
			break
		}
	}
	for _, c := range conns {
		err = errors.Join(err, c.Close())
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", path, err), db.Close())
	}
	return &sqliteFile{db}, nil
}

func (f *sqliteFile) Close() error { return f.db.Close() }

// check is SQLite's own verification.
func (f *sqliteFile) check(ctx context.Context) error {
	var answer string
	if err := f.db.QueryRowContext(ctx, "PRAGMA integrity_check(1)").Scan(&answer); err != nil {
		return err
	}
	if answer != "ok" {
		return errors.New("integrity check: " + answer)
	}
	return nil
}

// sqliteBuilder writes a database file from nothing. The file is worth
// nothing until it is sealed, so nothing is journalled or synced on the way.
type sqliteBuilder struct {
	db   *sql.DB
	path string
}

func buildSQLite(path, schema string) (*sqliteBuilder, error) {
	temp := atomicfile.TempName(path)
	if err := os.Remove(temp); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	abs, err := filepath.Abs(temp)
	if err != nil {
		return nil, err
	}
	uri := url.URL{Scheme: "file", Path: filepath.ToSlash(abs),
		RawQuery: "_pragma=journal_mode(OFF)&_pragma=synchronous(OFF)&_pragma=locking_mode(EXCLUSIVE)&_pragma=cache_size(-65536)&_pragma=threads(2)"}
	db, err := sql.Open("sqlite", uri.String())
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1) // one connection, so temporary tables are seen by all
	b := &sqliteBuilder{db: db, path: path}
	if err := b.run(context.Background(), schema); err != nil {
		return nil, errors.Join(err, b.abort())
	}
	return b, nil
}

// run executes statements that take no arguments.
func (b *sqliteBuilder) run(ctx context.Context, statements string) error {
	_, err := b.db.ExecContext(ctx, statements)
	return err
}

func (b *sqliteBuilder) count(query string) (n int64, err error) {
	err = b.db.QueryRow(query).Scan(&n)
	return n, err
}

func (b *sqliteBuilder) abort() error {
	err := b.db.Close()
	if rm := os.Remove(atomicfile.TempName(b.path)); !errors.Is(rm, os.ErrNotExist) {
		err = errors.Join(err, rm)
	}
	return err
}

// seal closes the database and puts it in place.
func (b *sqliteBuilder) seal() (entry, error) {
	if err := b.db.Close(); err != nil {
		return entry{}, errors.Join(err, b.abort())
	}
	e, err := seal(b.path)
	if err != nil {
		return e, errors.Join(err, b.abort())
	}
	return e, nil
}

// inserter adds rows to one table, several a statement: a statement costs more
// than a row, but the driver finds the arguments of one in quadratic time.
type inserter struct {
	tx      *sql.Tx
	one     string // INSERT INTO t(a, b) VALUES
	width   int    // columns
	rows    int    // rows of a full statement
	full    *sql.Stmt
	pending []any
}

// argumentsPerInsert is about where the two costs meet, measured.
const argumentsPerInsert = 64

func newInserter(tx *sql.Tx, table string, columns ...string) (*inserter, error) {
	in := &inserter{tx: tx, width: len(columns), rows: max(1, argumentsPerInsert/len(columns))}
	in.one = fmt.Sprintf("INSERT INTO %s(%s) VALUES ", table, strings.Join(columns, ", "))
	var err error
	in.full, err = tx.Prepare(in.statement(in.rows))
	return in, err
}

func (in *inserter) statement(rows int) string {
	one := "(?" + strings.Repeat(", ?", in.width-1) + ")"
	return in.one + one + strings.Repeat(", "+one, rows-1)
}

// add keeps the values, not the slice.
func (in *inserter) add(values ...any) error {
	in.pending = append(in.pending, values...)
	if len(in.pending) < in.rows*in.width {
		return nil
	}
	_, err := in.full.Exec(in.pending...)
	in.pending = in.pending[:0]
	return err
}

// flush adds what is pending. Call it before the commit.
func (in *inserter) flush() error {
	if len(in.pending) == 0 {
		return nil
	}
	_, err := in.tx.Exec(in.statement(len(in.pending)/in.width), in.pending...)
	in.pending = in.pending[:0]
	return err
}
