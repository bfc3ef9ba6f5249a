// Package sqlite keeps everything a service must not forget, in one SQLite
// database: organizations and their credentials, the credit ledger, stored
// replies, keyword jobs and callbacks under way.
//
// The one thing to know before using it: every change goes through one writer
// that commits changes in groups, and a method that changes something returns
// after its group is on disk. What a method refused, and what was under way
// when the process was killed, left nothing behind.
//
// # For operators
//
// A state folder holds service.sqlite, and beside it service.sqlite-wal and
// service.sqlite-shm while a process has it open: all three belong together.
// They are readable for their owner alone. API keys are in it only as keyed
// hashes and callback secrets only encrypted, both under a pepper that is no
// part of it; replies, results and callback bodies are in it as they were sent.
//
// Any sqlite3 from 3.37 reads it, also while the service runs:
//
//	sqlite3 -readonly service.sqlite 'SELECT name, available, reserved FROM organizations'
//	sqlite3 service.sqlite '.backup copy.sqlite'
//
// The backup above is whole; a copy of the file alone, made while a process
// has it open, is not. Put a copy in place only when no process has the folder
// open, and without the -wal and -shm files of what was there before.
//
// A full disk, a folder that became read-only or a lock that another process
// keeps is resolution.ErrUnavailable for each change until it passes; nothing
// has to be restarted. The ledger cannot be changed by ordinary statements:
// an error in it is put right with another line.
package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"github.com/leadetl/leadetl/internal/filelock"
	"github.com/leadetl/leadetl/internal/groupcommit"
	"github.com/leadetl/leadetl/resolution"
)

// databaseName is the database's file in the state folder.
const databaseName = "service.sqlite"

// ErrNoState says that a folder holds no service's state.
var ErrNoState = errors.New("no service state")

// Store is an open state folder. It is safe from many goroutines; Close must
// come after the last use.
type Store struct {
	lock   *filelock.Lock // nil for an administrator
	reads  *sql.DB
	writer *groupcommit.Writer[*tx]
}

var errClosed = fmt.Errorf("%w: the state is closed", resolution.ErrUnavailable)

// pragmas of the writer: references hold, and the ledger's triggers also
// against a REPLACE; 16 MiB of pages are kept in memory; and the log goes back
// into the database after 16 MiB.
var pragmas = []string{"foreign_keys(1)", "recursive_triggers(1)", "cache_size(-16384)", "wal_autocheckpoint(4000)"}

// Serve opens the state in dir for a service, making it where there is none.
// The folder is the service's alone until Close: a second one gets
// filelock.ErrLocked.
func Serve(dir string) (*Store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	lock, err := filelock.Folder(dir)
	if err != nil {
		return nil, err
	}
	s, err := open(dir)
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	s.lock = lock
	return s, nil
}

// Administer opens the state in dir beside a service that may be running. A
// folder without state is ErrNoState, unless create makes it one.
func Administer(dir string, create bool) (*Store, error) {
	if create {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
	} else if _, err := os.Stat(filepath.Join(dir, databaseName)); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: %w", dir, ErrNoState)
	}
	return open(dir)
}

func open(dir string) (_ *Store, err error) {
	path, err := filepath.Abs(filepath.Join(dir, databaseName))
	if err != nil {
		return nil, err
	}
	if err := groupcommit.Create(path); err != nil {
		return nil, err
	}
	s := &Store{}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close()) // what is open so far
		}
	}()
	s.writer, err = groupcommit.Open(groupcommit.Options{
		Path: path, Pragmas: pragmas, Migrations: migrations, Closed: errClosed, Fault: unavailable,
	}, newTx)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	// cache_size: 4 MiB for each connection.
	if s.reads, err = sql.Open("sqlite", groupcommit.URI(path, "query_only(1)", "cache_size(-4096)")); err != nil {
		return nil, err
	}
	n := min(max(runtime.GOMAXPROCS(0), 2), 8)
	s.reads.SetMaxOpenConns(n)
	s.reads.SetMaxIdleConns(n)
	if err := s.reads.Ping(); err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	return s, nil
}

// unavailable marks an error of the database as one that may pass.
func unavailable(err error) error {
	if err == nil || errors.Is(err, resolution.ErrUnavailable) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return fmt.Errorf("%w: service state: %w", resolution.ErrUnavailable, err)
}

// Close ends the writer after the changes already asked for, and gives
// everything back.
func (s *Store) Close() error {
	var errs []error
	if s.writer != nil {
		errs = append(errs, s.writer.Close())
	}
	if s.reads != nil {
		errs = append(errs, s.reads.Close())
	}
	if s.lock != nil {
		errs = append(errs, s.lock.Close())
	}
	return errors.Join(errs...)
}

// Ping reads from the database: it says whether the state can be used.
func (s *Store) Ping(ctx context.Context) error {
	var one int
	return unavailable(s.reads.QueryRowContext(ctx, "SELECT 1 FROM meta LIMIT 1").Scan(&one))
}
