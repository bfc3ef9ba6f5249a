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
// Elsewhere than in a folder, such as on S3, a log has an object for each group of changes, log/N, and late/
// has what came too late for it.
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
	"maps"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/leadetl/leadetl/internal/appendlog"
	"github.com/leadetl/leadetl/internal/atomicfile"
	"github.com/leadetl/leadetl/internal/groupcommit"
	"github.com/leadetl/leadetl/internal/lease"
	"github.com/leadetl/leadetl/internal/longlock"
	"github.com/leadetl/leadetl/internal/store"
	"github.com/leadetl/leadetl/resolution"
)

// Exist reports whether a place holds answers. A kill at the right moment leaves one
// that holds none.
func Exist(ctx context.Context, p Place) bool {
	l, err := p.list(ctx)
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
	// MustExist makes Open return ErrNone for a place without answers. Without
	// it, Open creates a store there.
	MustExist bool
	// Look opens a place without its lease, and writes nothing: changes are in memory alone. Others may have the
	// place open.
	Look bool
	// LogBytes is the size of the log at which its changes move into files; 0 means 8 MiB. The answers
	// in memory that are not in files take at most about twice this size. In a shared place they also move after
	// so many Segments; 0 means 5,000.
	LogBytes, Segments int64
	// RowsPerFile is how many answers a file has at most, and Generations how many generations of
	// files there are before some are merged. 0 means the usual numbers.
	RowsPerFile, Generations int
	// MaxBatch lowers how many changes a group has at most, and how many questions, answers and
	// deletions are handled at a time. 0 leaves the usual numbers.
	MaxBatch int
	// LeaveBefore says until when a call may be sent whose intent is requested now; nil is any time.
	LeaveBefore func(now time.Time) time.Time
	// InTurn makes files before the next change, and not beside it: a simulated machine
	// then does the same again.
	InTurn bool
}

// The usual numbers of Options.
const (
	rowsPerFile = 1 << 20
	generations = 8
	segments    = 5000
)

// Store is an open place of answers. It is safe for concurrent use, except
// that Close must come after the last use. Errors of the disk are
// resolution.ErrUnavailable.
type Store struct {
	options Options
	in      Place
	lock    lease.Lease
	log     changeLog

	queue  *groupcommit.Queue[func(*changeSet) error] // to the log
	mem    *memtable
	logMu  longlock.Lock // held while the log and mem change
	staged *changeSet    // of the current group
	began  time.Time     // when the last group began; of the queue's goroutine
	moving chan error    // the result of the move of mem.previous; nil while none runs

	publishing sync.Mutex // held while the manifest changes
	manifest   *manifest
	filesMu    sync.RWMutex    // held for writing while files is replaced
	files      *fileSet        // of the manifest
	lastFile   int64           // the number of the last file that was named; under publishing
	making     map[string]bool // files that are made and in no manifest yet; under publishing
	merging    chan struct{}   // closed at the end of a merge; nil before the first
}

// Open opens the answers in a place. Until Close only this process can open them; others get
// filelock.ErrLocked. Calls that an earlier process left under way become unknown.
func Open(ctx context.Context, p Place, o Options) (_ *Store, err error) {
	if o.MustExist {
		if _, err := newest(ctx, p); errors.Is(err, ErrNone) {
			return nil, err
		}
	}
	s := newStore(p, o)
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("open %s: %w", p, err), s.Close())
		}
	}()
	if o.Look {
		err = s.look(ctx)
	} else if s.lock, err = p.lease(ctx); err != nil {
		err = fmt.Errorf("stored answers: %w", err)
	} else {
		err = s.takeOver(ctx)
	}
	if err != nil {
		return nil, err
	}
	s.staged = &changeSet{mem: s.mem, calls: map[Hash]*OpenCall{}, bodies: map[Hash]KeptBody{}}
	s.queue = groupcommit.NewQueue(s.atMost(maxGroup), false, errClosed, s.commit) // not patient: a group is one small write
	return s, nil
}

func newStore(p Place, o Options) *Store {
	o.RowsPerFile, o.Generations, o.LogBytes, o.Segments = cmp.Or(o.RowsPerFile, rowsPerFile), cmp.Or(o.Generations, generations), cmp.Or(o.LogBytes, maxLogBytes), cmp.Or(o.Segments, segments)
	s := &Store{options: o, in: p, log: p.newLog(o), logMu: longlock.New(), making: map[string]bool{}}
	s.reset()
	return s
}

// reset drops what was read of the place.
func (s *Store) reset() {
	s.mem, s.manifest = newMemtable(), &manifest{Log: logState{Number: appendlog.First.Number}}
}

// takeOverTries bounds how often takeOver begins again.
const takeOverTries = 5

// takeOver takes over what earlier processes have left. In a shared place, one of them may still publish a
// manifest with what it had in the log: then it begins again.
func (s *Store) takeOver(ctx context.Context) error {
	for tries := 1; ; tries++ {
		err := s.tryTakeOver(ctx)
		if err == nil || !s.in.isShared() || tries == takeOverTries {
			return err
		}
		seen := s.manifest.Number
		now, other := newest(ctx, s.in)
		if other != nil || now.Number == seen && !errors.Is(err, errLogMoved) {
			return err
		}
		if err := s.files.release(); err != nil {
			return err
		}
		s.files = nil
		s.reset()
	}
}

func (s *Store) tryTakeOver(ctx context.Context) (err error) {
	if err := s.readNewest(ctx); err != nil {
		return err
	}
	if s.manifest.Number > 0 && s.in.disk != nil { // a killed process may not have synced its name, and what it replaces is removed
		if err := s.in.disk.Sync(); err != nil {
			return err
		}
	}
	fence, err := s.log.takeOver(ctx, s.manifest.Log)
	if err == nil && fence > 0 {
		err = s.readNewest(ctx)
	}
	if err != nil {
		return err
	}
	if s.files, err = openFiles(ctx, s.in, s.manifest, nil); err != nil {
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
	return s.takeLog(ctx)
}

// look reads what is in the place, for changes in memory.
func (s *Store) look(ctx context.Context) error {
	c, err := lookInto(ctx, s.in)
	if errors.Is(err, ErrNone) {
		s.files, err = openFiles(ctx, s.in, s.manifest, nil)
		return err
	}
	if err != nil {
		return err
	}
	s.files, s.manifest.Days, s.mem.current = c.files, c.days, c.later
	s.manifest.Runs = c.runs
	for h, call := range c.calls {
		s.mem.setCall(h, call.abandoned())
	}
	for _, r := range c.runs {
		s.mem.runs[r.Name] = r
	}
	maps.Copy(s.mem.runs, c.later.runs)
	s.mem.current.number = s.manifest.Log.Number
	return nil
}

// readNewest reads the newest manifest, if there is one.
func (s *Store) readNewest(ctx context.Context) error {
	m, err := newest(ctx, s.in)
	switch {
	case err == nil:
		s.manifest = m
	case !errors.Is(err, ErrNone):
		return err
	}
	return nil
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
	name := s.in.dataName(kind, s.lastFile)
	s.making[name] = true
	return name
}

// publish makes a manifest with a change to it the newest one. made are files that were made for
// it. Until a manifest has been published, the files of the one before it stay.
func (s *Store) publish(ctx context.Context, made []fileRecord, change func(next *manifest) error) error {
	s.publishing.Lock()
	defer s.publishing.Unlock()
	defer func() {
		for _, f := range made {
			delete(s.making, f.Name)
		}
	}()
	next := s.manifest.clone()
	next.Writer = s.in.writer
	if err := change(next); err != nil {
		return err
	}
	next.LastFile = max(s.lastFile, next.LastFile)
	opened, err := openFiles(ctx, s.in, next, s.files)
	if err != nil {
		return err
	}
	if err := next.write(ctx, s.in); err != nil {
		return errors.Join(fault(err), opened.release())
	}
	s.filesMu.Lock()
	before := s.files
	s.manifest, s.files = next, opened
	s.filesMu.Unlock()
	_ = before.release() // closing what was read cannot lose anything
	if err := s.sweep(ctx, keptUnnamed); errors.Is(err, store.ErrFenced) {
		return err
	}
	return nil // the next sweep removes what stays
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
	return s.publish(ctx, made, func(next *manifest) error {
		next.Calls = calls
		change(next)
		return nil
	})
}

// keptManifests is how many manifests stay in a shared place: who began to read earlier may need one, and a
// list that is late must not make a place look empty.
const keptManifests = 100

// sweep removes manifests and files that do not count any more, and what a kill has left; in a shared place, only
// those that are older than kept. The error is store.ErrFenced if another process has published a newer
// manifest. The caller holds publishing.
func (s *Store) sweep(ctx context.Context, kept time.Duration) error {
	l, err := s.in.list(ctx)
	if err != nil {
		return err
	}
	most, since := int64(0), time.Time{} // files that are newer stay; zero: none do, whatever the clock of the place says
	if s.in.isShared() {
		if n := len(l.manifests); n > 0 && l.manifests[n-1] > s.manifest.Number {
			return fmt.Errorf("%s: %w", s.in.Path(manifestName(l.manifests[n-1])), store.ErrFenced)
		}
		if kept > 0 {
			most, since = keptManifests, time.Now().Add(-kept)
		}
	}
	var gone []string
	for _, info := range slices.Concat(l.left, l.data) {
		final := info.Name
		if store.IsUnfinished(info.Name) {
			final = atomicfile.FinalName(info.Name)
		}
		if strings.HasSuffix(final, dataSuffix) && !s.making[final] && !s.manifest.names(info.Name) && (since.IsZero() || !info.ModTime.After(since)) {
			gone = append(gone, info.Name)
		}
	}
	for _, number := range l.manifests {
		if number < s.manifest.Number-most {
			gone = append(gone, manifestName(number), copyName(number))
		}
	}
	return s.in.Remove(ctx, gone...)
}

// Close completes the pending changes and releases all resources.
func (s *Store) Close() error {
	var errs []error
	if s.queue != nil {
		s.queue.Close()
		if !s.options.Look {
			errs = append(errs, s.closeLog())
		}
		s.awaitMerge()
	} else {
		errs = append(errs, s.log.close(false))
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
