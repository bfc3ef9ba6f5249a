package parts

import (
	"context"
	"sync"

	"github.com/leadetl/leadetl/pipeline/begin"
	"github.com/leadetl/leadetl/pipeline/columns"
	"github.com/leadetl/leadetl/pipeline/job"
	"github.com/leadetl/leadetl/pipeline/rows"
	"github.com/leadetl/leadetl/sinks"
)

// Planned is what is known of the parts that a run would make.
type Planned struct {
	Lookers []rows.Looker // give the rows, and ask nothing
	// Sample is given the first rows of each part.
	Sample func(*columns.Batch) error

	mu      sync.Mutex
	Totals  sinks.Totals // Matched counts the rows that need an answer
	More    int64        // rows with a key whose cell has more than its identifier
	Parts   int
	Files   int // of the rows, if these are partitioned
	Rejects int // parts with malformed lines
}

// Plan reads the rows of the parts that are not recorded, as Work.Make does, and writes nothing.
func Plan(ctx context.Context, d *begin.Decision, p *Planned) error {
	w := &Work{Decision: d, Log: NewLog(d), planned: p}
	return w.makeParts(ctx, job.WholeInput)
}

// planRows is make in a plan.
func (m *partMaker) planRows(ctx context.Context, q *partQueue, leave func()) error {
	if err := m.writeRows(ctx, q, leave); err != nil || q.dropped.Load() {
		return err
	}
	p := m.work.planned
	p.mu.Lock()
	defer p.mu.Unlock()
	p.Totals.Add(m.totals)
	p.Parts++
	if m.folders.IsPartitioned() {
		p.Files += m.folders.Files()
	}
	if m.totals.Malformed > 0 {
		p.Rejects++
	}
	return nil
}

// plan counts the rows of a batch, and the folders that they go to.
func (m *partMaker) plan(b *columns.Batch) error {
	if b.Len() == 0 {
		return nil
	}
	if m.folders.IsPartitioned() {
		for _, value := range m.decision.Columns.Layout.PartitionValues(b) {
			if _, err := m.folders.Add(value); err != nil {
				return err
			}
		}
	}
	t := Count(b)
	if m.decision.Run.Job.CountsInput() {
		t.SourceRows = InputRows(b)
	}
	m.addTotals(t)
	m.work.planned.count(b)
	if m.sampled || m.decision.Run.Job.Operation.IsKeyword() {
		return nil
	}
	m.sampled = true
	return m.work.planned.Sample(b)
}

func (p *Planned) count(b *columns.Batch) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.More += int64(b.More)
}
