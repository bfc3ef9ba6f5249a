package pipeline

import (
	"context"
	"errors"
	"sync"

	"golang.org/x/sync/semaphore"

	"github.com/leadetl/leadetl/pipeline/columns"
	"github.com/leadetl/leadetl/pipeline/outcome"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/sinks"
)

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
		s.builder = columns.layout.NewBuilder()
		var errOne, errAll error
		s.one, errOne = columns.table.NewSizer()
		s.all, errAll = columns.table.NewSizer()
		if err := errors.Join(errOne, errAll); err != nil {
			return err
		}
		s.measure(s.one, b.Slice(0, 1))
	}
	for from := 0; from < b.Len(); {
		to := b.Cut(from, recordBytes)
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
