// Package answers stores what runs have bought: every answer of a service, and
// every call that may have cost something and has no answer.
//
// A method that changes something returns after the change is on disk. Call
// Intent before sending a call, and Put, Fail or Park after it. If the process
// dies in between, the next process sees an unknown call.
//
// # For operators
//
// A folder of answers holds these files. Only their owner can read them.
//
//	manifest-N.json    which files count; the one with the highest number does
//	answers-N.keyed    answers as received, sorted by the hash of their question
//	calls-N.keyed      all calls without an answer
//	answers-N.log      changes that are in no file yet, at most 16 MiB of answers and calls
//	answers.allowance  how many calls each run may have begun at most
//
// All but manifests hold personal data: the keys of the questions, and the
// answers as received. The program itself prints the hash of a key instead of
// the key. Files are never changed, only the log grows: a copy of the folder of a process that has
// ended is whole. leadetl answers list, stat and export read it, also during a run.
//
// While the disk is full, every change fails with ErrFull. Nothing stored is
// lost, and no restart is needed afterwards.
package answers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/leadetl/leadetl/internal/appendlog"
	"github.com/leadetl/leadetl/internal/atomicfile"
	"github.com/leadetl/leadetl/internal/disk"
	"github.com/leadetl/leadetl/internal/groupcommit"
	"github.com/leadetl/leadetl/internal/lease"
	"github.com/leadetl/leadetl/internal/longlock"
	"github.com/leadetl/leadetl/resolution"
)

// Exist reports whether a folder holds answers. A kill at the right moment leaves one
// that holds none.
func Exist(dir string) bool { return existIn(disk.Dir(dir)) }

func existIn(in disk.Folder) bool {
	l, err := list(in)
	return err != nil || l.any()
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
	// Disk has the folder of the answers; nil means the file system.
	Disk disk.Folder
	// LogBytes is the size at which a file of the log is full; 0 means 8 MiB. The answers
	// in memory that are not in files take at most about twice this size.
	LogBytes int64
	// RowsPerFile is how many answers a file has at most, and Generations how many generations of
	// files there are before some are merged. 0 means the usual numbers.
	RowsPerFile, Generations int
	// MaxBatch lowers how many changes a group has at most, and how many questions, answers and
	// deletions are handled at a time. 0 leaves the usual numbers.
	MaxBatch int
	// InTurn makes files before the next change, and not beside it: a simulated machine
	// then does the same again.
	InTurn bool
}

// folder is where the answers of dir are kept.
func (o Options) folder(dir string) disk.Folder {
	if o.Disk != nil {
		return o.Disk
	}
	return disk.Dir(dir)
}

// The usual numbers of Options.
const (
	rowsPerFile = 1 << 20
	generations = 8
)

// Store is an open folder of answers. It is safe for concurrent use, except
// that Close must come after the last use. Errors of the disk are
// resolution.ErrUnavailable.
type Store struct {
	options Options
	in      disk.Folder
	lock    lease.Lease

	queue       *groupcommit.Queue[func(*changeSet) error] // to the log
	mem         *memtable
	logMu       longlock.Lock                 // held while the log and mem change
	staged      *changeSet                    // of the current group
	allowance   map[string]runTotal           // runs, with the calls that they may begin
	began       time.Time                     // when the last group began; of the queue's goroutine
	replicate   func(group []byte) error      // nil: changes are not replicated
	leaveBefore func(now time.Time) time.Time // limit for calls of a replicated store
	moving      chan error                    // the result of the move of mem.previous; nil while none runs

	publishing sync.Mutex // held while the manifest changes
	manifest   *manifest
	filesMu    sync.RWMutex    // held for writing while files is replaced
	files      *fileSet        // of the manifest
	lastFile   int64           // the number of the last file that was named; under publishing
	making     map[string]bool // files that are made and in no manifest yet; under publishing
	merging    chan struct{}   // closed at the end of a merge; nil before the first
}

// Open opens the answers in dir. Until Close only this process can open the
// folder; others get filelock.ErrLocked. Calls that an earlier process left
// under way become unknown.
func Open(dir string, o Options) (*Store, error) {
	in := o.folder(dir)
	if o.MustExist {
		if _, err := newest(in); errors.Is(err, ErrNone) {
			return nil, err
		}
	}
	if _, err := in.Make(0o700); err != nil {
		return nil, err
	}
	s := newStore(in, o)
	err := s.open(context.Background())
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", in.Path("."), err), s.Close())
	}
	return s, nil
}

func newStore(in disk.Folder, o Options) *Store {
	o.RowsPerFile, o.Generations, o.LogBytes = cmp.Or(o.RowsPerFile, rowsPerFile), cmp.Or(o.Generations, generations), cmp.Or(o.LogBytes, maxLogBytes)
	return &Store{options: o, in: in, logMu: longlock.New(), mem: newMemtable(), making: map[string]bool{}, manifest: &manifest{Log: logState{Number: appendlog.First.Number}}}
}

// open takes over what an earlier process has left, and starts the queue.
func (s *Store) open(ctx context.Context) (err error) {
	if s.lock, err = s.in.Lock(); err != nil {
		return fmt.Errorf("stored answers: %w", err)
	}
	m, err := newest(s.in)
	switch {
	case err == nil: // a killed process may not have synced its name, and what it replaces is removed
		if s.manifest, err = m, s.in.Sync(); err != nil {
			return fmt.Errorf("stored answers: %w", err)
		}
	case !errors.Is(err, ErrNone):
		return err
	}
	if s.files, err = openFiles(s.in, s.manifest, nil); err != nil {
		return err
	}
	for _, r := range s.manifest.Runs {
		s.mem.runs[r.Name] = r
	}
	calls, err := s.files.readCalls()
	if err != nil {
		return damaged(err)
	}
	for _, c := range calls {
		s.mem.setCall(c.Hash, c)
	}
	if err := s.openLog(ctx); err != nil {
		return err
	}
	s.staged = &changeSet{mem: s.mem, calls: map[Hash]*OpenCall{}, bodies: map[Hash]KeptBody{}}
	s.queue = groupcommit.NewQueue(s.atMost(maxGroup), false, errClosed, s.commit) // not patient: a group is one small write
	return nil
}

// scratch is the folder for temporary files.
func (s *Store) scratch() string {
	if dir, real := s.in.(disk.Dir); real {
		return string(dir)
	}
	return os.TempDir()
}

// atMost is how many are handled at a time of what has a usual number.
func (s *Store) atMost(usual int) int {
	if s.options.MaxBatch > 0 {
		return min(usual, s.options.MaxBatch)
	}
	return usual
}

// acquire returns the files that count now. The caller releases them.
func (s *Store) acquire() (*fileSet, error) {
	s.filesMu.RLock()
	defer s.filesMu.RUnlock()
	if s.files == nil {
		return nil, errClosed
	}
	s.files.users.Add(1)
	return s.files, nil
}

// newest returns the manifest that counts now.
func (s *Store) newest() *manifest {
	s.filesMu.RLock()
	defer s.filesMu.RUnlock()
	return s.manifest
}

// nameData reserves the name of a file of answers or calls that is made.
func (s *Store) nameData(kind string) string {
	s.publishing.Lock()
	defer s.publishing.Unlock()
	s.lastFile = max(s.lastFile, s.manifest.LastFile) + 1
	name := dataName(kind, s.lastFile)
	s.making[name] = true
	return name
}

// publish makes a manifest with a change to it the newest one. made are files that were made for
// it. Until a manifest has been published, the files of the one before it stay.
func (s *Store) publish(made []fileRecord, change func(next *manifest) error) error {
	s.publishing.Lock()
	defer s.publishing.Unlock()
	defer func() {
		for _, f := range made {
			delete(s.making, f.Name)
		}
	}()
	next := s.manifest.clone()
	if err := change(next); err != nil {
		return err
	}
	next.LastFile = max(s.lastFile, next.LastFile)
	opened, err := openFiles(s.in, next, s.files)
	if err != nil {
		return err
	}
	if err := next.write(s.in); err != nil {
		return errors.Join(fault(err), opened.release())
	}
	s.filesMu.Lock()
	before := s.files
	s.manifest, s.files = next, opened
	s.filesMu.Unlock()
	_ = errors.Join(before.release(), s.sweep()) // the next sweep removes what stays
	return nil
}

// publishWith is publish of files of answers that were made, with the open calls as they are behind a
// generation.
func (s *Store) publishWith(ctx context.Context, files []fileRecord, behind *generation, change func(next *manifest)) error {
	calls, err := s.writeCalls(ctx, behind)
	if err != nil {
		s.unmake(files)
		return err
	}
	made := slices.Clone(files)
	if calls != nil {
		made = append(made, *calls)
	}
	return s.publish(made, func(next *manifest) error {
		next.Calls = calls
		change(next)
		return nil
	})
}

// sweep removes manifests and files that do not count any more, and what a kill has left. The caller
// holds publishing.
func (s *Store) sweep() error {
	l, err := list(s.in)
	if err != nil {
		return err
	}
	var gone []string
	for _, name := range slices.Concat(l.left, l.data) {
		final := name
		if atomicfile.IsTemp(name) {
			final = atomicfile.FinalName(name)
		}
		if strings.HasSuffix(final, dataSuffix) && !s.making[final] && !s.manifest.names(name) {
			gone = append(gone, name)
		}
	}
	for _, number := range l.manifests {
		if number < s.manifest.Number {
			gone = append(gone, manifestName(number), copyName(number))
		}
	}
	for _, name := range gone {
		if err := removeIfThere(s.in, name); err != nil {
			return err
		}
	}
	return nil
}

func removeIfThere(in disk.Folder, name string) error {
	if err := in.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Close completes the pending changes and releases all resources.
func (s *Store) Close() error {
	var errs []error
	if s.queue != nil {
		s.queue.Close()
		errs = append(errs, s.closeLog())
		s.awaitMerge()
	} else if s.mem.current.log != nil {
		errs = append(errs, s.mem.current.log.Close())
	}
	s.filesMu.Lock()
	errs = append(errs, s.files.release())
	s.files = nil
	s.filesMu.Unlock()
	if s.lock != nil {
		errs = append(errs, s.lock.Release())
	}
	return errors.Join(errs...)
}

// fault converts an error of the disk to the error for callers.
func fault(err error) error {
	switch {
	case err == nil, errors.Is(err, resolution.ErrUnavailable), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded),
		errors.Is(err, appendlog.ErrDamaged), errors.Is(err, ErrNone):
		return err
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fmt.Errorf("%w: %w: %w", resolution.ErrUnavailable, ErrFull, err)
	}
	return fmt.Errorf("%w: stored answers: %w", resolution.ErrUnavailable, err)
}
