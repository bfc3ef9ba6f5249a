package runview

import (
	"fmt"
	"time"

	"github.com/leadetl/leadetl/internal/figures"
	"github.com/leadetl/leadetl/pipeline/pace"
	"github.com/leadetl/leadetl/pipeline/stats"
)

const (
	// tooSoon is how long nothing is said of the time left: the first calls leave
	// slowly.
	tooSoon = 3 * time.Second
	// justNow is what calls a second are counted over.
	justNow = 10 * time.Second
)

// status is a run at a moment. Its methods put it into words, empty where there
// is nothing to say.
type status struct {
	snapshot stats.Snapshot
	now      time.Time
	elapsed  time.Duration
	recent   *stats.Recent
}

// line is the live line, most of it left out where there is no room.
func (s status) line() []said {
	matched := s.matched()
	if matched != "" {
		matched += " matched"
	}
	rows := figures.Grouped(s.rows()) + " rows"
	if s.snapshot.Calls == nil {
		return []said{{s.done(), 0}, {rows, 2}, {matched, 4}, {figures.Grouped(s.rowRate()) + " rows/s", 3}, {s.left(), 1}}
	}
	why, rank := whyWaiting(s.snapshot.Calls, s.now), 1
	calls := said{figures.Decimal(s.callRate()) + " calls/s", 4}
	switch pace.Reason(s.snapshot.Calls.Reason) {
	case pace.Rate, pace.Spread: // the normal state of a run with a limit
		rank = 6
	case pace.RetryAfter, pace.Dead:
		calls.text = "" // there are none
	}
	return []said{{s.done(), 0}, {rows, 2}, {matched, 5}, calls, {figures.Short(s.snapshot.Calls.Credits) + " credits", 3}, {s.left(), 1}, {why, rank}}
}

// rows are those that are done, in the middle of a batch too.
func (s status) rows() int64 {
	if s.snapshot.Searching {
		return s.snapshot.Rows
	}
	return s.snapshot.InputDone()
}

// matched is the share of the rows that matched; that of the questions until
// the first rows are whole.
func (s status) matched() string {
	if s.snapshot.Rows == 0 && s.snapshot.Calls != nil {
		return figures.Share(s.snapshot.Calls.Matched, s.snapshot.Calls.Closed)
	}
	return figures.Share(s.snapshot.Matched, s.snapshot.Rows)
}

// shareSteps is what the whole bar has.
const shareSteps = 10_000

// progress is how much of the bar is full, in shareSteps.
func (s status) progress() (done, of int64) {
	return int64(s.snapshot.Share() * shareSteps), shareSteps
}

// done is the share of the input that is done, or how much of it is read.
func (s status) done() string {
	if s.snapshot.InputRows() == 0 && s.snapshot.BytesTotal <= 0 {
		return figures.Size(s.snapshot.BytesRead)
	}
	return fmt.Sprintf("%d%%", int(100*s.snapshot.Share()+1e-9)) // 0.29 is less than 29/100
}

// rowRate is how many rows a second this run makes.
func (s status) rowRate() int64 {
	return int64(float64(s.snapshot.Rows-s.snapshot.Known) / max(s.elapsed.Seconds(), 1e-9))
}

// callRate is how many calls a second were made just now.
func (s status) callRate() float64 {
	_, calls := s.recent.Rates(s.now, s.snapshot, justNow)
	return calls
}

// left is the time left at the pace of late.
func (s status) left() string {
	done, of := s.snapshot.InputDone(), s.snapshot.InputRows()
	perSecond, _ := s.recent.Rates(s.now, s.snapshot, stats.RecentFor)
	if of <= 0 || perSecond <= 0 || s.recent.Span(s.now) < tooSoon || s.snapshot.Calls != nil && pace.Reason(s.snapshot.Calls.Reason) == pace.Dead {
		return ""
	}
	left := float64(max(of-done, 0)) / perSecond
	if left > (30 * 24 * time.Hour).Seconds() {
		return "" // no more than a guess
	}
	return figures.Compact(time.Duration(left*float64(time.Second))) + " left"
}
