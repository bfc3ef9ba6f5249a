package main

import (
	"fmt"
	"math"
	"time"

	"github.com/leadetl/leadetl/pipeline"
	"github.com/leadetl/leadetl/pipeline/pace"
)

// waitReasons are those that are counted.
var waitReasons = []pace.Reason{pace.Concurrency, pace.Rate, pace.Spread, pace.RetryAfter, pace.Dead}

// waitNames are the reasons behind a time, as people read them.
var waitNames = map[pace.Reason]string{
	pace.Rate:       "for the rate",
	pace.Spread:     "for the service's limit",
	pace.RetryAfter: "as the service asked",
	pace.Dead:       "for a service that was down",
}

// whyWaiting says why calls do not leave faster; empty where they leave as fast
// as there are places in flight.
func whyWaiting(c *pipeline.CallStats, now time.Time) string {
	switch pace.Reason(c.Reason) {
	case pace.RetryAfter:
		left := compact(c.Until.Sub(now))
		if c.AskedToWait > 0 {
			return fmt.Sprintf("waiting: the service asked for %s, next call in %s", compact(c.AskedToWait), left)
		}
		return "waiting: the service asked for " + left
	case pace.Dead:
		down := "service down"
		if !c.DeadSince.IsZero() {
			down += " " + compact(now.Sub(c.DeadSince))
		}
		if c.InFlight > 0 || c.Until.IsZero() {
			return down + ", probing"
		}
		return fmt.Sprintf("%s, next probe in %s", down, compact(c.Until.Sub(now)))
	case pace.Rate:
		return "rate " + perSecond(c.Rate)
	case pace.Spread:
		return "rate " + perSecond(c.Rate) + " by the service's limit"
	}
	if c.InFlight == 0 && c.Waiting == 0 && c.Parked > 0 {
		return fmt.Sprintf("waiting: %s to come", plural(int(c.Parked), "answer"))
	}
	return ""
}

func perSecond(rate float64) string { return decimal(rate) + "/s" }

// decimal writes a rate with two digits at least.
func decimal(rate float64) string {
	switch {
	case rate >= 9.95:
		return grouped(int64(math.Round(rate)))
	case rate == 0:
		return "0"
	case rate >= 0.095:
		return fmt.Sprintf("%.1f", rate)
	}
	return fmt.Sprintf("%.2f", rate)
}

// compact writes a time in its two largest units, rounded up to a second: a
// wait of a moment is not 0s.
func compact(d time.Duration) string {
	s := int64(math.Ceil(max(d, 0).Seconds()))
	switch {
	case s < 60:
		return fmt.Sprintf("%ds", s)
	case s < 600:
		return pair(s, 60, "m", 1, "s")
	case s < 3600:
		return fmt.Sprintf("%dm", (s+30)/60)
	case s < 24*3600:
		return pair(s, 3600, "h", 60, "m")
	}
	return pair(s, 24*3600, "d", 3600, "h")
}

// pair writes s in a large and a small unit, of so many seconds, and leaves
// the small one out when it is 0.
func pair(s, large int64, largeName string, small int64, smallName string) string {
	text := fmt.Sprintf("%d%s", s/large, largeName)
	if rest := s % large / small; rest > 0 {
		text += fmt.Sprintf("%d%s", rest, smallName)
	}
	return text
}

// short writes a count in at most five characters.
func short(n int64) string {
	if n < 10_000 {
		return fmt.Sprint(n)
	}
	value, prefix := float64(n)/1000, 0
	for value >= 999.5 && prefix < 3 {
		value, prefix = value/1000, prefix+1
	}
	if value < 99.95 {
		return fmt.Sprintf("%.1f%c", value, "kMGT"[prefix])
	}
	return fmt.Sprintf("%.0f%c", value, "kMGT"[prefix])
}
