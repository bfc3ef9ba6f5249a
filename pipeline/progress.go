package pipeline

import (
	"sync/atomic"

	"github.com/leadetl/leadetl/sinks"
)

// Progress is what a run has done so far. Its methods are safe from any
// goroutine while the run goes on.
type Progress struct {
	rows, matched, rejected, malformed atomic.Int64
	parts                              atomic.Int64
	position                           atomic.Pointer[func() (read, total int64)]
}

// Snapshot is a look at a Progress.
type Snapshot struct {
	Rows, Matched, Rejected, Malformed int64
	Parts                              int64 // published and recorded
	BytesRead, BytesTotal              int64 // of the input as stored; total is -1 when unknown
}

// Snapshot looks at the run as it is now.
func (p *Progress) Snapshot() Snapshot {
	s := Snapshot{
		Rows: p.rows.Load(), Matched: p.matched.Load(), Rejected: p.rejected.Load(), Malformed: p.malformed.Load(),
		Parts: p.parts.Load(), BytesTotal: -1,
	}
	if position := p.position.Load(); position != nil {
		s.BytesRead, s.BytesTotal = (*position)()
	}
	return s
}

func (p *Progress) add(t sinks.Totals) {
	p.rows.Add(t.Rows)
	p.matched.Add(t.Matched)
	p.rejected.Add(t.Rejected)
	p.malformed.Add(t.Malformed)
}
