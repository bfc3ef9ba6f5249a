package state

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// connection is the writer's: one connection to the database, with the
// statements it has prepared. The texts are constants of this package, so
// there are few.
type connection struct {
	*sql.Conn
	db       *sql.DB
	prepared map[string]*sql.Stmt
	patience time.Duration // with another process that has the write lock
}

// settings of the writer: a commit returns after its fsync; references hold,
// and the ledger's triggers also against a REPLACE; 16 MiB of pages are kept
// in memory; and the log goes back into the database after 16 MiB.
const settings = "_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=foreign_keys(1)&_pragma=recursive_triggers(1)" +
	"&_pragma=cache_size(-16384)&_pragma=wal_autocheckpoint(4000)"

func connect(path string) (_ *connection, err error) {
	db, err := sql.Open("sqlite", uri(path, settings))
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	c := &connection{db: db, prepared: map[string]*sql.Stmt{}, patience: 10 * time.Second}
	if c.Conn, err = db.Conn(context.Background()); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	if _, err := c.ExecContext(context.Background(), "PRAGMA busy_timeout = 2"); err != nil { // milliseconds; see begin
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// begin starts a transaction that holds the write lock, waiting for it.
//
// A service under load gives the lock back only for moments. SQLite would
// look for it every 100 ms, and could miss them all; asked anew every 2 ms, an
// administrator's change is made at once.
func (c *connection) begin() error {
	begin, err := c.prepare("BEGIN IMMEDIATE")
	if err != nil {
		return err
	}
	for asked := time.Now(); ; {
		_, err := begin.ExecContext(context.Background())
		if !busy(err) || time.Since(asked) > c.patience {
			return err
		}
	}
}

// busy reports whether another process has the write lock.
func busy(err error) bool {
	var e *sqlite.Error
	return errors.As(err, &e) && e.Code()&0xff == sqlite3.SQLITE_BUSY
}

func (c *connection) prepare(statement string) (*sql.Stmt, error) {
	if s := c.prepared[statement]; s != nil {
		return s, nil
	}
	s, err := c.PrepareContext(context.Background(), statement)
	if err == nil {
		c.prepared[statement] = s
	}
	return s, err
}

// Close gives everything back, whatever state it is in.
func (c *connection) Close() error {
	var errs []error
	for _, s := range c.prepared {
		errs = append(errs, s.Close())
	}
	return errors.Join(append(errs, c.Conn.Close(), c.db.Close())...)
}
