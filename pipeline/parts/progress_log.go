package parts

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/sourcegraph/conc/pool"

	"github.com/leadetl/leadetl/internal/longlock"
	"github.com/leadetl/leadetl/pipeline/begin"
	"github.com/leadetl/leadetl/pipeline/report"
	"github.com/leadetl/leadetl/sinks"
)

// Log is what a run has done: the existing parts, and the journal that
// records them. Nothing else changes during a run.
//
// A part counts as soon as it is published and recorded. Only the manifest
// needs the checksum. Where it was not taken while the part was written, it
// follows when enough parts are waiting to be read in parallel.
type Log struct {
	decision *begin.Decision
	// beginJournalOnce prepares the journal before the first part is begun, and
	// marks a finished dataset as unfinished. A dataset that is only improved
	// stays finished until a part is replaced: a run that gets no answers
	// leaves it unchanged.
	beginJournalOnce func() error
	// withdrawOnce marks a finished dataset as unfinished before its first part
	// is replaced.
	withdrawOnce func() error

	mu       sync.Mutex
	parts    map[int]sinks.Part // of earlier runs and of this one
	unsummed []int              // published parts that wait for their checksum
	fresh    sinks.Totals
	made     int
	withdrew bool
}

// NewLog returns the log of a run that has done nothing yet.
func NewLog(d *begin.Decision) *Log {
	l := &Log{decision: d, parts: map[int]sinks.Part{}}
	l.beginJournalOnce = longlock.Once(l.beginJournal)
	l.withdrawOnce = longlock.Once(l.withdraw)
	return l
}

// BeginJournal stores the header, and the parts of a finished dataset that need not be
// made again. From then on the dataset is unfinished. Later calls do nothing.
func (l *Log) BeginJournal() error { return l.beginJournalOnce() }

func (l *Log) beginJournal() error {
	d := l.decision
	if d.Windowed {
		return nil
	}
	fingerprint := ""
	if lists := d.Run.Suppression; lists != nil {
		fingerprint = lists.Fingerprint()
		if err := d.Journal.KeepLists(fingerprint, lists.Encode); err != nil {
			return err
		}
	}
	if err := d.Journal.Begin(d.Header, d.Recorded); err != nil {
		return err
	}
	if err := d.Journal.DropLists(fingerprint); err != nil || d.Finished == nil {
		return err
	}
	if onlyImproved := d.Improving && !d.Damaged && d.SameInputs(); onlyImproved {
		return nil
	}
	return l.withdrawOnce()
}

// Withdraw marks a finished dataset as unfinished. What is recorded stays.
func (l *Log) Withdraw() error { return errors.Join(l.beginJournalOnce(), l.withdrawOnce()) }

func (l *Log) withdraw() error {
	if l.decision.Finished == nil || l.decision.Windowed {
		return nil
	}
	l.mu.Lock()
	l.withdrew = true
	l.mu.Unlock()
	return l.decision.Run.Output.Withdraw()
}

// Keep adds a part that an earlier run made.
func (l *Log) Keep(number int, p sinks.Part) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.parts[number] = p
	if !p.Summed() {
		l.unsummed = append(l.unsummed, number)
	}
}

// KeepMade adds a part that another process of this run made.
func (l *Log) KeepMade(number int, p sinks.Part) {
	l.Keep(number, p)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fresh.Add(p.Totals)
	l.made++
}

// record adds a part that this run made to the journal.
func (l *Log) record(ctx context.Context, number int, p sinks.Part) error {
	run := l.decision.Run
	if err := l.decision.Journal.Record(number, p); err != nil {
		return fmt.Errorf("record %s: %w", p.Name, err)
	}
	l.mu.Lock()
	l.parts[number] = p
	l.fresh.Add(p.Totals)
	l.made++
	l.mu.Unlock()
	run.Progress.CountPart()
	run.Log.Debug("part published", "part", p.Name, "rows", p.Rows, "bytes", p.Bytes)
	if p.Summed() { // known before it was published
		return nil
	}
	return l.sum(ctx, l.awaitSum(number))
}

// awaitSum notes a part without a checksum. When enough parts are waiting, it
// returns them, and the caller sums them.
func (l *Log) awaitSum(number int) (full []int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.unsummed = append(l.unsummed, number)
	if len(l.unsummed) < sinks.SumLanes {
		return nil
	}
	full, l.unsummed = l.unsummed, nil
	return full
}

// SumRest sums the remaining parts at the end of a run, unless it was interrupted.
// Each worker takes an equal share.
func (l *Log) SumRest(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	l.mu.Lock()
	rest := l.unsummed
	l.unsummed = nil
	l.mu.Unlock()
	slices.Sort(rest)
	workers := l.decision.Run.Workers
	p := pool.New().WithContext(ctx).WithCancelOnError().WithFirstError()
	share := (len(rest) + workers - 1) / workers
	for from := 0; from < len(rest); from += share {
		p.Go(func(ctx context.Context) error { return l.sum(ctx, rest[from:min(from+share, len(rest))]) })
	}
	return p.Wait()
}

// sum computes the checksums of some parts and records the parts again with
// them. The first record does not wait for the checksum: otherwise a kill would
// lose the waiting parts. With the second record, a resumed run need not read
// all parts again.
func (l *Log) sum(ctx context.Context, numbers []int) error {
	if len(numbers) == 0 {
		return nil
	}
	parts := make([]sinks.Part, len(numbers))
	var files []*sinks.File
	l.mu.Lock()
	for i, number := range numbers {
		parts[i] = l.parts[number]
	}
	l.mu.Unlock()
	for i := range parts {
		files = append(files, parts[i].Unsummed()...)
	}
	if err := errors.Join(l.beginJournalOnce(), l.withdrawOnce()); err != nil {
		return err
	}
	if err := l.decision.Run.Output.Sum(ctx, files); err != nil {
		return err
	}
	for i, number := range numbers {
		if err := l.decision.Journal.Record(number, parts[i]); err != nil {
			return err
		}
		l.mu.Lock()
		l.parts[number] = parts[i]
		l.mu.Unlock()
	}
	return nil
}

// Totals returns the rows of the dataset so far, and those of the parts that this run made.
func (l *Log) Totals() (all, fresh sinks.Totals) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range l.parts {
		all.Add(p.Totals)
	}
	return all, l.fresh
}

// Parts counts the parts so far.
func (l *Log) Parts() report.Parts {
	l.mu.Lock()
	defer l.mu.Unlock()
	return report.Parts{Made: l.made, Earlier: len(l.parts) - l.made}
}

// Numbers returns the numbers of the parts, in order.
func (l *Log) Numbers() []int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Sorted(maps.Keys(l.parts))
}

// InOrder returns the parts, ordered by number.
func (l *Log) InOrder() (parts []sinks.Part) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, number := range slices.Sorted(maps.Keys(l.parts)) {
		parts = append(parts, l.parts[number])
	}
	return parts
}

// ChangedDataset reports whether the run has changed the dataset.
func (l *Log) ChangedDataset() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.decision.Journal.Begun() && (l.decision.Finished == nil || l.withdrew)
}
