package runcmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/wire"
	"github.com/leadetl/leadetl/internal/disk"
	"github.com/leadetl/leadetl/internal/figures"
	"github.com/leadetl/leadetl/internal/objects"
	"github.com/leadetl/leadetl/internal/store/bucket"
	"github.com/leadetl/leadetl/pipeline/answers"
)

// isAboutState reports whether the state alone is to be checked. It is asked before the environment
// is read, which is that of runs.
func (d *checkup) isAboutState(args []string) bool {
	f := d.flags
	return f.all.Changed("state") && len(args) == 0 && len(f.given(0)) == len(f.given(aboutState))
}

// examineState reads everything in a state. With repair, it sets damaged files aside, and reads again.
func (d *checkup) examineState(ctx context.Context, repair bool) error {
	state, err := d.stateAsFound(ctx)
	if err != nil {
		return err
	}
	lost, err := d.readState(ctx, state)
	if err != nil || !d.anyFailed() {
		return err
	}
	d.advise(lost, repair)
	if !repair {
		return nil
	}
	before := d.checks
	d.checks = nil
	d.mend(ctx, state)
	if _, err = d.readState(ctx, state); err != nil || d.anyFailed() {
		d.checks = append(before, d.checks...)
	}
	return err
}

// stateAsFound is the state in a folder or on S3, in which nothing is made.
func (d *checkup) stateAsFound(ctx context.Context) (s wire.State, err error) {
	f := d.flags
	if !objects.Is(f.state) {
		if _, err := os.Stat(f.state); err != nil {
			return s, cli.UsageError(wire.FolderError("state", err))
		}
		return wire.State{Folder: f.state}, d.checkState()
	}
	log, err := f.log.Open(io.Discard)
	if err != nil {
		return s, cli.UsageError(err)
	}
	store, err := f.s3.Open(ctx, log)
	if err != nil {
		return s, cli.UsageError(err)
	}
	if s.Objects, err = wire.StateOnS3(store, f.state); err == nil {
		s.Objects = s.Objects.AsFound()
	}
	return s, err
}

// readState checks all that a state has.
func (d *checkup) readState(ctx context.Context, s wire.State) (lost answers.Lost, err error) {
	if lost, err = d.readAnswers(ctx, s.Answers()); err != nil {
		return lost, err
	}
	runs, err := s.Runs().Inspect(ctx)
	if err != nil {
		return lost, err
	}
	for _, run := range runs {
		d.damages("unfinished run", fmt.Sprintf("%s: %s", run.ID, figures.Plural(run.Parts, "recorded part")), run.Damages)
	}
	nights, err := s.Runs().InspectNights(ctx)
	d.damages("finished datasets", figures.Plural(nights.Files, "list"), nights.Damages)
	if err != nil || s.Objects != nil {
		return lost, err
	}
	damages, err := bucket.InspectWork(disk.Dir(s.Folder))
	d.damages("uploads", "their records are whole", damages)
	return lost, err
}

// readAnswers reads all stored answers.
func (d *checkup) readAnswers(ctx context.Context, of answers.Places) (lost answers.Lost, err error) {
	places, err := of.All(ctx)
	if err != nil {
		return lost, err
	}
	found, err := answers.Inspect(ctx, places...)
	switch {
	case len(places) == 0 || errors.Is(err, answers.ErrNone):
		d.skip("answers", "none are stored")
		return lost, nil
	case err != nil:
		return lost, err
	}
	d.damages("answers", figures.Plural(found.Answers, "stored answer")+", "+figures.Plural(found.Calls, "open call"), found.Damages)
	return found.Lost, nil
}

// mend sets damaged files of a state aside, and says which, and what it could not repair.
func (d *checkup) mend(ctx context.Context, s wire.State) {
	places, err := s.Answers().All(ctx)
	var aside []string
	if err == nil {
		aside, err = answers.Repair(ctx, places...)
	}
	runs, ofRuns := s.Runs().Repair(ctx)
	nights, ofNights := s.Runs().RepairNights(ctx)
	aside, failed := slices.Concat(aside, runs, nights), []error{err, errors.Join(ofRuns, ofNights)}
	if s.Objects == nil {
		uploads, err := bucket.RepairWork(disk.Dir(s.Folder))
		aside, failed = append(aside, uploads...), append(failed, err)
	}
	for _, path := range aside {
		d.ok("set aside", path)
	}
	for _, err := range failed {
		if err != nil {
			d.failed("repair", err)
		}
	}
}

// damages adds a failed check for each damage of a kind, or one that passed.
func (d *checkup) damages(what, note string, damages []error) {
	for _, damage := range damages {
		d.failed(what, damage)
	}
	if len(damages) == 0 {
		d.ok(what, note)
	}
}

// advise says what is lost, and what to do.
func (d *checkup) advise(lost answers.Lost, repair bool) {
	if lost != (answers.Lost{}) {
		calls := figures.Plural(lost.Intents, "call") + " that cannot be named"
		if lost.AtMost != "" {
			calls = fmt.Sprintf("at most %s (%s)", calls, lost.AtMost)
		}
		d.notes = append(d.notes, fmt.Sprintf("Lost: %s, which cost %s, and %s. The next run buys what it needs of them again.",
			figures.Plural(lost.Answers, "stored answer"), figures.Plural(lost.Credits, "credit"), calls))
	}
	if !repair {
		d.notes = append(d.notes, "With --repair, damaged files are set aside, the rest is kept, and what is lost counts as spent.")
	}
}
