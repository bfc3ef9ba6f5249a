package pipeline

import (
	"context"
	"errors"
	"sync"

	"golang.org/x/sync/semaphore"

	"github.com/leadetl/leadetl/internal/distinct"
	"github.com/leadetl/leadetl/pipeline/columns"
	"github.com/leadetl/leadetl/pipeline/outcome"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/sinks"
)

// Plan is what a run would do, found out without a call.
type Plan struct {
	Operation resolution.Operation `json:"operation"`
	// Complete says that the dataset is there and a run would do nothing.
	Complete bool `json:"complete"`
	// Rows, Malformed and Rejected are of the whole input, as at the end of
	// the run; the rows of a keyword job are its searches. Reasons are those of
	// malformed lines, rejected and suppressed rows, in the form of sinks.Totals.
	Rows      int64 `json:"rows"`
	Malformed int64 `json:"malformed"`
	Rejected  int64 `json:"rejected"`
	// Suppressed are the rows of people on suppression lists. Rows whose answer
	// will turn out to be about one are not known before it is there, unless
	// their part is recorded.
	Suppressed int64                       `json:"suppressed"`
	Reasons    map[string]map[string]int64 `json:"reasons,omitempty"`
	// Recorded are the rows of parts that are there already: they cost nothing
	// any more. What follows is of the others.
	Recorded PlannedRows `json:"recorded"`
	// Failed are the rows of recorded parts that have no answer, and get none
	// by running again: a run ends with that.
	Failed int64 `json:"failed,omitempty"`
	// Special are rows of addresses that nobody is asked about, by reason.
	Special map[string]int64 `json:"special,omitempty"`
	// Keys are the distinct ones among the rows that remain, and Duplicates
	// the rows that repeat one.
	Keys       int64 `json:"keys"`
	Duplicates int64 `json:"duplicates"`
	// Calls is nil where no service is asked.
	Calls *PlannedCalls `json:"calls,omitempty"`
	Files PlannedFiles  `json:"files"`
}

// PlannedRows are rows of parts.
type PlannedRows struct {
	Parts int   `json:"parts"`
	Rows  int64 `json:"rows"`
}

// PlannedCalls are the calls of a run. They count questions: one that has to
// be sent again because the service fails is one call here.
type PlannedCalls struct {
	// Stored keys have an answer that holds, Stale ones an answer that is too
	// old or was a refusal. Of a search that was begun, the later pages that are
	// stale, unknown or parked count here and below as keys do.
	Stored int64 `json:"stored"`
	Stale  int64 `json:"stale"`
	// Unknown keys have a call that may have been billed, Parked ones a call
	// whose answer comes later.
	Unknown int64 `json:"unknown"`
	Parked  int64 `json:"parked"`
	// Calls are to be made; Again of them are unknown calls that are sent
	// again.
	Calls int64 `json:"calls"`
	Again int64 `json:"again"`
	// Awaited answers come without another call: by a callback, or when they
	// are asked for.
	Awaited int64 `json:"awaited"`
	// Failed keys have an open call that may not be sent again, and Skipped
	// ones no answer while nobody may be asked: their rows get none.
	Failed  int64 `json:"failed"`
	Skipped int64 `json:"skipped"`
	// Credits are the most that Calls and Awaited can cost: what is not found
	// costs nothing. Price is that of one, 0 where they differ.
	Credits int64 `json:"credits_at_most"`
	Price   int64 `json:"price,omitempty"`
	// MorePages says that there are searches whose first page alone is
	// counted: how many follow is known when it is there.
	MorePages bool `json:"more_pages,omitempty"`
	// Seconds are how long the calls take at Rate a second; both are 0 where
	// no rate is given.
	Rate    float64 `json:"rate,omitempty"`
	Seconds float64 `json:"seconds,omitempty"`
	// Short names the budgets that are too small for all of it (max_calls,
	// max_credits): at the most a run would stop there. It certainly does at
	// those that NotEnough names too.
	Short     []string `json:"short,omitempty"`
	NotEnough []string `json:"not_enough,omitempty"`
}

// PlannedFiles are the files of the whole dataset.
type PlannedFiles struct {
	Parts int `json:"parts"`
	// Partitioned are the Parquet files of rows, where these are partitioned by
	// a column. Suppressed people whom only answers show may add files.
	Partitioned int `json:"partition_files,omitempty"`
	// Bytes are about how large the parts are together. Where AtLeast is set,
	// what answers will add to them is not known: of a keyword job all of it.
	Bytes   int64 `json:"bytes"`
	AtLeast bool  `json:"at_least"`
	// Rejects are the files of malformed lines.
	Rejects int `json:"rejects"`
}

// Plan finds out what Do would do, and changes nothing. It reads the whole
// input. Of Remote neither Service nor Reader is used, and Pace only to know
// the rate; a nil Answers is an empty store.
func (r *Run) Plan(ctx context.Context) (*Plan, error) {
	d, err := r.decide(true)
	if err != nil {
		return nil, err
	}
	if d.isComplete() {
		return d.planOfComplete(), nil
	}
	if err := d.checkAdded(ctx); err != nil {
		return nil, err
	}
	return d.plan(ctx)
}

// planOfComplete is the plan of a run with nothing to do.
func (d *decision) planOfComplete() *Plan {
	p := &Plan{Operation: d.run.Job.Operation, Complete: true}
	p.addRecorded(d.recorded)
	if d.run.Remote != nil {
		p.Calls = &PlannedCalls{}
	}
	return p
}

// addRecorded adds the parts that stay.
func (p *Plan) addRecorded(parts map[int]sinks.Part) {
	for _, part := range parts {
		p.Recorded.Parts++
		p.Recorded.Rows += inputRows(part.Totals)
		p.Failed += part.Totals.Failed
		p.addTotals(part.Totals)
		p.Files.Parts++
		p.Files.Partitioned += len(part.Files)
		p.Files.Bytes += part.Bytes
		if part.Rejects != nil {
			p.Files.Rejects++
		}
	}
}

// addTotals adds what is known of rows before anybody is asked.
func (p *Plan) addTotals(t sinks.Totals) {
	p.Rows += inputRows(t)
	p.Malformed += t.Malformed
	p.Rejected += t.Rejected
	p.Suppressed += t.Suppressed
	known := sinks.Totals{Reasons: p.Reasons}
	for _, outcome := range []string{"malformed", "rejected", "suppressed"} {
		for reason, n := range t.Reasons[outcome] {
			known.CountReason(outcome, reason, n)
		}
	}
	p.Reasons = known.Reasons
}

// inputRows are the rows that totals came of: of a keyword job its searches.
func inputRows(t sinks.Totals) int64 {
	if t.Searches > 0 {
		return t.Searches
	}
	return t.Rows
}

// plan reads the input and then looks for its keys among the stored answers.
func (d *decision) plan(ctx context.Context) (_ *Plan, err error) {
	keys, later := distinct.New(d.run.StateDir), distinct.New(d.run.StateDir)
	defer func() { err = errors.Join(err, keys.Close(), later.Close()) }()
	rows, err := d.planRows(ctx, keys, later)
	if err != nil {
		return nil, err
	}
	p := &Plan{Operation: d.run.Job.Operation}
	p.addRecorded(d.recorded)
	p.addTotals(rows.totals)
	p.Special = rows.totals.Reasons["no_match"]
	if p.Files, err = rows.files(p.Files, p.Recorded.Rows); err != nil {
		return nil, err
	}
	calls := &callPlanner{decision: d, began: rows.began}
	if err := keys.Each(ctx, d.run.Workers, calls.count); err != nil {
		return nil, err
	}
	p.Keys = calls.keys
	if err := later.Each(ctx, d.run.Workers, calls.count); err != nil {
		return nil, err
	}
	p.Duplicates = rows.totals.Matched - p.Keys
	p.Calls, err = calls.bill(ctx, rows.morePages)
	return p, err
}

// sampledBatches bounds how many batches are sampled: the first ones of the
// first parts.
const sampledBatches = 8

// sample makes the columns of some rows as a run does, and measures two files:
// one of a single row, which is what a part costs before its rows, and one of
// all of them.
type sample struct {
	decision *decision
	engine   *engineAnswers // nil with a Remote
	mu       sync.Mutex
	batches  int
	builder  *columns.Builder
	one, all *sinks.Sizer
	rows     int64
}

func newSample(d *decision) *sample {
	s := &sample{decision: d}
	if d.run.Remote == nil {
		s.engine = newEngineAnswers(d.run, semaphore.NewWeighted(int64(d.run.Workers)))
	}
	return s
}

// take measures the rows of a batch, which are some. It is safe from many
// goroutines.
func (s *sample) take(ctx context.Context, b *columns.Batch) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.batches == sampledBatches {
		return nil
	}
	s.batches++
	if err := s.answer(ctx, b); err != nil {
		return err
	}
	if s.builder == nil {
		columns := s.decision.columns
		s.builder = columns.Layout.NewBuilder()
		var errOne, errAll error
		s.one, errOne = columns.Table.NewSizer()
		s.all, errAll = columns.Table.NewSizer()
		if err := errors.Join(errOne, errAll); err != nil {
			return err
		}
		s.measure(s.one, b.Slice(0, 1))
	}
	for from := 0; from < b.Len(); {
		to := s.builder.Cut(b, from, recordBytes)
		s.measure(s.all, b.Slice(from, to))
		from = to
	}
	s.rows += int64(b.Len())
	return nil
}

func (s *sample) measure(with *sinks.Sizer, b *columns.Batch) {
	rec := s.builder.Record(b)
	defer rec.Release()
	with.Add(rec)
}

// answer asks who answers for nothing. Rows that a service is asked about are
// measured as if it knew nothing.
func (s *sample) answer(ctx context.Context, b *columns.Batch) error {
	if s.engine != nil {
		return s.engine.fill(ctx, b)
	}
	b.Leads = make([]*resolution.Lead, b.Len())
	b.Receipts = make([]outcome.Receipt, b.Len())
	if s.decision.run.Job.Operation == resolution.IPToCompany {
		b.OrgTypes = make([]string, b.Len())
	}
	for i, o := range b.Outcomes {
		if o == outcome.Matched {
			b.Outcomes[i] = outcome.NoMatch
		}
	}
	return nil
}

// files adds the files of the rows that remain to those that are there. A row
// is taken to be as large as the recorded ones are, else as the sampled ones.
func (r *rowPlanner) files(recorded PlannedFiles, rows int64) (PlannedFiles, error) {
	f := recorded
	f.Parts += r.parts
	f.Partitioned += r.partitionFiles()
	f.Rejects += r.rejects
	left := r.totals.Rows
	switch {
	case left == 0:
	case r.decision.run.Job.Operation.IsKeyword():
		f.AtLeast = true
	case rows > 0:
		f.Bytes += int64(float64(recorded.Bytes) / float64(rows) * float64(left))
	default:
		bytes, err := r.sample.bytes(max(r.parts, r.partitionFiles()), left)
		if err != nil {
			return PlannedFiles{}, err
		}
		f.Bytes += bytes
		f.AtLeast = r.decision.run.Remote != nil
	}
	return f, nil
}

// bytes are about the bytes of so many rows in so many files.
func (s *sample) bytes(files int, rows int64) (int64, error) {
	one, errOne := s.one.Bytes()
	all, errAll := s.all.Bytes()
	row := float64(all-one) / float64(max(s.rows-1, 1))
	return int64(files)*one + int64(row*float64(rows-int64(files))), errors.Join(errOne, errAll)
}
