// Package answers stores what runs have bought: every answer of a service, and
// every call that may have cost something and has no answer.
//
// A method that changes something returns after the change is on disk. Call
// Intent before sending a call, and Put, Fail or Park after it. If the process
// dies in between, the next process sees an unknown call.
//
// # For operators
//
// A folder of answers holds answers.sqlite. While a process has it open, it
// also holds answers-N.log, which receives changes first, answers.sqlite-wal
// and answers.sqlite-shm. All these files belong together. Only their owner can
// read them. They hold personal data: the keys of the questions, and the
// answers as received. The program itself prints the hash of a key instead of
// the key.
//
// Any sqlite3 from 3.37 reads the database. During a run the database lacks
// what is still in the log, at most 16 MiB. Close and the next Open move the
// log into the database:
//
//	sqlite3 -readonly answers.sqlite 'SELECT outcome, count(*), sum(credits) FROM answered GROUP BY 1'
//	sqlite3 -readonly answers.sqlite 'SELECT key_hash, idempotency_key, request_id FROM open_calls'
//
// While the disk is full, every change fails with ErrFull. Nothing stored is
// lost, and no restart is needed afterwards.
package answers

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
	"syscall"
	"time"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/leadetl/leadetl/internal/appendlog"
	"github.com/leadetl/leadetl/internal/disk"
	"github.com/leadetl/leadetl/internal/filelock"
	"github.com/leadetl/leadetl/internal/groupcommit"
	"github.com/leadetl/leadetl/internal/longlock"
	"github.com/leadetl/leadetl/resolution"
)

// databaseName is the database's file in its folder.
const databaseName = "answers.sqlite"

// Exist reports whether a folder holds answers. A kill at the right moment leaves one
// that holds none.
func Exist(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, databaseName))
	return !errors.Is(err, fs.ErrNotExist)
}

// ErrNone means that a folder holds no answers.
var ErrNone = errors.New("no stored answers")

// ErrFull means that the disk is full. Such an error is also a
// resolution.ErrUnavailable, because it may be temporary.
var ErrFull = errors.New("the disk with the stored answers is full")

var errClosed = fmt.Errorf("%w: the stored answers are closed", resolution.ErrUnavailable)

// Options are the settings of Open. The zero value is the usual choice.
type Options struct {
	// MustExist makes Open return ErrNone for a folder without answers. Without
	// it, Open creates a store there.
	MustExist bool
	// Readers is how many Lookups run concurrently; others wait. 0 means one
	// per processor, at least 2 and at most 8.
	Readers int
	// Logs is where the log is kept; nil means in the folder of the answers.
	Logs disk.Folder
	// LogBytes is the size at which a file of the log is full; 0 means 8 MiB. The answers
	// in memory that are not in the database take at most about twice this size.
	LogBytes int64
	// MaxBatch lowers how many changes a group has at most, and how many questions, answers and
	// deletions are handled at a time. 0 leaves the usual numbers.
	MaxBatch int

	repair bool // an empty database beside a log is filled from it
}

// logs is where the log of the answers in a folder is kept.
func (o Options) logs(dir string) disk.Folder {
	if o.Logs != nil {
		return o.Logs
	}
	return disk.Dir(dir)
}

// errNoWAL means that the end of the database is missing, which has what the log refers to.
var errNoWAL = fmt.Errorf("%s is %w: it is empty, and a log is beside it: is %s-wal missing?", databaseName, appendlog.ErrDamaged, databaseName)

// Store is an open folder of answers. It is safe for concurrent use, except
// that Close must come after the last use. Database errors are
// resolution.ErrUnavailable.
type Store struct {
	lock    *filelock.Lock
	reads   *sql.DB
	readers readerPool
	writer  *groupcommit.Writer[*sqliteTx] // to the database
	names   *rowNames

	queue       *groupcommit.Queue[func(*changeSet) error] // to the log
	logs        disk.Folder
	maxLogBytes int64
	maxBatch    int // Options.MaxBatch
	mem         *memtable
	logMu       longlock.Lock                 // held while the log and mem change
	staged      *changeSet                    // of the current group
	allowance   map[int64]runTotal            // runs, with the calls that they may begin
	began       time.Time                     // when the last group began; of the queue's goroutine
	replicate   func(group []byte) error      // nil: changes are not replicated
	leaveBefore func(now time.Time) time.Time // limit for calls of a replicated store
	moving      chan error                    // the result of the move of mem.previous; nil while none runs
}

// pragmas are the settings of the writer: deleted content is overwritten; 16
// MiB of pages stay in memory; the write-ahead log moves into the database
// after 64 MiB. Keys come in random order, so it is best to write a page of
// keys once for many changes.
var pragmas = []string{"foreign_keys(0)", "secure_delete(1)", "cache_size(-16384)", "wal_autocheckpoint(16000)"}

// Open opens the answers in dir. Until Close only this process can open the
// folder; others get filelock.ErrLocked. Calls that an earlier process left
// under way become unknown.
func Open(dir string, o Options) (*Store, error) {
	path, err := filepath.Abs(filepath.Join(dir, databaseName))
	if err != nil {
		return nil, err
	}
	if o.MustExist {
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%s: %w", dir, ErrNone)
		}
	} else if _, err := disk.Dir(dir).Make(0o700); err != nil {
		return nil, err
	}
	s, err := openDatabase(dir, path, o)
	if err != nil {
		return nil, err
	}
	if err := s.load(context.Background()); err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", path, err), s.Close())
	}
	return s, nil
}

// openDatabase locks the folder and opens the database. The log is as it was left.
func openDatabase(dir, path string, o Options) (_ *Store, err error) {
	s := &Store{names: newRowNames(), logMu: longlock.New(), logs: o.logs(filepath.Dir(path)), maxLogBytes: cmp.Or(o.LogBytes, maxLogBytes), maxBatch: o.MaxBatch}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close()) // what is open so far
		}
	}()
	if s.lock, err = filelock.Folder(dir); err != nil {
		return nil, fmt.Errorf("stored answers: %w", err)
	}
	logs, err := logsIn(s.logs)
	if err != nil {
		return nil, err
	}
	if len(logs) > 0 && !Exist(dir) {
		return nil, fmt.Errorf("stored answers: %w", appendlog.Missing(path))
	}
	// Without the sync a power failure could remove the database file.
	if err := errors.Join(groupcommit.Create(path), disk.Dir(dir).Sync()); err != nil {
		return nil, err
	}
	s.writer, err = groupcommit.Open(groupcommit.Options{
		Path: path, Pragmas: pragmas, Schema: schema, Format: schemaFormat, Advice: ExportFirst, Begun: len(logs) > 0 && !o.repair, Closed: errClosed, Fault: fault,
	}, func(t *groupcommit.Tx) *sqliteTx { return newSQLiteTx(t, s.atMost(maxHeldAnswers)) })
	if errors.Is(err, groupcommit.ErrEmpty) {
		err = errNoWAL
	}
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	n := o.Readers
	if n == 0 {
		n = min(max(runtime.GOMAXPROCS(0), 2), 8)
	}
	if s.readers, err = openReaders(path, n); err != nil {
		return nil, err
	}
	if s.reads, err = sql.Open("sqlite", groupcommit.URI(path, "query_only(1)")); err != nil {
		return nil, err
	}
	return s, nil
}

// atMost is how many are handled at a time of what has a usual number.
func (s *Store) atMost(usual int) int {
	if s.maxBatch > 0 {
		return min(usual, s.maxBatch)
	}
	return usual
}

// load takes over the changes of an earlier process, and starts the queue.
func (s *Store) load(ctx context.Context) error {
	if err := s.writer.Write(ctx, (*sqliteTx).loadLastSeq); err != nil {
		return err
	}
	if err := s.openLog(ctx); err != nil {
		return err
	}
	if err := s.loadCalls(ctx); err != nil {
		return err
	}
	s.staged = &changeSet{mem: s.mem, ids: s.names, calls: map[Hash]*call{}, bodies: map[Hash]KeptBody{}, scopes: map[int64]Scope{}, runs: map[int64]runTotal{}}
	s.queue = groupcommit.NewQueue(s.atMost(maxGroup), false, errClosed, s.commit) // not patient: a group is one small write
	return nil
}

// Close completes the pending changes and releases all resources.
func (s *Store) Close() error {
	var errs []error
	if s.queue != nil {
		s.queue.Close()
		errs = append(errs, s.closeLog())
	} else if s.mem != nil {
		errs = append(errs, s.mem.current.log.Close())
	}
	if s.writer != nil {
		errs = append(errs, s.writer.Close())
	}
	if s.readers != nil {
		errs = append(errs, s.readers.close(cap(s.readers)))
	}
	if s.reads != nil {
		errs = append(errs, s.reads.Close())
	}
	if s.lock != nil {
		errs = append(errs, s.lock.Release())
	}
	return errors.Join(errs...)
}

// fault converts a database error to the error for callers.
func fault(err error) error {
	switch {
	case err == nil, errors.Is(err, resolution.ErrUnavailable), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case groupcommit.Is(err, sqlite3.SQLITE_FULL), errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fmt.Errorf("%w: %w: %w", resolution.ErrUnavailable, ErrFull, err)
	}
	return fmt.Errorf("%w: stored answers: %w", resolution.ErrUnavailable, err)
}
