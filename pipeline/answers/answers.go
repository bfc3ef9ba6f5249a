// Package answers keeps what a run has bought: every answer of a service, and
// every call that may have cost something and has none.
//
// The one thing to know before using it: a method that changes something
// returns after the change is on disk. Intent comes before the call leaves,
// and one of Put, Fail and Park after it; what was between the two when the
// process died is an unknown call for the next one.
//
// # For operators
//
// A folder of answers holds answers.sqlite, and beside it answers-N.log, to
// which changes go first, and answers.sqlite-wal and answers.sqlite-shm while a
// process has it open: they all belong together. They are readable for their
// owner alone, and hold personal data: the keys that were asked about, and the
// answers as they were received. What this program prints of them names a key
// by its hash.
//
// Any sqlite3 from 3.37 reads it, also during a run, when it does not yet have
// what is in the log, the last 16 MiB at most. Close and the next Open bring
// that in:
//
//	sqlite3 -readonly answers.sqlite 'SELECT outcome, count(*), sum(credits) FROM answered GROUP BY 1'
//	sqlite3 -readonly answers.sqlite 'SELECT key_hash, idempotency_key, request_id FROM open_calls'
//
// A full disk is ErrFull for each change until there is space again; nothing
// has to be restarted, and what was stored stays.
package answers

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/leadetl/leadetl/internal/appendlog"
	"github.com/leadetl/leadetl/internal/atomicfile"
	"github.com/leadetl/leadetl/internal/filelock"
	"github.com/leadetl/leadetl/internal/groupcommit"
	"github.com/leadetl/leadetl/resolution"
)

// databaseName is the database's file in its folder.
const databaseName = "answers.sqlite"

// ErrNone says that a folder holds no answers.
var ErrNone = errors.New("no stored answers")

// ErrFull says that the disk is full. It is resolution.ErrUnavailable too: it
// may pass.
var ErrFull = errors.New("the disk with the stored answers is full")

var errClosed = fmt.Errorf("%w: the stored answers are closed", resolution.ErrUnavailable)

// Options say how a store is opened. The zero value is the usual way.
type Options struct {
	// MustExist makes a folder without answers ErrNone; else it gets a store.
	MustExist bool
	// Readers is how many Lookups work at once, others wait; 0 is one for each
	// processor, at least 2 and at most 8.
	Readers int
}

// Store is an open folder of answers. It is safe from many goroutines; Close
// must come after the last use. Errors of the database are
// resolution.ErrUnavailable.
type Store struct {
	dir     string
	lock    *filelock.Lock
	reads   *sql.DB
	readers readers
	writer  *groupcommit.Writer[*group] // of the database
	scopes  sync.Map                    // Scope: the number of its row
	runs    sync.Map                    // name: the number of its row

	queue     *groupcommit.Queue[func(*changes) error] // to the log
	createLog func(path string) (*appendlog.Log, error)
	mostLog   int64
	recent    *recent
	changing  sync.Mutex // held while the log and what it holds are changed
	staged    *changes   // of the present group
	moving    chan error // what the old generation's move comes to; nil when none is
}

// pragmas of the writer: what is deleted is overwritten; 16 MiB of pages are
// kept in memory; and the log goes back into the database after 64 MiB, for
// keys come in random order and a page of them is best written once for many.
var pragmas = []string{"foreign_keys(0)", "secure_delete(1)", "cache_size(-16384)", "wal_autocheckpoint(16000)"}

// Open opens the answers in dir. The folder is this process's alone until
// Close: another gets filelock.ErrLocked. What another process left under way
// is unknown from here on.
func Open(dir string, o Options) (_ *Store, err error) {
	path, err := filepath.Abs(filepath.Join(dir, databaseName))
	if err != nil {
		return nil, err
	}
	if o.MustExist {
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%s: %w", dir, ErrNone)
		}
	} else if _, err := atomicfile.MakeFolders(dir, 0o700); err != nil {
		return nil, err
	}
	s := &Store{dir: filepath.Dir(path), createLog: appendlog.Create, mostLog: mostLog}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close()) // what is open so far
		}
	}()
	if s.lock, err = filelock.Folder(dir); err != nil {
		return nil, fmt.Errorf("stored answers: %w", err)
	}
	if err := errors.Join(groupcommit.Create(path), atomicfile.SyncDir(dir)); err != nil { // or a power cut could take the file
		return nil, err
	}
	s.writer, err = groupcommit.Open(groupcommit.Options{
		Path: path, Pragmas: pragmas, Migrations: migrations, Closed: errClosed, Fault: fault,
	}, newGroup)
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
	if err := s.begin(context.Background()); err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	return s, nil
}

// begin goes on from where an earlier process ended.
func (s *Store) begin(ctx context.Context) error {
	if err := s.writer.Write(ctx, (*group).count); err != nil {
		return err
	}
	next, err := s.replay(ctx)
	if err != nil {
		return err
	}
	if err := s.writer.Write(ctx, (*group).disown); err != nil {
		return err
	}
	s.recent = &recent{calls: map[Hash]*call{}, parked: map[promise]Hash{}, young: s.newGeneration(next)}
	if err := s.loadCalls(ctx); err != nil {
		return err
	}
	s.staged = &changes{recent: s.recent, staged: map[Hash]*call{}}
	s.queue = groupcommit.NewQueue(false, errClosed, s.commit) // a group is one small write
	return nil
}

// Close makes the changes already asked for and gives everything back.
func (s *Store) Close() error {
	var errs []error
	if s.queue != nil {
		s.queue.Close()
		errs = append(errs, s.flush())
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
		errs = append(errs, s.lock.Close())
	}
	return errors.Join(errs...)
}

// fault is what callers get for an error of the database.
func fault(err error) error {
	switch {
	case err == nil, errors.Is(err, resolution.ErrUnavailable), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case groupcommit.Is(err, sqlite3.SQLITE_FULL), errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fmt.Errorf("%w: %w: %w", resolution.ErrUnavailable, ErrFull, err)
	}
	return fmt.Errorf("%w: stored answers: %w", resolution.ErrUnavailable, err)
}

// scope finds or makes a scope's row. A row made is on disk, so its number
// holds whatever becomes of the groups that use it.
func (s *Store) scope(ctx context.Context, of Scope) (int64, error) {
	return intern(ctx, s, &s.scopes, of, "SELECT id FROM scopes WHERE service = ? AND operation = ? AND settings = ?",
		"INSERT INTO scopes(service, operation, settings) VALUES (?, ?, ?)", of.Service, string(of.Operation), of.Settings)
}

func (s *Store) run(ctx context.Context, name string) (int64, error) {
	return intern(ctx, s, &s.runs, name, "SELECT id FROM runs WHERE name = ?", "INSERT INTO runs(name) VALUES (?)", name)
}

func intern(ctx context.Context, s *Store, known *sync.Map, what any, find, insert string, args ...any) (id int64, err error) {
	if id, ok := known.Load(what); ok {
		return id.(int64), nil
	}
	err = s.writer.Write(ctx, func(g *group) error {
		found, err := g.Row(find, args, &id)
		if err == nil && !found {
			id, err = g.Insert(insert, args...)
		}
		return err
	})
	if err == nil {
		known.Store(what, id)
	}
	return id, err
}
