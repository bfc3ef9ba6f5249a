package world

import (
	"fmt"
	"time"

	"github.com/leadetl/leadetl/internal/testkit/worldtest"
	"github.com/leadetl/leadetl/pipeline/pace"
	"github.com/leadetl/leadetl/resolution"
)

// quota is what a service lets through: some requests in each window of a length, or, of a bucket, one
// in each part of it.
type quota struct {
	most   int // 0: all
	per    time.Duration
	bucket bool
	told   bool // answers say how many are left

	left float64
	at   time.Time // of the window's begin, or when the bucket was filled
}

// newQuota is that of the service of a plan.
func newQuota(w *worldtest.World, of string) *quota {
	in := func(what string, from, to int) int { return from + w.Below(to-from+1, "quota"+of, what) }
	if in("has one", 0, 3) > 0 {
		return &quota{}
	}
	per := []time.Duration{time.Second, 5 * time.Second, 20 * time.Second, 2 * time.Minute}[in("per", 0, 3)]
	return &quota{most: in("most", 2, 12), per: per, bucket: in("bucket", 0, 1) == 0, told: in("told", 0, 3) > 0}
}

// fill grants what time has brought.
func (q *quota) fill(now time.Time) {
	switch passed := now.Sub(q.at); {
	case q.at.IsZero(), passed >= q.per:
		q.left, q.at = float64(q.most), now
	case q.bucket:
		q.left, q.at = min(float64(q.most), q.left+float64(q.most)*passed.Seconds()/q.per.Seconds()), now
	}
}

// take lets a request through. It says what answers say of the limit.
func (q *quota) take() (through bool, says resolution.Pace) {
	if q.most == 0 {
		return true, resolution.Pace{}
	}
	now := time.Now()
	if q.fill(now); q.left >= 1 {
		q.left, through = q.left-1, true
	}
	if !q.told {
		return through, resolution.Pace{}
	}
	reset := q.at.Add(q.per).Sub(now)
	if q.bucket {
		reset = time.Duration((1 - min(1, q.left)) * float64(q.per) / float64(q.most))
	}
	return through, resolution.Pace{Limited: true, Remaining: int(q.left), Reset: reset}
}

// ownLimits are the limits of the user.
func (h *history) ownLimits(o *pace.Options) {
	if h.plan.rate > 0 {
		o.Rate, o.Burst = h.plan.rate, 1+h.world.Below(3, "burst"+h.name)
	}
	if h.plan.ownWindow.Count > 0 {
		o.Windows = []pace.Window{h.plan.ownWindow}
	}
}

// recall tells a process what the processes before it have sent.
func (h *history) recall(c *pace.Controller) {
	if h.bucket == nil {
		for _, d := range h.service.departures {
			c.Recall(d.at, d.keys)
		}
	}
}

// departure is a request that left, with some keys.
type departure struct {
	at   time.Time
	keys int
}

// departs notes that a request leaves, and checks the limit of the user. The machines of a state on S3
// do not know when the others sent. The caller holds the lock.
func (s *service) departs(keys int) {
	w, now := s.plan.ownWindow, time.Now()
	if w.Count == 0 || s.plan.onS3 {
		return
	}
	s.departures = append(s.departures, departure{now, keys})
	s.world.Note("departs %d of %s", keys, w.Per)
	sent := 0
	for _, d := range s.departures {
		switch {
		case now.Sub(d.at) >= w.Per:
		case w.Keys:
			sent += d.keys
		default:
			sent++
		}
	}
	if sent > w.Count {
		s.wrong = append(s.wrong, fmt.Sprintf("%d calls leave in %s, and the user allows %d", sent, w.Per, w.Count))
	}
}

// admit lets a request through, about some keys, or limits it. It says what answers say of the limit.
func (s *service) admit(f fault, records ...*record) (fault, resolution.Pace) {
	s.mu.Lock()
	defer s.mu.Unlock()
	through, says := s.quota.take()
	if through {
		return f, says
	}
	for _, r := range records {
		r.disturbed = true
	}
	return limited, says
}
