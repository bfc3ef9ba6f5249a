package pipeline

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sourcegraph/conc/pool"
	"golang.org/x/sync/semaphore"

	"github.com/leadetl/leadetl/pipeline/columns"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/sinks"
	"github.com/leadetl/leadetl/sources"
	"github.com/leadetl/leadetl/transforms/profile"
)

// ErrOtherJob says that the output folder holds the dataset of a job with
// other settings, inputs or answers.
var ErrOtherJob = errors.New("the folder holds another job's dataset")

// ErrInputChanged says that rows of a recorded part are no longer what they
// were when the part was made.
var ErrInputChanged = errors.New("the input has changed since the dataset was begun")

// Run is one run of a job and everything it is wired to.
type Run struct {
	Job      Job
	Input    *sources.List
	Output   *sinks.Dataset
	Resolver resolution.Resolver
	// Answers identifies the reference data answers come from; empty when
	// they follow from the input alone.
	Answers string
	// StateDir is where the progress of unfinished datasets is kept.
	StateDir string
	// Overwrite removes whatever dataset the output folder holds.
	Overwrite bool
	// Workers bounds the parts in work at a time and the questions asked at a
	// time. It has no influence on the dataset.
	Workers  int
	Program  string // name and version, for the manifest
	Log      *slog.Logger
	Progress *Progress
}

// Result is what a run has to say at its end.
type Result struct {
	Manifest *sinks.Manifest // nil when the run did not finish
	Totals   sinks.Totals    // of the whole dataset, parts of earlier runs included
	Fresh    sinks.Totals    // of the parts this run made
	Skipped  int             // parts that were there already
	Made     int             // parts this run made
}

// Do runs the job to its end or until ctx ends. When ctx ends it stops
// reading, finishes and records the parts whose rows are all read, and
// returns ctx's error; the same run again goes on from there.
func (r *Run) Do(ctx context.Context) (*Result, error) {
	if err := r.Job.Validate(); err != nil {
		return nil, err
	}
	s, err := r.prepare()
	if err != nil {
		return nil, err
	}
	defer s.journal.close()
	if done, err := s.finishedBefore(); done != nil || err != nil {
		return done, err
	}
	if err := s.feed(ctx); err != nil {
		return s.result(), err
	}
	if err := s.sumRest(ctx); err != nil {
		return s.result(), err
	}
	m := s.manifest()
	if err := r.Output.Publish(m); err != nil {
		return s.result(), err
	}
	if err := s.journal.remove(); err != nil {
		return s.result(), err
	}
	result := s.result()
	result.Manifest = m
	return result, nil
}

// state is a run under way.
type state struct {
	*Run
	layout     *columns.Layout
	table      sinks.Table
	rejects    sinks.Table
	read       []string // columns to read, the kept ones first
	kept       int      // how many of them are kept
	identifier int      // which of them is resolved
	settings   []byte
	jobID      string
	journal    *journal
	known      map[int]sinks.Part // recorded by earlier runs, and still as recorded
	before     *sinks.Manifest    // of the finished dataset that is there, if any
	unseal     sync.Once          // taken back before the first part is written
	opened     error

	mu       sync.Mutex
	parts    map[int]sinks.Part // known ones passed by, and made ones
	unsummed []int              // published parts that wait for their checksum
	fresh    sinks.Totals
	made     int
}

// prepare works out columns and identity and looks at what is there already.
func (r *Run) prepare() (*state, error) {
	s := &state{Run: r, parts: map[int]sinks.Part{}}
	if err := s.chooseColumns(); err != nil {
		return nil, err
	}
	var err error
	if s.settings, s.jobID, err = s.identity().encode(); err != nil {
		return nil, err
	}
	if s.journal, err = newJournal(r.StateDir, r.Output.Dir()); err != nil {
		return nil, err
	}
	if r.Overwrite {
		if err := errors.Join(r.Output.Clear(), s.journal.remove()); err != nil {
			return nil, err
		}
	}
	return s, s.lookBack()
}

// chooseColumns settles which input columns are read and what comes out.
func (s *state) chooseColumns() error {
	files := s.Input.Files()
	identifier := s.Job.Column
	if identifier == "" {
		identifier = string(s.Job.Operation.Identifier())
	}
	kept := s.Job.Keep
	if s.Job.KeepAll && len(files) > 0 {
		kept = files[0].Columns
	}
	identifier = matchFold(kept, identifier)
	s.read, s.kept = slices.Clone(kept), len(kept)
	if s.identifier = slices.Index(kept, identifier); s.identifier < 0 {
		s.identifier = len(s.read)
		s.read = append(s.read, identifier)
	}
	if err := s.Input.Check(s.read); err != nil {
		return err
	}
	if s.Job.KeepAll {
		for _, f := range files[min(1, len(files)):] {
			for _, c := range f.Columns {
				if !containsFold(kept, c) {
					return fmt.Errorf("%s has a column %q that %s has not; name the columns to keep with --keep", f.URI, c, files[0].URI)
				}
			}
		}
	}
	var err error
	s.layout, err = columns.NewLayout(columns.Settings{
		Operation: s.Job.Operation, Kept: kept, Identifier: identifier, DropIdentifier: s.Job.DropIdentifier,
		HEMTypes: s.Job.HEMTypes, HEMProfiles: s.Job.HEMProfiles, DefaultRegion: s.Job.DefaultRegion,
	})
	if err != nil {
		return err
	}
	s.table = s.outputTable()
	s.rejects = s.rejectsTable()
	return nil
}

func containsFold(names []string, name string) bool {
	return slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, name) })
}

// matchFold is name as it is spelled in names: exactly, else in any case.
func matchFold(names []string, name string) string {
	if slices.Contains(names, name) {
		return name
	}
	if i := slices.IndexFunc(names, func(n string) bool { return strings.EqualFold(n, name) }); i >= 0 {
		return names[i]
	}
	return name
}

func (s *state) identity() identity {
	j := s.Job
	id := identity{
		Operation: j.Operation, Column: s.read[s.identifier], Keep: s.read[:s.kept], DropIdentifier: j.DropIdentifier,
		RowsPerPart: j.RowsPerPart, Compression: j.Compression, HEMTypes: j.HEMTypes, DefaultRegion: j.DefaultRegion,
		NetworkHosts: j.NetworkHosts, IncludeProviders: j.IncludeProviders, Answers: s.Answers,
		SchemaVersion: columns.SchemaVersion, RulesVersion: columns.RulesVersion,
	}
	for _, f := range s.Input.Files() {
		id.Inputs = append(id.Inputs, f.URI)
	}
	for _, p := range j.HEMProfiles {
		id.HEMProfiles = append(id.HEMProfiles, p.String())
	}
	return id
}

// lookBack finds the parts that earlier runs of this job recorded, in the
// manifest of a finished dataset or in the journal of an unfinished one.
func (s *state) lookBack() error {
	recorded := map[int]sinks.Part{}
	m, err := s.Output.Manifest()
	if err != nil {
		return err
	}
	if m != nil {
		if m.JobID != s.jobID {
			return s.otherJob()
		}
		for number, p := range m.Parts {
			recorded[number] = p
		}
		s.before = m
	} else {
		jobID, parts, err := s.journal.read()
		if err != nil {
			return err
		}
		empty, err := s.Output.Empty()
		if err != nil {
			return err
		}
		if jobID != s.jobID && !empty {
			if jobID == "" {
				return fmt.Errorf("%s: %w, unfinished, and its progress is not under %s; give the state folder it was begun with, another --out, or --overwrite", s.Output.Dir(), ErrOtherJob, s.StateDir)
			}
			return s.otherJob()
		}
		if jobID == s.jobID {
			recorded = parts
		}
	}
	s.known = map[int]sinks.Part{}
	for number, p := range recorded {
		err := s.Output.CheckPart(p)
		switch {
		case err == nil:
			s.known[number] = p
		case errors.Is(err, sinks.ErrCorrupt):
			s.Log.Warn("a recorded part will be made again", "part", p.Name, "reason", err.Error())
		default:
			return err
		}
	}
	return nil
}

func (s *state) otherJob() error {
	return fmt.Errorf("%s: %w (other settings, inputs or directory); give another --out, or --overwrite to replace it", s.Output.Dir(), ErrOtherJob)
}

// finishedBefore is the result of a run with nothing to do: the dataset is
// whole, and no input was touched since.
func (s *state) finishedBefore() (*Result, error) {
	if s.before == nil || len(s.known) != len(s.before.Parts) || !slices.EqualFunc(s.before.Inputs, s.inputs(), untouched) {
		return nil, nil
	}
	if err := s.journal.remove(); err != nil {
		return nil, err
	}
	return &Result{Manifest: s.before, Totals: s.before.Totals, Skipped: len(s.known)}, nil
}

// untouched reports whether an input looks as it did. Of standard input
// nothing is known before it is read.
func untouched(before, now sinks.Input) bool {
	return now.Bytes >= 0 && before.URI == now.URI && before.Bytes == now.Bytes && before.ModifiedAt.Equal(now.ModifiedAt)
}

func (s *state) inputs() []sinks.Input {
	var inputs []sinks.Input
	for _, f := range s.Input.Files() {
		inputs = append(inputs, sinks.Input{URI: f.URI, Bytes: f.Size, ModifiedAt: f.ModTime.UTC()})
	}
	return inputs
}

// feed reads all rows, cuts them into parts and hands each part to a worker.
// As many parts again as there are workers may be waiting for the disk, so
// that no core does.
func (s *state) feed(ctx context.Context) (err error) {
	reader, err := s.Input.Reader(s.read)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, reader.Close()) }()
	position := reader.Position
	s.Progress.position.Store(&position)

	// Parts that are whole are finished even after ctx has ended.
	workers := pool.New().WithContext(context.WithoutCancel(ctx)).WithCancelOnError().WithFirstError().WithMaxGoroutines(2 * s.Workers)
	f := &feeder{state: s, reader: reader, workers: workers, ahead: newLookAhead(), making: semaphore.NewWeighted(int64(s.Workers))}
	feedErr := f.run(ctx)
	workErr := workers.Wait()
	// A worker's failure is why the feeder stopped, not the other way round.
	if workErr != nil && !errors.Is(workErr, errAbandoned) {
		return workErr
	}
	return feedErr
}

// unsealed makes the dataset unfinished again before the first part of it is
// written, and the journal ready. It does so once.
func (s *state) unsealed() error {
	s.unseal.Do(func() {
		if s.opened = s.journal.begin(s.jobID, s.Output.Dir(), s.known); s.opened != nil {
			return
		}
		if s.before != nil {
			s.opened = s.Output.Withdraw()
		}
	})
	return s.opened
}

// keep adds a part that an earlier run made.
func (s *state) keep(number int, p sinks.Part) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.parts[number] = p
	if p.SHA256 == "" {
		s.unsummed = append(s.unsummed, number)
	}
	s.Progress.parts.Add(1)
}

// publish records a part that this run made.
func (s *state) publish(ctx context.Context, number int, p sinks.Part) error {
	if err := s.journal.record(number, p); err != nil {
		return fmt.Errorf("record %s: %w", p.Name, err)
	}
	s.mu.Lock()
	s.parts[number] = p
	s.fresh.Add(p.Totals)
	s.made++
	s.mu.Unlock()
	s.Progress.parts.Add(1)
	s.Log.Debug("part published", "part", p.Name, "rows", p.Rows, "bytes", p.Bytes)
	return s.sum(ctx, s.awaitSum(number))
}

func (s *state) result() *Result {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := &Result{Fresh: s.fresh, Made: s.made, Skipped: len(s.parts) - s.made}
	for _, p := range s.parts {
		r.Totals.Add(p.Totals)
	}
	return r
}

func (s *state) manifest() *sinks.Manifest {
	r := s.result()
	m := &sinks.Manifest{
		Format: sinks.ManifestFormat, Program: s.Program, Operation: string(s.Job.Operation),
		SchemaVersion: columns.SchemaVersion, RulesVersion: columns.RulesVersion,
		JobID: s.jobID, Job: s.settings, Inputs: s.inputs(), Totals: r.Totals,
		CompletedAt: time.Now().UTC().Truncate(time.Millisecond),
	}
	for _, c := range s.layout.Columns() {
		m.Schema = append(m.Schema, sinks.Column{Name: c.Name, Type: c.TypeName(), Nullable: c.Nullable})
	}
	for number := range len(s.parts) {
		m.Parts = append(m.Parts, s.parts[number])
	}
	return m
}

func (s *state) outputTable() sinks.Table {
	t := sinks.Table{
		Schema: s.layout.Schema(), Traits: map[string]sinks.ColumnTraits{}, Compression: s.Job.Compression,
		Metadata: map[string]string{
			"leadetl.operation":      string(s.Job.Operation),
			"leadetl.schema_version": fmt.Sprint(columns.SchemaVersion),
			"leadetl.rules_version":  fmt.Sprint(columns.RulesVersion),
		},
	}
	for _, c := range s.layout.Columns() {
		t.Traits[c.Name] = sinks.ColumnTraits{Statistics: c.Statistics, Random: c.Random}
	}
	return t
}

func (s *state) newPartMaker(number int) *partMaker {
	return &partMaker{
		state:    s,
		number:   number,
		digest:   newInputDigest(),
		rejected: &rejectsWriter{state: s, number: number},
		keyer:    keyer{s.Job.Operation, profile.Rules{Hosts: s.Job.NetworkHosts}},
		answerer: newAnswerer(s.Resolver, s.Job.Operation, s.Workers),
		builder:  s.layout.NewBuilder(),
	}
}
