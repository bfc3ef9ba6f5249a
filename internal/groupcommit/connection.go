package groupcommit

import (
	"context"
	"database/sql"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// Conn is one connection to a database, with the statements it has prepared.
// It is not safe from several goroutines.
type Conn struct {
	*sql.Conn
	patience atomic.Int64 // a time.Duration; see SetPatience
	db       *sql.DB
	prepared map[string]*sql.Stmt
}

// Create makes the database's file if it is missing, readable only by its owner.
// SQLite itself would let others read it. The files that SQLite puts next to it
// get the same mode.
func Create(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

// URI is the driver's name for a database, with pragmas as "name(value)". It
// makes the driver wait for locks of other processes, and not create a missing
// file.
func URI(path string, pragmas ...string) string {
	u := url.URL{Scheme: "file", Path: filepath.ToSlash(path), RawQuery: "mode=rw&_pragma=busy_timeout(10000)"}
	for _, p := range pragmas {
		u.RawQuery += "&_pragma=" + p
	}
	return u.String()
}

// Connect opens a connection for changes. A commit on it returns after its
// fsync. The pragmas come before the change to WAL, which writes the first page.
func Connect(path string, pragmas ...string) (_ *Conn, err error) {
	db, err := sql.Open("sqlite", URI(path, append(slices.Clone(pragmas), "journal_mode(WAL)", "synchronous(FULL)")...))
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	c := &Conn{db: db, prepared: map[string]*sql.Stmt{}}
	c.SetPatience(10 * time.Second)
	// The first to open a new database changes it to WAL. SQLite refuses others
	// that want the same meanwhile, and does not wait: waiting could be a deadlock.
	err = c.whileBusy(func() (err error) {
		c.Conn, err = db.Conn(context.Background())
		return err
	})
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	if _, err := c.ExecContext(context.Background(), "PRAGMA busy_timeout = 2"); err != nil { // milliseconds; see Begin
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// SetPatience sets how long Begin waits for the write lock of another process, also one
// that waits now. Any goroutine may call it.
func (c *Conn) SetPatience(d time.Duration) { c.patience.Store(int64(d)) }

// Begin waits for the write lock and starts a transaction that holds it. A
// process under load releases the lock only for moments. SQLite would try every
// 100 ms and could miss all of them; Begin tries every 2 ms.
func (c *Conn) Begin() error {
	begin, err := c.prepare("BEGIN IMMEDIATE")
	if err != nil {
		return err
	}
	return c.whileBusy(func() error {
		_, err := begin.ExecContext(context.Background())
		return err
	})
}

// whileBusy repeats what another process's lock refuses, as long as the patience says.
func (c *Conn) whileBusy(try func() error) error {
	for asked := time.Now(); ; {
		err := try()
		if !Is(err, sqlite3.SQLITE_BUSY) || time.Since(asked) > time.Duration(c.patience.Load()) {
			return err
		}
	}
}

// Is reports whether an error is one of SQLite's primary result codes, such as
// lib.SQLITE_BUSY.
// Source: sqlite.org/rescode.html.
func Is(err error, primary int) bool {
	var e *sqlite.Error
	return errors.As(err, &e) && e.Code()&0xff == primary
}

func (c *Conn) prepare(statement string) (*sql.Stmt, error) {
	if s := c.prepared[statement]; s != nil {
		return s, nil
	}
	s, err := c.PrepareContext(context.Background(), statement)
	if err == nil {
		c.prepared[statement] = s
	}
	return s, err
}

// Close releases everything, even if a transaction is open.
func (c *Conn) Close() error {
	var errs []error
	for _, s := range c.prepared {
		errs = append(errs, s.Close())
	}
	return errors.Join(append(errs, c.Conn.Close(), c.db.Close())...)
}
