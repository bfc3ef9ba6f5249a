// Package stats counts what a run has done: rows, calls, latencies, and how fast
// over its time. Counting locks nothing that a row or a call waits for.
package stats

import (
	"sync"

	"github.com/leadetl/leadetl/sinks"
)

// Progress is what a run has done so far. Its methods are safe from any
// goroutine while the run continues.
type Progress struct {
	// Calls counts the calls of a run that asks a service, nil otherwise. It is
	// set before the run.
	Calls *CallCounters
	// Resolver is whose calls they are, if they are of one.
	Resolver string
	// Recent is filled by a Recorder.
	Recent Recent

	mu    sync.Mutex
	now   Snapshot // without what Calls has
	begun bool     // to read
}

// Snapshot is a look at a Progress.
type Snapshot struct {
	// Done are the lines that are done, without reasons; those of parts that earlier
	// runs made are among them, and Known counts their rows.
	Done                 sinks.Totals
	Known, KnownRejected int64
	// Searching says that the input rows are keyword searches, of which each
	// makes rows of its own.
	Searching bool
	// RowsRead runs ahead of Done: rows wait for their answers. AllRead says
	// that it is all of them.
	RowsRead              int64
	AllRead               bool
	Parts                 int64 // published and recorded
	BytesRead, BytesTotal int64 // of RowsRead, as stored; total is -1 when unknown
	// LeastDone and LeastShare are the most that was seen before of InputDone
	// and Share: estimates change, but what is done stays done.
	LeastDone  int64
	LeastShare float64
	// Unasked are rows without a question, and Withheld questions that may not be
	// asked; none where no service is asked.
	Unasked, Withheld int64
	// Calls is nil where no service is asked.
	Calls *CallSnapshot
	// Workers is how many other processes do the run; 0 if this process does it.
	Workers int
}

// Snapshot looks at the run as it is now.
func (p *Progress) Snapshot() Snapshot {
	var calls Snapshot // before the rows that they answer
	if p.Calls != nil {
		calls = Snapshot{Unasked: p.Calls.unasked.Load(), Withheld: p.Calls.withheld.Load(), Calls: new(p.Calls.Snapshot())}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.now
	s.Unasked, s.Withheld, s.Calls = calls.Unasked, calls.Withheld, calls.Calls
	if !p.begun {
		s.BytesTotal = -1
	}
	p.now.LeastDone, p.now.LeastShare = s.InputDone(), s.Share()
	return s
}

// InputDone estimates the input rows that are done, those in the middle of a
// batch included: of a batch that waits for a service the answers come one by
// one, and Rows grows when the last of them is there. It is exact when nothing
// is under way, and never shrinks.
func (s Snapshot) InputDone() int64 {
	done := s.Done.InputRows()
	switch c := s.Calls; {
	case s.Searching:
		done = s.Done.Searches + s.Done.NotSelected
	case c != nil && c.Asked > 0:
		perQuestion := float64(c.Asked+c.Duplicates) / float64(c.Asked)
		done = max(done, min(s.withoutQuestion()+int64(float64(c.Closed)*perQuestion), s.RowsRead))
	}
	return max(done, s.LeastDone)
}

// withoutQuestion counts the rows that ask nothing: those of earlier runs, and those
// without a key. The others may share questions.
func (s Snapshot) withoutQuestion() int64 {
	return s.Known + max(s.Done.Rejected-s.KnownRejected, s.Unasked)
}

// CallsLeft estimates how many questions wait for a call: those that are open, and
// those of rows that are not asked about yet, if as many of them need a call as share.
// It is 0 where nothing is known.
func (s Snapshot) CallsLeft(share float64) float64 {
	c := s.Calls
	if c == nil || c.Asked == 0 || s.Searching {
		return 0
	}
	seen := c.Asked + c.Duplicates + s.Done.NotSelected
	rows := s.InputRows() - max(s.Done.InputRows(), s.withoutQuestion()+seen)
	perRow := float64(c.Asked) / float64(seen+s.Unasked)
	return float64(max(c.Asked-c.Closed, 0)) + float64(max(rows, 0))*perRow*share
}

// InputRows estimates the rows of the whole input by the share of its bytes
// that is read, exactly when that is all; 0 where nothing is known.
func (s Snapshot) InputRows() int64 {
	switch {
	case s.AllRead:
		return s.RowsRead
	case s.BytesTotal < 0 || s.BytesRead <= 0:
		return 0
	}
	return max(s.RowsRead, int64(float64(s.RowsRead)*float64(s.BytesTotal)/float64(s.BytesRead)))
}

// Share estimates the share of the whole input that is done: by rows, or by
// bytes before the first row. It never shrinks; 0 where nothing is known.
func (s Snapshot) Share() float64 {
	share := 0.0
	switch all := s.InputRows(); {
	case all > 0:
		share = float64(s.InputDone()) / float64(all)
	case s.BytesTotal > 0:
		share = float64(s.BytesRead) / float64(s.BytesTotal)
	}
	return min(max(share, s.LeastShare), 1)
}

// SetWorkers says how many other processes do the run now.
func (p *Progress) SetWorkers(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now.Workers = n
}

// Begin says before the first row whether the rows are keyword searches.
func (p *Progress) Begin(searches bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now.Searching = searches
}

// CountRead counts rows that were read, up to a position in the bytes of the
// input.
func (p *Progress) CountRead(rows int, position, total int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now.RowsRead += int64(rows)
	p.now.BytesRead, p.now.BytesTotal, p.begun = position, total, true
}

// CountAllRead says that CountRead has counted the last rows.
func (p *Progress) CountAllRead() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now.AllRead, p.begun = true, true
}

// CountPart counts a part that is published and recorded.
func (p *Progress) CountPart() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now.Parts++
}

// CountEarlier counts the lines of a part that an earlier run made.
func (p *Progress) CountEarlier(t sinks.Totals) {
	p.mu.Lock()
	p.now.Known += t.Rows
	p.now.KnownRejected += t.Rejected
	p.mu.Unlock()
	p.Count(t)
}

// Count counts lines that are done.
func (p *Progress) Count(t sinks.Totals) {
	t.Reasons = nil
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now.Done.Add(t)
}

// Reached sets what other processes have done of the run, unless it was more before.
func (p *Progress) Reached(done sinks.Totals, parts int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if done.Rows >= p.now.Done.Rows {
		p.now.Done, p.now.Parts = done, parts
	}
}
