package pace

import "time"

const (
	trialRate = 0.9 // of what the service has sustained
	slowest   = 1   // rate of a trial
	maxTrial  = 20 * time.Second
	// rare is how many answers from refusal to refusal make a trial long. It waits for
	// another refusal then.
	rare = 250

	maxShare = 0.4 // of refusals that come by chance
	minShare = 0.002
	memory   = 512 // calls over which the share is averaged
	excess   = 8   // refusals beyond the share that mean a limit
)

// chance tells refusals that come whatever the rate from those of a limit. The
// package comment has the rule.
type chance struct {
	share  float64 // of calls that are refused whatever the rate; 0 if there is a limit
	beyond float64 // refusals beyond that share

	// Since refusals go on although the rate was lowered.
	since          time.Time // of the first answer
	calls, refused int
	lowered        int // refusals since the last trial

	// The last refusal that lowered the rate.
	call           uint64
	answers        int // before it, since the one before
	passed, caught int // calls that left between it and the pause: answered, refused

	rate      float64   // of the trial
	left      int       // answers until the trial ends, 0 without one
	ends      time.Time // at the latest
	unlearned bool      // a limit was forgotten since refusals are rare
	patience  int       // refusals before a trial; doubles when the last conclusion was wrong
}

// answered notes an answer; first says that it is the first one since the rate was
// lowered.
func (c *chance) answered(now time.Time, first bool) {
	switch {
	case first && c.since.IsZero():
		c.since, c.left = now, 0
	case first:
		c.left = 0
		c.try(now)
	case c.left > 0:
		if c.left--; now.After(c.ends) {
			c.left = 0
		}
	}
	c.calls++
	c.weigh(0)
}

// try begins a trial, unless a limit is more likely: calls that left after the refused
// one were refused as well.
func (c *chance) try(now time.Time) {
	if c.answers == 0 || c.caught > c.passed {
		return
	}
	patience := c.patience
	if c.answers > rare {
		patience = max(patience, 2)
	}
	if c.lowered++; c.lowered < patience {
		return
	}
	c.begin(now, float64(c.calls-c.refused)/now.Sub(c.since).Seconds(), c.answers)
}

// begin begins a trial at nine tenths of a rate. answers are those from refusal to refusal.
func (c *chance) begin(now time.Time, rate float64, answers int) {
	c.lowered = 0
	c.rate = max(trialRate*rate, slowest)
	c.left, c.ends = answers+min(answers, 40)+20, now.Add(maxTrial)
}

// test begins a trial after a refusal that concerns its call alone, and so many answers
// before, unless one is under way.
func (c *chance) test(now time.Time, rate float64, answers int) {
	if c.left == 0 {
		c.calls, c.refused = answers, 0
		c.begin(now, rate, answers)
	}
}

// isLimit notes a refusal, and reports whether it tells a limit.
func (c *chance) isLimit() bool {
	c.calls++
	c.refused++
	c.weigh(1)
	switch {
	case c.left > 0:
		c.share, c.beyond = min(float64(c.refused)/float64(c.calls), maxShare), 0
		c.left, c.since = 0, time.Time{}
	case c.share > 0 && c.beyond >= excess:
		c.share = 0
		c.wrong()
		c.forget()
	}
	return c.share == 0
}

// wrong makes the next trial wait for twice as many refusals.
func (c *chance) wrong() { c.patience = max(2*c.patience, 2) }

// weigh compares refusals with those that chance explains. Their share is only an
// estimate: up to twice as many are.
func (c *chance) weigh(refused float64) {
	if c.share == 0 {
		return
	}
	c.beyond = max(0, c.beyond+refused-min(2*c.share+0.05, c.share+0.2))
	if c.share = min(c.share+(refused-c.share)/memory, maxShare); c.share < minShare {
		c.share = 0
	}
}

// lower notes that a refusal lowers the rate. goesOn says that the rate
// was lowered before.
func (c *chance) lower(call uint64, answers int, goesOn bool) {
	c.call, c.answers, c.passed, c.caught, c.left = call, 0, 0, 0, 0
	if goesOn {
		c.answers = answers
	} else {
		c.forget()
	}
}

func (c *chance) forget() { c.since, c.calls, c.refused, c.lowered = time.Time{}, 0, 0, 0 }

// among notes how a call ended that left before the pause.
func (c *chance) among(call uint64, refused bool) {
	switch {
	case call < c.call:
	case refused:
		c.caught++
	default:
		c.passed++
	}
}
