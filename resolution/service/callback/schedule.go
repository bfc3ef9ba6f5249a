package callback

import "time"

// DefaultSchedule returns when attempts are made: each delay runs from the end
// of the attempt before, the first from when the delivery was made, so that
// the last of the ten attempts is 75 hours after the first. Source: Standard
// Webhooks 1.0.0, deliverability and reliability, whose second column ("time
// since start") tells how the first is meant.
func DefaultSchedule() []time.Duration {
	return []time.Duration{
		0, 5 * time.Second, 5 * time.Minute, 30 * time.Minute,
		2 * time.Hour, 5 * time.Hour, 10 * time.Hour, 14 * time.Hour, 20 * time.Hour, 24 * time.Hour,
	}
}

// jitterShare is how far a delay may be off, either way: what failed together
// is not to come back together.
const jitterShare = 0.1

// jitter spreads a delay; random is from [0, 1).
func jitter(delay time.Duration, random float64) time.Duration {
	return time.Duration(float64(delay) * (1 + jitterShare*(2*random-1)))
}
