package pipeline

import "time"

// mostSteps bounds a series, but for the shorter step at its end: when there
// are more, they become half as many of double length.
const mostSteps = 512

// Series is how fast a run was over its time: the rows and calls of each step,
// per second. The last step may be shorter than the others.
type Series struct {
	StepSeconds    float64   `json:"step_seconds"`
	RowsPerSecond  []float64 `json:"rows_per_second"`
	CallsPerSecond []float64 `json:"calls_per_second"`
}

// sampler makes a series of counts that only grow.
type sampler struct {
	step time.Duration
	ends []counts // at the end of each step
}

type counts struct{ rows, calls int64 }

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
	add := func(now counts, over time.Duration) {
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
	return made
}

// perSecond is a rate to a thousandth.
func perSecond(n int64, over time.Duration) float64 {
	return rounded(float64(n)/over.Seconds(), 1000)
}
