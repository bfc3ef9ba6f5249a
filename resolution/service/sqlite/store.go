// Package sqlite stores the state of a service in one SQLite database:
// organizations and their credentials, the credit ledger, stored replies,
// keyword jobs and pending callbacks.
//
// The one thing to know before using it: every change goes through one writer
// that commits changes in groups, and a method that changes something returns
// after its group is on disk. A refused change, and one that was interrupted by
// a kill, leaves no trace.
//
// # For operators
//
// A state folder holds service.sqlite and, while a process has it open,
// service.sqlite-wal and service.sqlite-shm. The three belong together. Only
// their owner can read them. API keys are stored only as keyed hashes and
// callback secrets only encrypted, both under a pepper that is kept elsewhere.
// Replies, results and callback bodies are stored as they were sent, from 4 KiB on
// as Zstandard frames.
//
// Any sqlite3 from 3.37 can read the database while the service runs:
//
//	sqlite3 -readonly service.sqlite 'SELECT name, available, reserved FROM organizations'
//
// A copy of the file alone, made while a process has it open, is incomplete.
// Package backup makes copies and restores them.
//
// On a full disk, a read-only folder or a lock held by another process, every
// change returns resolution.ErrUnavailable until the cause is removed. No
// restart is needed. The ledger is append-only: correct an error in it with
// another entry.
package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	driver "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/leadetl/leadetl/internal/disk"
	"github.com/leadetl/leadetl/internal/filelock"
	"github.com/leadetl/leadetl/internal/groupcommit"
	"github.com/leadetl/leadetl/resolution"
)

// DatabaseName is the name of the database file in the state folder.
const DatabaseName = "service.sqlite"

// ErrNoState means that a folder holds no state of a service.
var ErrNoState = errors.New("no service state")

// ErrEmpty means that the state file exists but is empty. Opening it is refused,
// because a service that started with it would have lost all keys and credits.
var ErrEmpty = errors.New("the state is empty, so its contents were lost; put a backup back with leadetl admin restore, or delete the file to begin anew")

// Store is an open state folder. It is safe for concurrent use. Nothing may be
// called after Close.
//
// It is four parts over one database, and the upkeep of all.
type Store struct {
	*Accounts
	*Credits
	*Queue
	*Outbox

	db   *database
	lock *filelock.Lock // nil when opened by Administer
}

// database is what the parts of a store share.
type database struct {
	path   string
	reads  *sql.DB
	writer *groupcommit.Writer[*tx]
}

// Accounts has organizations with their keys and secrets.
type Accounts struct{ db *database }

// Credits has the ledger, the usage, and the replies that are stored with charges.
type Credits struct {
	db    *database
	reply *sql.Stmt // prepared, because it is asked for every call with an Idempotency-Key
}

// Queue has the keyword jobs.
type Queue struct{ db *database }

// Outbox has the callbacks.
type Outbox struct {
	db  *database
	due dueStatements
}

var errClosed = fmt.Errorf("%w: the state is closed", resolution.ErrUnavailable)

// pragmas of the writer: foreign keys are enforced; a REPLACE fires the triggers
// of the ledger too; 16 MiB of pages are cached; the write-ahead log is
// checkpointed after 16 MiB, and cut to that when a long read let it grow.
var pragmas = []string{"foreign_keys(1)", "recursive_triggers(1)", "cache_size(-16384)", "wal_autocheckpoint(4000)", "journal_size_limit(16777216)"}

// incremental makes a new database one that can give pages back to the file system.
// Source: sqlite.org/pragma.html, auto_vacuum.
const incremental = "auto_vacuum(2)"

// Serve opens the state in dir for a service and creates it if it is missing.
// It locks the folder until Close: a second service gets filelock.ErrLocked.
func Serve(dir string) (*Store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	lock, err := filelock.Folder(dir)
	if err != nil {
		return nil, err
	}
	s, err := create(dir)
	if err != nil {
		return nil, errors.Join(err, lock.Release())
	}
	s.lock = lock
	if err := s.syncLog(context.Background()); err != nil {
		return nil, errors.Join(unavailable(err), s.Close())
	}
	return s, nil
}

// syncLog makes durable what can be read. A process that was killed may have written a change
// that it did not sync, and an answer that was read from it would be lost by a power failure.
// A checkpoint syncs the log first, so a full disk does no harm.
func (s *Store) syncLog(ctx context.Context) error {
	_, err := s.db.writer.Conn().ExecContext(ctx, "PRAGMA wal_checkpoint")
	if groupcommit.Is(err, sqlite3.SQLITE_FULL) {
		return nil
	}
	return err
}

// Administer opens the state in dir for an administrator; a service may be
// running on it. For a folder without state it returns ErrNoState, or creates
// the state if create is true.
func Administer(dir string, mayCreate bool) (*Store, error) {
	if mayCreate {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
		return create(dir)
	}
	path := filepath.Join(dir, DatabaseName)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, cmp.Or(lost(path), fmt.Errorf("%s: %w", dir, ErrNoState))
	}
	return open(dir)
}

// create opens the state in dir, and creates it if it is missing. A new database
// gets its final name only when it is complete, so an empty file is never a new
// state.
func create(dir string) (_ *Store, err error) {
	path := filepath.Join(dir, DatabaseName)
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return open(dir)
	}
	if err := lost(path); err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp(dir, ".new-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	made, err := filepath.Abs(filepath.Join(folder, DatabaseName))
	if err == nil {
		err = groupcommit.Create(made)
	}
	if err != nil {
		return nil, err
	}
	w, err := groupcommit.Open(options(made, append([]string{incremental}, pragmas...)), newTx)
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		return nil, fmt.Errorf("make %s: %w", path, err)
	}
	if err := os.Link(made, path); err != nil && !errors.Is(err, fs.ErrExist) { // another process may have made it
		return nil, err
	}
	if err := disk.Dir(dir).Sync(); err != nil {
		return nil, err
	}
	return open(dir)
}

func options(path string, pragmas []string) groupcommit.Options {
	return groupcommit.Options{Path: path, Pragmas: pragmas, Schema: schema, Format: schemaFormat, Advice: otherFormat, Closed: errClosed, Fault: unavailable}
}

func open(dir string) (_ *Store, err error) {
	path, err := filepath.Abs(filepath.Join(dir, DatabaseName))
	if err != nil {
		return nil, err
	}
	db := &database{path: path}
	s := &Store{db: db, Accounts: &Accounts{db}, Credits: &Credits{db: db}, Queue: &Queue{db}, Outbox: &Outbox{db: db}}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close()) // close what is open so far
		}
	}()
	o := options(path, pragmas)
	o.Begun = true
	s.db.writer, err = groupcommit.Open(o, newTx)
	if errors.Is(err, groupcommit.ErrEmpty) {
		return nil, fmt.Errorf("%s: %w", path, ErrEmpty)
	}
	if groupcommit.Is(err, sqlite3.SQLITE_CANTOPEN) || groupcommit.Is(err, sqlite3.SQLITE_READONLY) {
		if refused := refusal(path); refused != nil {
			return nil, refused
		}
	}
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, damaged(err))
	}
	// cache_size: 4 MiB for each connection.
	if s.db.reads, err = sql.Open("sqlite", groupcommit.URI(path, "query_only(1)", "cache_size(-4096)")); err != nil {
		return nil, err
	}
	n := min(max(runtime.GOMAXPROCS(0), 2), 8)
	s.db.reads.SetMaxOpenConns(n)
	s.db.reads.SetMaxIdleConns(n)
	if s.Outbox.due, err = prepareDue(s.db.reads); err == nil {
		s.Credits.reply, err = s.db.reads.Prepare("SELECT fingerprint, status, body FROM replies WHERE key = ? AND at > ?") // closed with reads
	}
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, damaged(err))
	}
	return s, nil
}

// refusal returns why the system does not open a database for changes, in more
// detail than SQLite; nil if it does.
func refusal(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return f.Close()
}

// unavailable marks an error of the database as temporary if it passes when its cause does.
// Any other is a failure of the service.
func unavailable(err error) error {
	switch {
	case err == nil, errors.Is(err, resolution.ErrUnavailable), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case mayPass(err):
		return fmt.Errorf("%w: service state: %w", resolution.ErrUnavailable, err)
	}
	return fmt.Errorf("service state: %w", damaged(err))
}

// mayPass reports whether an error is of a lock, the disk or memory, or that the state is
// being closed. Source: sqlite.org/rescode.html.
func mayPass(err error) bool {
	var e *driver.Error
	if !errors.As(err, &e) {
		return errors.Is(err, sql.ErrConnDone) || strings.HasSuffix(err.Error(), "database is closed") // database/sql has no value for it
	}
	switch e.Code() & 0xff {
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY,
		sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_PROTOCOL, sqlite3.SQLITE_INTERRUPT:
		return true
	}
	return false
}

// Close waits for the changes already requested, and releases all resources.
func (s *Store) Close() error {
	var errs []error
	if s.db.writer != nil {
		errs = append(errs, s.db.writer.Close())
	}
	if s.db.reads != nil {
		errs = append(errs, s.db.reads.Close())
	}
	if s.lock != nil {
		errs = append(errs, s.lock.Release())
	}
	return errors.Join(errs...)
}

// Hurry makes changes wait no longer for the lock of another process than a moment. A
// service that stops calls it.
func (s *Store) Hurry() { s.db.writer.Conn().SetPatience(hurried) }

// hurried is how long a change waits for a lock after Hurry.
const hurried = time.Second

// checkedBytes is as much as calls write: where fewer bytes are left on the disk, a smaller
// change may succeed, and calls fail.
const checkedBytes = 64 << 10

// Check writes to the database and reads from it. The value differs each time,
// because SQLite does not write a value that is already there.
func (s *Store) Check(ctx context.Context) error {
	var written int
	err := s.db.writer.Write(ctx, func(t *tx) error {
		return t.sql.Exec("INSERT OR REPLACE INTO meta VALUES ('checked', randomblob(?))", checkedBytes)
	})
	if err != nil {
		return err
	}
	return unavailable(s.db.reads.QueryRowContext(ctx, "SELECT length(value) FROM meta WHERE name = 'checked'").Scan(&written))
}
