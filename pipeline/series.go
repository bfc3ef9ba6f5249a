package pipeline

import (
	"time"

	"github.com/leadetl/leadetl/pipeline/pace"
)

// mostSteps bounds a series, but for the shorter step at its end: when there
// are more, they become half as many of double length.
const mostSteps = 512

// Series is how fast a run was over its time: the rows and calls of each step,
// per second, and what it waited for. The last step may be shorter than the
// others.
type Series struct {
	StepSeconds    float64   `json:"step_seconds"`
	RowsPerSecond  []float64 `json:"rows_per_second"`
	CallsPerSecond []float64 `json:"calls_per_second"`
	// Waiting is the share of each step in which anybody waited before a call,
	// by pace.Reason. Reasons nobody waited for are left out.
	Waiting map[string][]float64 `json:"waiting,omitempty"`
}

// sampler makes a series of counts that only grow.
type sampler struct {
	step time.Duration
	ends []counts // at the end of each step
}

// counts are what a run has done so far, and how long it waited for what.
type counts struct {
	rows, calls int64
	waited      [len(waitReasons)]time.Duration
}

// waitReasons are those that are counted.
var waitReasons = [...]pace.Reason{pace.Concurrency, pace.Rate, pace.Spread, pace.RetryAfter, pace.Dead}

// add takes the counts at a moment. It does nothing before the end of a step,
// and ends every step that is over by then.
func (s *sampler) add(at time.Duration, c counts) {
	for at >= time.Duration(len(s.ends)+1)*s.step {
		if len(s.ends) < mostSteps {
			s.ends = append(s.ends, c)
			continue
		}
		for i := range mostSteps / 2 {
			s.ends[i] = s.ends[2*i+1]
		}
		s.ends = s.ends[:mostSteps/2]
		s.step *= 2
	}
}

// series is what was sampled, and the rest since: c after so much time.
func (s *sampler) series(at time.Duration, c counts) Series {
	made := Series{StepSeconds: s.step.Seconds(), RowsPerSecond: []float64{}, CallsPerSecond: []float64{}}
	var before counts
	var waiting [len(waitReasons)][]float64
	add := func(now counts, over time.Duration) {
		for i, waited := range now.waited {
			share := float64(waited-before.waited[i]) / float64(over)
			waiting[i] = append(waiting[i], rounded(min(max(share, 0), 1), 1000))
		}
		made.RowsPerSecond = append(made.RowsPerSecond, perSecond(now.rows-before.rows, over))
		made.CallsPerSecond = append(made.CallsPerSecond, perSecond(now.calls-before.calls, over))
		before = now
	}
	for _, end := range s.ends {
		add(end, s.step)
	}
	if rest := at - time.Duration(len(s.ends))*s.step; rest > 0 && c != before {
		add(c, rest)
	}
	for i, waited := range c.waited {
		if waited > 0 {
			if made.Waiting == nil {
				made.Waiting = map[string][]float64{}
			}
			made.Waiting[string(waitReasons[i])] = waiting[i]
		}
	}
	return made
}

// perSecond is a rate to a thousandth.
func perSecond(n int64, over time.Duration) float64 {
	return rounded(float64(n)/over.Seconds(), 1000)
}
