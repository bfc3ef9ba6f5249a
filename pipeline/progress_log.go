package pipeline

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/sourcegraph/conc/pool"

	"github.com/leadetl/leadetl/sinks"
)

// progressLog is what a run has done: the existing parts, and the journal that
// records them. Nothing else changes during a run.
//
// A part counts as soon as it is published and recorded. Only the manifest
// needs the checksum. Where it was not taken while the part was written, it
// follows when enough parts are waiting to be read in parallel.
type progressLog struct {
	decision *decision
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

func newProgressLog(d *decision) *progressLog {
	l := &progressLog{decision: d, parts: map[int]sinks.Part{}}
	l.beginJournalOnce = sync.OnceValue(l.beginJournal)
	l.withdrawOnce = sync.OnceValue(l.withdraw)
	return l
}

func (l *progressLog) beginJournal() error {
	d := l.decision
	fingerprint := ""
	if lists := d.run.Suppression; lists != nil {
		fingerprint = lists.Fingerprint()
		if err := d.journal.KeepLists(fingerprint, lists.Encode); err != nil {
			return err
		}
	}
	if err := d.journal.Begin(d.header, d.recorded); err != nil {
		return err
	}
	if err := d.journal.DropLists(fingerprint); err != nil || d.finished == nil {
		return err
	}
	if onlyImproved := d.improving && !d.damaged && slices.EqualFunc(d.finished.Inputs, d.inputs, untouched); onlyImproved {
		return nil
	}
	return l.withdrawOnce()
}

func (l *progressLog) withdraw() error {
	if l.decision.finished == nil {
		return nil
	}
	l.mu.Lock()
	l.withdrew = true
	l.mu.Unlock()
	return l.decision.run.Output.Withdraw()
}

// keep adds a part that an earlier run made.
func (l *progressLog) keep(number int, p sinks.Part) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.parts[number] = p
	if !p.Summed() {
		l.unsummed = append(l.unsummed, number)
	}
}

// publish records a part that this run made.
func (l *progressLog) publish(ctx context.Context, number int, p sinks.Part) error {
	run := l.decision.run
	if err := l.decision.journal.Record(number, p); err != nil {
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
func (l *progressLog) awaitSum(number int) (full []int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.unsummed = append(l.unsummed, number)
	if len(l.unsummed) < sinks.SumLanes {
		return nil
	}
	full, l.unsummed = l.unsummed, nil
	return full
}

// sumRest sums the remaining parts at the end of a run, unless it was interrupted.
// Each worker takes an equal share.
func (l *progressLog) sumRest(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	l.mu.Lock()
	rest := l.unsummed
	l.unsummed = nil
	l.mu.Unlock()
	slices.Sort(rest)
	workers := l.decision.run.Workers
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
func (l *progressLog) sum(ctx context.Context, numbers []int) error {
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
	if err := l.decision.run.Output.Sum(ctx, files); err != nil {
		return err
	}
	for i, number := range numbers {
		if err := l.decision.journal.Record(number, parts[i]); err != nil {
			return err
		}
		l.mu.Lock()
		l.parts[number] = parts[i]
		l.mu.Unlock()
	}
	return nil
}

// result returns what is done so far.
func (l *progressLog) result() *Result {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := &Result{Fresh: l.fresh, Made: l.made, Skipped: len(l.parts) - l.made}
	for _, p := range l.parts {
		r.Totals.Add(p.Totals)
	}
	return r
}

// inOrder returns the parts, ordered by number.
func (l *progressLog) inOrder() (parts []sinks.Part) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, number := range slices.Sorted(maps.Keys(l.parts)) {
		parts = append(parts, l.parts[number])
	}
	return parts
}

// changedDataset reports whether the run has changed the dataset.
func (l *progressLog) changedDataset() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.decision.journal.Begun() && (l.decision.finished == nil || l.withdrew)
}
