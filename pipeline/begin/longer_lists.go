package begin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"golang.org/x/sync/semaphore"

	"github.com/leadetl/leadetl/pipeline/columns"
	"github.com/leadetl/leadetl/pipeline/cut"
	"github.com/leadetl/leadetl/pipeline/keys"
	"github.com/leadetl/leadetl/pipeline/outcome"
	"github.com/leadetl/leadetl/pipeline/rows"
	"github.com/leadetl/leadetl/pipeline/stats"
	"github.com/leadetl/leadetl/sinks"
	"github.com/leadetl/leadetl/sources"
	"github.com/leadetl/leadetl/transforms/suppression"
)

// addedEntries returns the entries added to the suppression lists since the
// unfinished dataset was begun, if nothing else in the job changed. Otherwise
// it returns nil. Searches cannot be resumed with other lists.
func (d *Decision) addedEntries(previous previousRun) (*suppression.Set, error) {
	r := d.Run
	if r.Suppression == nil || previous.manifest != nil || previous.header.JobID == "" || previous.header.JobID == d.JobID || r.Job.Operation.IsKeyword() ||
		!sameBut("suppression", previous.header.Job, d.Settings) || slices.ContainsFunc(d.Inputs, func(in sinks.Input) bool { return in.Bytes < 0 }) {
		return nil, nil
	}
	var begun struct{ Suppression string }
	if err := json.Unmarshal(previous.header.Job, &begun); err != nil {
		return nil, nil
	}
	before, err := d.Journal.Lists(begun.Suppression)
	if err != nil || before == nil {
		return nil, err
	}
	added, err := r.Suppression.Added(before)
	if err != nil {
		return nil, fmt.Errorf("beside %s: %w", d.Journal, err)
	}
	return added, nil
}

// sameBut reports whether two identities have another value of one setting, and no other
// difference. A dataset without suppression lists has different columns.
func sameBut(setting string, before, now json.RawMessage) bool {
	var was, is map[string]json.RawMessage
	if json.Unmarshal(before, &was) != nil || json.Unmarshal(now, &is) != nil || was[setting] == nil || is[setting] == nil || bytes.Equal(was[setting], is[setting]) {
		return false
	}
	delete(was, setting)
	delete(is, setting)
	return maps.EqualFunc(was, is, func(a, b json.RawMessage) bool { return bytes.Equal(a, b) })
}

// errChecked ends the reading after the last recorded part.
var errChecked = errors.New("all recorded parts are checked")

// CheckAdded reads the rows of the recorded parts if the lists have grown since
// these were made. Parts with people who were added to the lists are made
// again.
func (d *Decision) CheckAdded(ctx context.Context) (err error) {
	if d.added == nil || len(d.Recorded) == 0 {
		return nil
	}
	reader, err := d.Run.Input.Reader(d.Columns.Read)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, reader.Close()) }()
	c := &listChecker{decision: d, left: len(d.Recorded)}
	c.suppress = d.Columns.Suppressor(d.added, false)
	c.keys = d.Columns.Keys(c.suppress)
	closeAnswers, err := c.openAnswers(ctx)
	if err != nil {
		return err
	}
	defer closeAnswers()
	cutter := cut.Cutter{Reader: reader, RowsPerPart: d.Run.Job.RowsPerPart, Start: c.start, Progress: &stats.Progress{}}
	if err := cutter.Run(ctx); err != nil && !errors.Is(err, errChecked) {
		return err
	}
	for number, part := range c.listed {
		d.Run.Log.Info("a recorded part has somebody who is listed since, and will be made again", "part", part)
		delete(d.Recorded, number)
	}
	return nil
}

// listChecker looks for the added entries in recorded parts.
type listChecker struct {
	decision *Decision
	suppress *keys.Suppressor
	keys     *keys.Maker
	answers  rows.Answerer
	left     int            // recorded parts that are not checked yet
	listed   map[int]string // names of the parts that contain an added entry, by number
}

// openAnswers opens the answers as they were given: by the engine, or as stored
// from a service. It makes no calls.
func (c *listChecker) openAnswers(ctx context.Context) (closeAnswers func(), err error) {
	c.listed = map[int]string{}
	run := c.decision.Run
	slots := semaphore.NewWeighted(int64(run.Workers))
	if run.Order.Engine() != nil {
		c.answers = c.decision.NewEngine(slots)
		return func() {}, nil
	}
	options := c.decision.OrderOptions(slots)
	options.KeepJudged = nil // what is not stored counts as no match here
	chain, _, err := run.Order.AtRest().Open(ctx, options)
	if err != nil {
		return nil, err
	}
	c.answers = rows.NewOrdered(chain, c.suppress)
	return chain.Close, nil
}

// start begins to check a part.
func (c *listChecker) start(_ context.Context, number int) (cut.Sink, error) {
	if c.left == 0 {
		return nil, errChecked
	}
	part, recorded := c.decision.Recorded[number]
	return &checkedPart{checker: c, number: number, name: part.Name, recorded: recorded, skipped: part.Totals.Skipped > 0}, nil
}

// checkedPart checks the rows of a part.
type checkedPart struct {
	checker           *listChecker
	number            int
	name              string
	recorded, skipped bool // skipped: rows had no answer when it was made
	batch             columns.Batch
}

func (p *checkedPart) Take(ctx context.Context, in *sources.Batch) error {
	defer in.Release()
	c := p.checker
	if _, listed := c.listed[p.number]; listed || !p.recorded {
		return nil
	}
	c.decision.Columns.Keep(in)
	b := &p.batch
	c.keys.Fill(b, in)
	if !p.isListed() {
		if err := c.answers.Answer(ctx, b, func(rows *columns.Batch) error { c.suppress.Answers(rows); return nil }); err != nil {
			return err
		}
	}
	if p.isListed() {
		c.listed[p.number] = p.name
	}
	return nil
}

// isListed reports whether a row is about a person who was added to the lists,
// or has lost the answer that could tell.
func (p *checkedPart) isListed() bool {
	return slices.ContainsFunc(p.batch.Outcomes, func(o outcome.Outcome) bool {
		return o == outcome.Suppressed || o == outcome.Skipped && !p.skipped
	})
}

func (p *checkedPart) End() error {
	if p.recorded {
		p.checker.left--
	}
	return nil
}

func (p *checkedPart) Abandon() {}
