package pipeline

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/leadetl/leadetl/pipeline/cut"
	"github.com/leadetl/leadetl/pipeline/journal"
	"github.com/leadetl/leadetl/sinks"
	"github.com/leadetl/leadetl/sources"
)

// Window are consecutive parts whose rows are read in one go.
type Window struct {
	First int  `json:"first"` // number of the first part
	Parts int  `json:"parts"`
	Last  bool `json:"last,omitempty"` // it has the last part of the dataset
	// From is the place of the first row of part First.
	From sources.Start `json:"from"`
}

// wholeInput is the window of a run that is done in one piece.
var wholeInput = Window{Last: true}

func (w Window) until() int {
	if w.Last {
		return 0
	}
	return w.First + w.Parts
}

func (w Window) reader(input *sources.List, columns []string) (*sources.Reader, error) {
	if w == wholeInput {
		return input.Reader(columns)
	}
	return input.ReaderFrom(columns, w.From)
}

// Begun is a run whose parts are made a window at a time, by any number of
// processes. All that they share is the dataset and a journal. Its methods are
// safe for concurrent use.
type Begun struct{ decision *decision }

// ErrMissingParts says that not all parts of a dataset are made yet.
var ErrMissingParts = errors.New("parts are missing")

// Begin decides what the run makes, as Do does. Unless the dataset is Finished,
// BeginJournal follows. One process at a time may call it.
func (r *Run) Begin(ctx context.Context) (*Begun, error) {
	d, err := r.decide(ctx, false)
	if err != nil {
		return nil, err
	}
	b := &Begun{d}
	if b.Finished() {
		return b, nil
	}
	if d.finished != nil && !slices.EqualFunc(d.finished.Inputs, d.inputs, untouched) {
		d.recorded = nil // their rows are not read again, and so not compared
	}
	return b, d.checkFound()
}

// BeginJournal stores the header, and the parts of a finished dataset that need
// not be made again. From then on the dataset is unfinished.
func (b *Begun) BeginJournal() error { return newProgressLog(b.decision).beginJournalOnce() }

// Join decides the same as Begin did in another process. header is the journal's;
// it is nil if there is no journal, because the dataset is finished. The error is
// ErrOtherJob if the settings differ, and cut.ErrInputChanged if the input does.
func (r *Run) Join(ctx context.Context, header *journal.Header) (*Begun, error) {
	run := *r
	run.Overwrite = false // the process that began the run did it
	d, err := run.decide(ctx, true)
	if err != nil {
		return nil, err
	}
	b := &Begun{d}
	switch {
	case header == nil || b.Finished():
		return b, nil
	case header.JobID != d.jobID:
		return nil, d.otherJob(header.Job)
	case !slices.EqualFunc(header.Inputs, d.inputs, untouched):
		return nil, fmt.Errorf("%w; use another --out, or begin it again with --overwrite", cut.ErrInputChanged)
	}
	d.header = *header
	return b, nil
}

// Header returns the header of the journal.
func (b *Begun) Header() journal.Header { return b.decision.header }

// Finished reports whether the dataset is finished, with its report.
func (b *Begun) Finished() bool { return b.decision.isComplete() && b.decision.hasReport }

// Tidy returns the result of a finished dataset, and removes the journal.
func (b *Begun) Tidy() (*Result, error) { return b.decision.tidyComplete() }

// with returns the decision with a journal of its own: a write that fails ends
// a journal, but the next window may succeed.
func (b *Begun) with(storage journal.Storage) (_ *decision, err error) {
	d := *b.decision
	d.journal = journal.New(storage)
	_, parts, err := d.journal.Read()
	if err != nil {
		return nil, err
	}
	d.run.Output.Refresh()
	return &d, d.checkRecorded(parts, false) // what Begin improves is not recorded any more
}

// Make makes the parts of a window that are not recorded yet, and records them.
// storage is the journal; it may have other parts too. The result is that of the
// window. Two processes may make the same window: they write the same bytes.
func (b *Begun) Make(ctx context.Context, window Window, storage journal.Storage) (*Result, error) {
	d, err := b.within(window, storage)
	if err != nil {
		return nil, err
	}
	w := d.apart(ctx)
	log := w.log
	if len(d.recorded) == window.Parts {
		for number, p := range d.recorded {
			log.keep(number, p)
		}
		return w.result(), nil
	}
	if err := w.makeParts(ctx, window); err != nil {
		return w.result(), err
	}
	if err := log.sumRest(ctx); err != nil {
		return w.result(), err
	}
	if n := len(log.parts); n != window.Parts {
		return w.result(), fmt.Errorf("%w: it has rows for %d parts, not for %d", cut.ErrInputChanged, n, window.Parts)
	}
	return w.result(), nil
}

// within is with, where only the parts of a window are recorded.
func (b *Begun) within(window Window, storage journal.Storage) (*decision, error) {
	d, err := b.with(storage)
	if err == nil {
		maps.DeleteFunc(d.recorded, func(number int, _ sinks.Part) bool {
			return number < window.First || number >= window.First+window.Parts
		})
	}
	return d, err
}

// apart is the work on some parts of a run that Begin has begun.
func (d *decision) apart(ctx context.Context) *work {
	log := newProgressLog(d)
	log.beginJournalOnce, log.withdrawOnce = alreadyDone, alreadyDone
	return &work{decision: d, log: log, asking: semaphore.NewWeighted(int64(d.run.Workers)), apart: true, ended: ctx.Done()}
}

// alreadyDone stands for what Begin has done.
func alreadyDone() error { return nil }

// Account is what the processes of a run have counted, for its report.
type Account struct {
	Earlier  []int // parts of an earlier run
	Machines []Machine
}

// Machine is what one worker has done.
type Machine struct {
	Steps map[string]int64 // by their name
	Busy  time.Duration
}

// Finish publishes the dataset of so many parts, with its report, and removes the
// journal. The error is a *MissingError if some are not recorded, or no longer
// match their record. One process at a time may call it. account is called if
// none is missing.
func (b *Begun) Finish(ctx context.Context, parts int, storage journal.Storage, account func() (Account, error)) (result *Result, err error) {
	d, err := b.with(storage)
	if err != nil {
		return nil, err
	}
	log := newProgressLog(d)
	log.beginJournalOnce, log.withdrawOnce = alreadyDone, alreadyDone
	w := &work{decision: d, log: log, apart: true}
	if missing := (&MissingError{}); missing.among(d.recorded, parts) {
		return w.result(), missing
	}
	of, err := account()
	if err != nil {
		return w.result(), err
	}
	w.machines = of.Machines
	d.run.Progress.Begin(d.run.Job.Operation.IsKeyword())
	for number, p := range d.recorded {
		log.keep(number, p)
		d.run.Progress.Count(p.Totals)
		d.run.Progress.CountPart()
		if !slices.Contains(of.Earlier, number) {
			log.fresh.Add(p.Totals)
			log.made++
		}
	}
	d.run.Progress.CountAllRead()
	watch := newReporter(w)
	defer func() { watch.stopped(result, err) }()
	if err := log.sumRest(ctx); err != nil {
		return w.result(), err
	}
	return w.publish(watch)
}

// MissingError is ErrMissingParts with the numbers of the parts.
type MissingError struct{ Numbers []int }

func (e *MissingError) Error() string { return fmt.Sprintf("%d %v", len(e.Numbers), ErrMissingParts) }

// Is makes it ErrMissingParts.
func (e *MissingError) Is(target error) bool { return target == ErrMissingParts }

// among finds the parts that are not recorded.
func (e *MissingError) among(recorded map[int]sinks.Part, parts int) bool {
	for number := range parts {
		if _, ok := recorded[number]; !ok {
			e.Numbers = append(e.Numbers, number)
		}
	}
	return len(e.Numbers) > 0
}
