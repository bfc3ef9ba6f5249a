package stats

import (
	"math"
	"sync"
	"time"

	"github.com/leadetl/leadetl/pipeline/pace"
)

// maxSteps bounds the steps of a series, without the shorter one at its end. When there are
// more, two become one of double length.
const maxSteps = 512

// Series is how fast a run was over its time: the rows and calls of each step,
// per second, and what it waited for. The last step may be shorter than the
// others.
type Series struct {
	StepSeconds    float64   `json:"step_seconds"`
	RowsPerSecond  []float64 `json:"rows_per_second"`
	CallsPerSecond []float64 `json:"calls_per_second"`
	// Waiting is the share of each step in which calls waited before they left, by
	// pace.Reason. Reasons without waits are left out.
	Waiting map[string][]float64 `json:"waiting,omitempty"`
}

// sampleEvery is the first step of a series.
const sampleEvery = time.Second

// Recorder samples the progress of a run every second, for its report and for the
// time left.
type Recorder struct {
	progress *Progress
	began    time.Time
	sampler  sampler
	halt     func()
}

// Record starts to sample a run. Stop ends it.
func Record(p *Progress) *Recorder {
	r := &Recorder{progress: p, began: time.Now(), sampler: sampler{step: sampleEvery}}
	p.Recent.Note(r.began, p.Snapshot())
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		ticker := time.NewTicker(sampleEvery)
		defer ticker.Stop()
		for {
			select {
			case now := <-ticker.C:
				s := p.Snapshot()
				r.sampler.sample(now.Sub(r.began), countsOf(s))
				p.Recent.Note(now, s)
			case <-quit:
				return
			}
		}
	}()
	r.halt = sync.OnceFunc(func() { close(quit); <-done })
	return r
}

// Began is when the recording started.
func (r *Recorder) Began() time.Time { return r.began }

// Stop ends the sampling. It may be called again.
func (r *Recorder) Stop() { r.halt() }

// Series returns the series of the run up to now. Call Stop before.
func (r *Recorder) Series(now time.Time) Series {
	return r.sampler.series(now.Sub(r.began), countsOf(r.progress.Snapshot()))
}

// sampler makes a series of counts that only grow.
type sampler struct {
	step time.Duration
	ends []counts // at the end of each step
}

// counts are what a run has done so far, and how long it waited, by reason.
type counts struct {
	rows, calls int64
	waited      [len(WaitReasons)]time.Duration
}

func countsOf(s Snapshot) counts {
	c := counts{rows: s.Done.Rows - s.Known}
	if s.Calls != nil {
		c.calls = s.Calls.Calls
		for i, reason := range WaitReasons {
			c.waited[i] = s.Calls.Waits[string(reason)]
		}
	}
	return c
}

// WaitReasons are the reasons that are counted.
var WaitReasons = [...]pace.Reason{pace.Concurrency, pace.Rate, pace.Spread, pace.RetryAfter, pace.Dead}

// sample adds the counts at a time. It ends all steps that are over by then.
func (s *sampler) sample(at time.Duration, c counts) {
	for at >= time.Duration(len(s.ends)+1)*s.step {
		if len(s.ends) < maxSteps {
			s.ends = append(s.ends, c)
			continue
		}
		for i := range maxSteps / 2 {
			s.ends[i] = s.ends[2*i+1]
		}
		s.ends = s.ends[:maxSteps/2]
		s.step *= 2
	}
}

// series returns the sampled steps, and the rest up to the counts c at a time.
func (s *sampler) series(at time.Duration, c counts) Series {
	made := Series{StepSeconds: s.step.Seconds(), RowsPerSecond: []float64{}, CallsPerSecond: []float64{}}
	var before counts
	var waiting [len(WaitReasons)][]float64
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
			made.Waiting[string(WaitReasons[i])] = waiting[i]
		}
	}
	return made
}

// perSecond returns a rate to a thousandth.
func perSecond(n int64, over time.Duration) float64 {
	return rounded(float64(n)/over.Seconds(), 1000)
}

// rounded returns f in steps of 1/per.
func rounded(f, per float64) float64 { return math.Round(f*per) / per }
