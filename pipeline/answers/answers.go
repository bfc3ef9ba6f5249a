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
	"syscall"
	"time"

	"github.com/leadetl/leadetl/internal/appendlog"
	"github.com/leadetl/leadetl/internal/groupcommit"
	"github.com/leadetl/leadetl/internal/lease"
	"github.com/leadetl/leadetl/internal/longlock"
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

// atMost is how many are handled at a time of what has a usual number.
func (o Options) atMost(usual int) int {
	if o.MaxBatch > 0 {
		return min(usual, o.MaxBatch)
	}
	return usual
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
	*recent
	lock  lease.Lease
	queue *groupcommit.Queue[func(*changeSet) error] // to the log
}

// Open opens the answers in a place. Until Close only this process can open them; others get
// filelock.ErrLocked. Calls that an earlier process left under way become unknown.
func Open(ctx context.Context, p Place, o Options) (_ *Store, err error) {
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
	s.staged = &changeSet{mem: s.memtable, calls: map[Hash]*OpenCall{}, bodies: map[Hash]KeptBody{}}
	s.queue = groupcommit.NewQueue(o.atMost(maxGroup), false, errClosed, s.commit) // not patient: a group is one small write
	return s, nil
}

func newStore(p Place, o Options) *Store {
	o.RowsPerFile, o.Generations, o.LogBytes, o.Segments = cmp.Or(o.RowsPerFile, rowsPerFile), cmp.Or(o.Generations, generations), cmp.Or(o.LogBytes, maxLogBytes), cmp.Or(o.Segments, segments)
	s := &Store{recent: &recent{published: &published{in: p, options: o, making: map[string]bool{}}, log: p.newLog(o), logMu: longlock.New()}}
	s.reset()
	return s
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
