package stats

import (
	"testing"

	"github.com/leadetl/leadetl/pipeline/outcome"
	"github.com/leadetl/leadetl/sinks"
)

// TestShareNeverShrinks: what is known of the whole changes, what is done stays
// done.
func TestShareNeverShrinks(t *testing.T) {
	p := &Progress{Calls: &CallCounters{}}
	last := Snapshot{}
	look := func(step string, done, all int64, percent int) {
		t.Helper()
		s := p.Snapshot()
		if s.InputDone() != done || s.InputRows() != all || int(100*s.Share()) != percent {
			t.Errorf("%s: %d of %d rows, %v; want %d of %d, %d%%", step, s.InputDone(), s.InputRows(), s.Share(), done, all, percent)
		}
		if s.InputDone() < last.InputDone() || s.Share() < last.Share() {
			t.Errorf("%s: it shrank from %d, %v", step, last.InputDone(), last.Share())
		}
		last = s
	}
	p.CountRead(100, 100, 1000)
	look("a part is read", 0, 1000, 0)
	p.CountEarlier(sinks.Totals{Rows: 100, Matched: 60, Rejected: 40})
	look("an earlier run made it", 100, 1000, 10)
	p.CountRead(100, 200, 1000)
	p.Calls.Asked(80)
	for range 40 {
		p.Calls.Closed(outcome.Matched)
	}
	look("half of the questions are closed", 140, 1000, 14)
	p.Calls.Duplicates(20)
	look("duplicates are known", 150, 1000, 15)
	p.CountRead(300, 250, 1000) // short rows: there are more of them than was thought
	look("more rows than was thought", 150, 2000, 15)
	p.CountRead(0, 1000, 1000)
	look("long malformed lines", 150, 500, 30)
	p.CountAllRead()
	p.Count(sinks.Totals{Rows: 400, Matched: 400})
	look("all", 500, 500, 100)
}

// TestShareOfSearches: a search that makes many rows is one row of the input.
func TestShareOfSearches(t *testing.T) {
	p := &Progress{}
	p.Begin(true)
	p.CountRead(4, 10, -1)
	p.Count(sinks.Totals{Rows: 5000, Matched: 5000})
	if s := p.Snapshot(); s.InputDone() != 0 || s.InputRows() != 0 || s.Share() != 0 {
		t.Errorf("%d of %d searches, %v, before the first is done", s.InputDone(), s.InputRows(), s.Share())
	}
	p.Count(sinks.Totals{Searches: 1})
	p.CountAllRead()
	if s := p.Snapshot(); s.InputDone() != 1 || s.InputRows() != 4 || s.Share() != 0.25 {
		t.Errorf("%d of %d searches, %v, want 1 of 4", s.InputDone(), s.InputRows(), s.Share())
	}
}

// TestCallsLeft: rows that are not selected need no call, whether they are read or not.
func TestCallsLeft(t *testing.T) {
	p := &Progress{Calls: &CallCounters{}}
	p.CountRead(100, 100, 200)
	p.Count(sinks.Totals{SourceRows: 80, NotSelected: 80})
	p.Calls.Asked(20)
	for range 20 {
		p.Calls.Closed(outcome.Matched)
	}
	if left := p.Snapshot().CallsLeft(1); left != 20 {
		t.Errorf("%v calls are left of the other half, want 20", left)
	}
	p.CountRead(100, 200, 200)
	p.CountAllRead()
	p.Count(sinks.Totals{SourceRows: 100, NotSelected: 80, Rows: 20})
	p.Calls.Asked(20)
	for range 20 {
		p.Calls.Closed(outcome.Matched)
	}
	if left := p.Snapshot().CallsLeft(1); left != 0 {
		t.Errorf("%v calls are left at the end", left)
	}
}
