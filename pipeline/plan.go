package pipeline

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/apache/arrow/go/v17/arrow"
	"golang.org/x/sync/semaphore"

	"github.com/leadetl/leadetl/internal/distinct"
	"github.com/leadetl/leadetl/pipeline/begin"
	"github.com/leadetl/leadetl/pipeline/columns"
	"github.com/leadetl/leadetl/pipeline/job"
	"github.com/leadetl/leadetl/pipeline/order"
	"github.com/leadetl/leadetl/pipeline/outcome"
	"github.com/leadetl/leadetl/pipeline/parts"
	"github.com/leadetl/leadetl/pipeline/rows"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/sinks"
)

// Plan is what a run would do. It is computed without a call.
type Plan struct {
	Operation resolution.Operation `json:"operation"`
	// Complete means that the dataset exists and a run would do nothing.
	Complete bool `json:"complete"`
	// Rows, Malformed and Rejected count the whole input, as at the end of a
	// run. For a keyword job, Rows counts its searches. Reasons counts
	// malformed lines and rejected and suppressed rows, in the form of
	// sinks.Totals.
	Rows      int64 `json:"rows"`
	Malformed int64 `json:"malformed"`
	Rejected  int64 `json:"rejected"`
	// OutputRows counts the rows of the dataset where an input row may have several, or none. How
	// many leads a search finds is not known.
	OutputRows int64 `json:"output_rows,omitempty"`
	// NotSelected counts the input rows that --where leaves out.
	NotSelected int64 `json:"not_selected,omitempty"`
	// More counts the rows with a key whose cell has more than its identifier, or several: with
	// identifier_text strict and --multiple reject they would be rejected. Rows of recorded
	// parts are not among them.
	More int64 `json:"more_than_identifier,omitempty"`
	// Unusual counts rows as sinks.Totals does.
	Unusual int64 `json:"unusual_addresses,omitempty"`
	// Suppressed counts the rows of people on suppression lists. If only the
	// answer shows that a row is about a listed person, the row is not counted
	// here, unless its part is recorded.
	Suppressed int64                       `json:"suppressed"`
	Reasons    map[string]map[string]int64 `json:"reasons,omitempty"`
	// Recorded counts the rows of existing parts. They cost nothing more. The
	// fields below count the remaining rows.
	Recorded struct {
		Parts int   `json:"parts"`
		Rows  int64 `json:"rows"`
	} `json:"recorded"`
	// Failed counts the rows of recorded parts that have no answer and will get
	// none if the job runs again. A run with such rows ends with an error.
	Failed int64 `json:"failed,omitempty"`
	// Special counts, by reason, the rows with addresses that are never asked
	// about.
	Special map[string]int64 `json:"special,omitempty"`
	// Keys counts the distinct keys of the remaining rows, and Duplicates the
	// rows that repeat one.
	Keys       int64 `json:"keys"`
	Duplicates int64 `json:"duplicates"`
	// Calls is nil if the run uses no service. Of several resolvers it has the sum, and counts
	// each key once, by what is stored of it anywhere.
	Calls *PlannedCalls `json:"calls,omitempty"`
	// Resolvers are those of a run with several, in their order.
	Resolvers []PlannedResolver `json:"resolvers,omitempty"`
	// MixedCredits means that the job has a budget for credits of several resolvers.
	MixedCredits bool         `json:"mixed_credits,omitempty"`
	Files        PlannedFiles `json:"files"`
}

// PlannedCalls counts the calls of a run. A call that is repeated because the
// service fails counts once.
type PlannedCalls struct {
	// Stored counts keys with a valid stored answer, or of several resolvers those answered
	// without a call, Stale keys whose stored answer is too old or was a refusal. If a search was begun, its later
	// pages that are stale, unknown or parked count as keys, here and below.
	Stored int64 `json:"stored"`
	Stale  int64 `json:"stale"`
	// Changed counts keys whose stored answer is another outcome by the rules of today than when it
	// came: a match, a miss, or an unknown call.
	Changed int64 `json:"changed,omitempty"`
	// New counts keys about which nothing is stored.
	New int64 `json:"new"`
	// Unknown counts keys with a call that may have been billed, Parked keys
	// with a call whose answer comes later.
	Unknown int64 `json:"unknown"`
	Parked  int64 `json:"parked"`
	// Calls counts the calls to make. Again counts those of them that repeat an
	// unknown call.
	Calls int64 `json:"calls"`
	Again int64 `json:"again"`
	// Awaited counts answers that come without another call: by callback or by
	// polling.
	Awaited int64 `json:"awaited"`
	// Failed counts keys with an open call that may not be repeated. Skipped
	// counts keys that have no answer and may not be asked about. Their rows
	// get no answer.
	Failed  int64 `json:"failed"`
	Skipped int64 `json:"skipped"`
	// TooOld are those of Failed whose idempotency keys may be forgotten.
	TooOld int64 `json:"too_old,omitempty"`
	// Credits is the maximum cost of Calls and Awaited. Price is the price of one call, or 0 if
	// prices differ, and Miss that of one without a match.
	Credits int64 `json:"credits_at_most"`
	Price   int64 `json:"price,omitempty"`
	Miss    int64 `json:"price_of_no_match,omitempty"`
	// MorePages means that some searches are counted with their first page
	// only. The number of further pages is known when the first page arrives.
	MorePages bool `json:"more_pages,omitempty"`
	// Seconds is how long the calls take at Rate calls a second. Both are 0 if
	// no rate is set. Looks for answers that come later take longer: Seconds has one for each.
	Rate    float64 `json:"rate,omitempty"`
	Seconds float64 `json:"seconds,omitempty"`
	Later   bool    `json:"later,omitempty"`
	// Allowed is how many calls a second the service allows; 0 if it does not say.
	Allowed float64 `json:"allowed_rate,omitempty"`
	// Short names the limits that may be too small (max_calls, max_credits, max_credits_per,
	// max_new_keys): a run would stop there at the maximum cost. NotEnough names those of them
	// that are too small in any case.
	Short     []string `json:"short,omitempty"`
	NotEnough []string `json:"not_enough,omitempty"`
}

// PlannedFiles counts the files of the whole dataset.
type PlannedFiles struct {
	Parts int `json:"parts"`
	// Partitioned counts the Parquet files of rows, if these are partitioned by
	// a column. Suppressed people whom only answers show may add files.
	Partitioned int `json:"partition_files,omitempty"`
	// Bytes is the approximate size of all parts. If AtLeast is set, it does
	// not include what answers will add, which for a keyword job is everything.
	Bytes   int64 `json:"bytes"`
	AtLeast bool  `json:"at_least"`
	// Rejects counts the files of malformed lines.
	Rejects int `json:"rejects"`
}

// MakePlan finds out what Do would do, and changes nothing. It reads the whole
// input. It uses neither Service nor Reader of Remote, and only the rate of
// Pace. A nil Answers counts as an empty store.
func MakePlan(ctx context.Context, r *job.Run) (*Plan, error) {
	d, err := begin.Decide(ctx, r)
	if err != nil {
		return nil, err
	}
	if d.IsComplete() {
		return planOfComplete(d), nil
	}
	if err := d.CheckAdded(ctx); err != nil {
		return nil, err
	}
	return plan(ctx, d)
}

// planOfComplete returns the plan of a run with nothing to do.
func planOfComplete(d *begin.Decision) *Plan {
	p := &Plan{Operation: d.Run.Job.Operation, Complete: true}
	p.addRecorded(d.Recorded)
	if len(d.Run.Remotes()) > 0 {
		p.Calls = &PlannedCalls{}
	}
	return p
}

// addRecorded adds the parts that are kept.
func (p *Plan) addRecorded(parts map[int]sinks.Part) {
	for _, part := range parts {
		p.Recorded.Parts++
		p.Recorded.Rows += part.Totals.InputRows()
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

// addTotals adds what is known about rows before anything is asked.
func (p *Plan) addTotals(t sinks.Totals) {
	p.Rows += t.InputRows()
	p.NotSelected += t.NotSelected
	if t.SourceRows > 0 && !p.Operation.IsKeyword() {
		p.OutputRows += t.Rows
	}
	p.Malformed += t.Malformed
	p.Rejected += t.Rejected
	p.Suppressed += t.Suppressed
	p.Unusual += t.Unusual
	known := sinks.Totals{Reasons: p.Reasons}
	for _, outcome := range []string{"malformed", "rejected", "suppressed"} {
		for reason, n := range t.Reasons[outcome] {
			known.CountReason(outcome, reason, n)
		}
	}
	p.Reasons = known.Reasons
}

// plan reads the input, and then looks up its keys in the stored answers.
func plan(ctx context.Context, d *begin.Decision) (_ *Plan, err error) {
	keys, later := distinct.New(d.Run.StateDir), distinct.New(d.Run.StateDir)
	defer func() { err = errors.Join(err, keys.Close(), later.Close()) }()
	planner := newPlanner(d)
	if planner != nil {
		defer func() { err = errors.Join(err, planner.Close()) }()
	}
	r, sample := &rowPlanner{decision: d, keys: keys, later: later, order: planner, began: time.Now()}, newSample(d)
	read := &parts.Planned{Lookers: r.lookers(), Sample: func(b *columns.Batch) error { return sample.take(ctx, b) }}
	if err := parts.Plan(ctx, d, read); err != nil {
		return nil, err
	}
	p := &Plan{Operation: d.Run.Job.Operation}
	p.addRecorded(d.Recorded)
	p.addTotals(read.Totals)
	p.More = read.More
	p.Special = read.Totals.Reasons["no_match"]
	if err := p.addFiles(read, sample); err != nil {
		return nil, err
	}
	routes, err := order.Tally(ctx, keys, d.Run.Workers)
	if err != nil {
		return nil, err
	}
	for _, n := range routes {
		p.Keys += n
	}
	p.Duplicates = read.Totals.Matched - p.Keys
	if planner != nil {
		err = r.planCalls(ctx, p, routes)
	}
	return p, err
}

// sampledBatches bounds how many batches are sampled. Samples are taken from
// the start of the first parts.
const sampledBatches = 8

// sample makes the columns of some rows as a run does, and measures two files:
// one with a single row, which shows the fixed cost of a part, and one with all
// rows.
type sample struct {
	decision *begin.Decision
	engine   *rows.Engine // nil if others are asked
	mu       sync.Mutex
	batches  int
	builder  *columns.Builder
	one, all *sinks.Sizer
	rows     int64
}

func newSample(d *begin.Decision) *sample {
	s := &sample{decision: d}
	if d.Run.Order.Engine() != nil {
		s.engine = d.NewEngine(semaphore.NewWeighted(int64(d.Run.Workers)))
	}
	return s
}

// take measures some rows of a batch. It is safe for concurrent use.
func (s *sample) take(ctx context.Context, b *columns.Batch) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.batches == sampledBatches {
		return nil
	}
	s.batches++
	return s.answer(ctx, b, s.add)
}

// add measures rows with their answers.
func (s *sample) add(b *columns.Batch) error {
	if s.builder == nil {
		columns := s.decision.Columns
		s.builder = columns.Layout.NewBuilder()
		var errOne, errAll error
		s.one, errOne = columns.Table.NewSizer()
		s.all, errAll = columns.Table.NewSizer()
		if err := errors.Join(errOne, errAll); err != nil {
			return err
		}
		if err := s.measure(s.one, b.Slice(0, 1)); err != nil {
			return err
		}
	}
	s.rows += int64(b.Len())
	return s.measure(s.all, b)
}

func (s *sample) measure(with *sinks.Sizer, b *columns.Batch) error {
	return parts.EachRecord(s.builder, b, func(rec arrow.Record) error {
		with.Add(rec)
		return nil
	})
}

// answer hands over the rows of a batch with answers that are free. Rows that would be sent
// to a service are measured as if they had no match.
func (s *sample) answer(ctx context.Context, b *columns.Batch, each func(*columns.Batch) error) error {
	if s.engine != nil {
		return s.engine.Answer(ctx, b, each)
	}
	b.Receipts = make([]outcome.Receipt, b.Len())
	for i, o := range b.Outcomes {
		if o == outcome.Matched {
			b.Outcomes[i] = outcome.NoMatch
		}
	}
	return each(b)
}

// addFiles adds the files of the remaining rows to those of the recorded ones. It estimates
// the size of a row from the recorded rows, or else from the sampled rows.
func (p *Plan) addFiles(read *parts.Planned, sample *sample) error {
	f, left := &p.Files, read.Totals.Rows
	recorded := f.Bytes
	f.Parts += read.Parts
	f.Partitioned += read.Files
	f.Rejects += read.Rejects
	switch {
	case left == 0:
	case p.Operation.IsKeyword():
		f.AtLeast = true
	case p.Recorded.Rows > 0:
		f.Bytes += int64(float64(recorded) / float64(p.Recorded.Rows) * float64(left))
	default:
		bytes, err := sample.bytes(max(read.Parts, read.Files), left)
		if err != nil {
			return err
		}
		f.Bytes += bytes
		f.AtLeast = sample.engine == nil
	}
	return nil
}

// bytes estimates the size of some rows in some files.
func (s *sample) bytes(files int, rows int64) (int64, error) {
	one, errOne := s.one.Bytes()
	all, errAll := s.all.Bytes()
	row := float64(all-one) / float64(max(s.rows-1, 1))
	return int64(files)*one + int64(row*float64(rows-int64(files))), errors.Join(errOne, errAll)
}
