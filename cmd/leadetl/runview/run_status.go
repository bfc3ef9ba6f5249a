package runview

import (
	"fmt"
	"math"
	"time"

	"github.com/leadetl/leadetl/internal/figures"
	"github.com/leadetl/leadetl/pipeline/pace"
	"github.com/leadetl/leadetl/pipeline/stats"
)

const (
	// tooSoon is how long no remaining time is shown: the first calls start
	// slowly.
	tooSoon = 3 * time.Second
	// justNow is the period over which the call rate is measured.
	justNow = 10 * time.Second
)

// status is the state of a run at one moment. Its methods describe it in words;
// an empty text means nothing to show.
type status struct {
	snapshot stats.Snapshot
	now      time.Time
	elapsed  time.Duration
	recent   *stats.Recent
}

// line returns the facts of the live line. Most of them are omitted if there is
// no space.
func (s status) line() []said {
	matched := s.matched()
	if matched != "" {
		matched += " matched"
	}
	rows := figures.Plural(s.rows(), "row")
	workers := said{"", 5}
	if n := s.snapshot.Workers; n > 0 {
		workers.text = figures.Plural(n, "worker")
	}
	if s.snapshot.Calls == nil {
		return []said{{s.done(), 0}, {rows, 2}, {matched, 4}, {figures.Grouped(s.rowRate()) + " rows/s", 3}, {s.left(), 1}, workers}
	}
	why, rank := whyWaiting(s.snapshot.Calls, s.now), 1
	calls := said{figures.Decimal(s.callRate()) + " calls/s", 4}
	switch reason(s.snapshot.Calls) {
	case pace.Rate, pace.Spread: // normal for a run with a limit
		rank = 6
	case pace.RetryAfter, pace.Dead:
		if s.snapshot.Calls.Resolvers == nil {
			calls.text = "" // there are no calls
		}
	}
	credits := figures.Short(s.snapshot.Calls.Credits) + " credits"
	if s.snapshot.Calls.Credits == 1 {
		credits = "1 credit"
	}
	return []said{{s.done(), 0}, {rows, 2}, {matched, 5}, calls, {credits, 3}, {s.left(), 1}, {why, rank}, workers}
}

// rows returns the number of rows done, including those of unfinished batches.
func (s status) rows() int64 {
	if s.snapshot.Searching {
		return s.snapshot.Done.Rows
	}
	return s.snapshot.InputDone()
}

// matched returns the share of rows that matched, or of questions while no rows
// are complete.
func (s status) matched() string {
	if s.snapshot.Done.Rows == 0 && s.snapshot.Calls != nil {
		return figures.Share(s.snapshot.Calls.Matched, s.snapshot.Calls.Closed)
	}
	return figures.Share(s.snapshot.Done.Matched, s.snapshot.Done.Rows)
}

// shareSteps is the length of the full bar.
const shareSteps = 10_000

// progress returns how much of the bar is full, in shareSteps.
func (s status) progress() (done, of int64) {
	return int64(s.snapshot.Share() * shareSteps), shareSteps
}

// done returns the share of the input that is done, or how much of it is read.
func (s status) done() string {
	if s.snapshot.InputRows() == 0 && s.snapshot.BytesTotal <= 0 {
		return figures.Size(s.snapshot.BytesRead)
	}
	return fmt.Sprintf("%d%%", int(100*s.snapshot.Share()+1e-9)) // 0.29 is less than 29/100
}

// rowRate returns how many rows per second this run makes.
func (s status) rowRate() int64 {
	return int64(float64(s.snapshot.Done.Rows-s.snapshot.Known) / max(s.elapsed.Seconds(), 1e-9))
}

// callRate returns the recent number of calls per second.
func (s status) callRate() float64 {
	_, calls := s.recent.Rates(s.now, s.snapshot, justNow)
	return calls
}

// left returns the remaining time at the recent pace: of the calls if some are left,
// otherwise of the rows.
func (s status) left() string {
	of := s.snapshot.InputRows()
	if of <= 0 || s.recent.Span(s.now) < tooSoon || s.snapshot.Calls != nil && reason(s.snapshot.Calls) == pace.Dead {
		return ""
	}
	left, stalled := s.recent.TimeOfCalls(s.now, s.snapshot)
	if left == 0 && !stalled {
		perSecond, _ := s.recent.Rates(s.now, s.snapshot, stats.RecentFor)
		if perSecond <= 0 {
			return ""
		}
		left = time.Duration(min(float64(max(of-s.snapshot.InputDone(), 0))/perSecond, math.MaxInt32) * float64(time.Second))
	}
	if stalled || left > 30*24*time.Hour {
		return "" // the estimate would be too inaccurate
	}
	return figures.Compact(left) + " left"
}
