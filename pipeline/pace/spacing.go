package pace

import "time"

const (
	// A bunch of calls is spread over half of the time that answers take, and
	// over maxSpread at most. So calls leave up to twice as fast as their places
	// become free on average, and the spacing costs no rate.
	maxSpread = 50 * time.Millisecond
	// bunches is how many bunches all calls in flight make up at least.
	bunches = 16
)

// spacing spreads calls that no rate limits. Answers that arrive together let as
// many calls leave together, and their answers arrive together again. In such a
// bunch, calls wait for each other: for a processor, and for the fsync of their
// intents, which then releases them together. A bunch once made, such as by a
// slow fsync, would not end by itself.
//
// Measured with 60,000 calls of 50 ms, 256 in flight, four times in turns on an idle
// machine: 0.924 of concurrency / latency between start and end, 0.900 without it,
// for the same processor time.
type spacing struct {
	took time.Duration // by an answer, on average
	due  time.Time     // of the next call, if calls leave one by one
}

// heard notes how long an answer took. The average is over as many answers as
// there are places.
func (s *spacing) heard(took time.Duration, places int) {
	if s.took == 0 {
		s.took = took
	}
	s.took += (took - s.took) / time.Duration(places)
}

// wait returns how long the next call must wait. If it need not, it leaves.
func (s *spacing) wait(now time.Time, places int) time.Duration {
	each := min(s.took/2, maxSpread) / time.Duration(places)
	ahead := max(s.due.Sub(now), 0)
	if early := ahead - each*time.Duration(places/bunches); early > 0 {
		return early
	}
	s.due = now.Add(ahead + each)
	return 0
}
