// Package stats counts what a run has done: rows, calls, latencies, and how fast
// over its time. Counting locks nothing that a row or a call waits for.
package stats

import (
	"sync/atomic"

	"github.com/leadetl/leadetl/sinks"
)

// Progress is what a run has done so far. Its methods are safe from any
// goroutine while the run goes on.
type Progress struct {
	// Calls counts the calls of a run that asks a service, nil otherwise. It is
	// set before the run.
	Calls *CallCounters

	rows, matched, noMatch, rejected, failed, suppressed, skipped, malformed atomic.Int64

	searches atomic.Int64
	known    atomic.Int64
	read     atomic.Int64
	parts    atomic.Int64
	position atomic.Pointer[func() (read, total int64)]
}

// Snapshot is a look at a Progress.
type Snapshot struct {
	// Rows are those that are done, by outcome; the rows of parts that earlier
	// runs made are among them, and Known counts those.
	Rows, Matched, NoMatch, Rejected, Failed, Suppressed, Skipped int64
	Malformed                                                     int64
	Known                                                         int64
	// Searches counts the input rows that are done where these are keyword
	// searches, of which each makes rows of its own; else it is 0.
	Searches int64
	// RowsRead runs ahead of Rows: rows wait for their answers.
	RowsRead              int64
	Parts                 int64 // published and recorded
	BytesRead, BytesTotal int64 // of the input as stored; total is -1 when unknown
	// Calls is nil where no service is asked.
	Calls *CallSnapshot
}

// Snapshot looks at the run as it is now.
func (p *Progress) Snapshot() Snapshot {
	s := Snapshot{
		Rows: p.rows.Load(), Matched: p.matched.Load(), NoMatch: p.noMatch.Load(), Rejected: p.rejected.Load(),
		Failed: p.failed.Load(), Suppressed: p.suppressed.Load(), Skipped: p.skipped.Load(), Malformed: p.malformed.Load(),
		Known: p.known.Load(), Searches: p.searches.Load(), RowsRead: p.read.Load(), Parts: p.parts.Load(), BytesTotal: -1,
	}
	if position := p.position.Load(); position != nil {
		s.BytesRead, s.BytesTotal = (*position)()
	}
	if p.Calls != nil {
		calls := p.Calls.Snapshot()
		s.Calls = &calls
	}
	return s
}

// InputDone estimates the input rows that are done, those in the middle of a
// batch included: of a batch that waits for a service the answers come one by
// one, and Rows grows when the last of them is there. It is exact when nothing
// is under way.
func (s Snapshot) InputDone() int64 {
	c := s.Calls
	switch {
	case s.Searches > 0:
		return s.Searches
	case c == nil || c.Asked == 0:
		return s.Rows
	}
	// Rows without a key ask nothing. The others ask as many questions as
	// until now: their twins are known when their batch is done.
	perQuestion := float64(c.Asked+c.Duplicates) / float64(c.Asked)
	done := s.Known + s.Rejected + int64(float64(c.Closed)*perQuestion)
	return max(s.Rows, min(done, s.RowsRead))
}

// InputRows estimates the rows of the whole input by the share of its bytes
// that is read, exactly when that is all; 0 where nothing is known.
func (s Snapshot) InputRows() int64 {
	switch {
	case s.BytesTotal < 0 || s.BytesRead <= 0:
		return 0
	case s.BytesRead >= s.BytesTotal:
		return s.RowsRead
	}
	return int64(float64(s.RowsRead) * float64(s.BytesTotal) / float64(s.BytesRead))
}

// ReadFrom says where the position in the input is looked up.
func (p *Progress) ReadFrom(position func() (read, total int64)) { p.position.Store(&position) }

// CountRead counts rows that were read.
func (p *Progress) CountRead(rows int) { p.read.Add(int64(rows)) }

// CountPart counts a part that is published and recorded.
func (p *Progress) CountPart() { p.parts.Add(1) }

// CountEarlier counts the lines of a part that an earlier run made.
func (p *Progress) CountEarlier(t sinks.Totals) {
	p.known.Add(t.Rows)
	p.Count(t)
}

// Count counts lines that are done.
func (p *Progress) Count(t sinks.Totals) {
	p.rows.Add(t.Rows)
	p.matched.Add(t.Matched)
	p.noMatch.Add(t.NoMatch)
	p.rejected.Add(t.Rejected)
	p.failed.Add(t.Failed)
	p.suppressed.Add(t.Suppressed)
	p.skipped.Add(t.Skipped)
	p.malformed.Add(t.Malformed)
	p.searches.Add(t.Searches)
}
