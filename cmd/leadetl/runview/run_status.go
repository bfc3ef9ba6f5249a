package runview

import (
	"fmt"
	"sync"
	"time"

	"github.com/leadetl/leadetl/internal/figures"
	"github.com/leadetl/leadetl/pipeline/pace"
	"github.com/leadetl/leadetl/pipeline/stats"
)

const (
	// recently is what the time left is worked out from. A service is slow or
	// paused for a while, and stored answers come a thousand times as fast as
	// calls: the run as a whole says little about the rest of it.
	recently = time.Minute
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
	history  *history
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
	_, calls := s.history.rates(justNow)
	return calls
}

// left is the time left at the pace of late.
func (s status) left() string {
	done, of := s.snapshot.InputDone(), s.snapshot.InputRows()
	perSecond, _ := s.history.rates(recently)
	if of <= 0 || perSecond <= 0 || s.history.span() < tooSoon || s.snapshot.Calls != nil && pace.Reason(s.snapshot.Calls.Reason) == pace.Dead {
		return ""
	}
	left := float64(max(of-done, 0)) / perSecond
	if left > (30 * 24 * time.Hour).Seconds() {
		return "" // no more than a guess
	}
	return figures.Compact(time.Duration(left*float64(time.Second))) + " left"
}

// history is how far a run was, second by second, for as long as that says
// something about what is to come. It is safe from several goroutines.
type history struct {
	mu    sync.Mutex
	marks []mark
	known int64
}

type mark struct {
	at          time.Time
	done, calls int64
}

// note adds the status of a run and forgets what is too old.
func (h *history) note(now time.Time, s stats.Snapshot) {
	h.mu.Lock()
	defer h.mu.Unlock()
	done := s.InputDone()
	if s.Known != h.known { // passing by what is made says nothing of making
		h.marks, h.known = nil, s.Known
	}
	m := mark{at: now, done: done}
	if s.Calls != nil {
		m.calls = s.Calls.Calls
	}
	// The last mark moves until it is a second younger than the one before.
	if n := len(h.marks); n >= 2 && h.marks[n-1].at.Sub(h.marks[n-2].at) < time.Second {
		h.marks[n-1] = m
	} else {
		h.marks = append(h.marks, m)
	}
	for len(h.marks) > 2 && now.Sub(h.marks[1].at) >= recently {
		h.marks = h.marks[1:]
	}
}

// span is how long the history is.
func (h *history) span() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.marks) == 0 {
		return 0
	}
	return h.marks[len(h.marks)-1].at.Sub(h.marks[0].at)
}

// rates are how much was done and called in a second, since a mark that is so
// old, or the first.
func (h *history) rates(over time.Duration) (done, calls float64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.marks) < 2 {
		return 0, 0
	}
	last := h.marks[len(h.marks)-1]
	from := h.marks[0]
	for _, m := range h.marks[1 : len(h.marks)-1] {
		if last.at.Sub(m.at) < over {
			break
		}
		from = m
	}
	passed := last.at.Sub(from.at).Seconds()
	if passed <= 0 {
		return 0, 0
	}
	return float64(last.done-from.done) / passed, float64(last.calls-from.calls) / passed
}
