package runview

import (
	"fmt"
	"slices"
	"time"

	"github.com/leadetl/leadetl/internal/figures"
	"github.com/leadetl/leadetl/pipeline/pace"
	"github.com/leadetl/leadetl/pipeline/stats"
)

// waitNames are the reasons as shown after a duration.
var waitNames = map[pace.Reason]string{
	pace.Rate:       "for the rate",
	pace.Spread:     "for the service's limit",
	pace.RetryAfter: "as the service asked",
	pace.Dead:       "for a service that was down",
}

// waitOrder has what delays calls, the worst first.
var waitOrder = []pace.Reason{pace.Dead, pace.RetryAfter, pace.Rate, pace.Spread}

// worst returns the resolver whose calls are delayed most; nil without several.
func worst(c *stats.CallSnapshot) (of *stats.ResolverSnapshot) {
	rank := func(r *stats.ResolverSnapshot) int {
		if i := slices.Index(waitOrder, pace.Reason(r.Calls.Reason)); i >= 0 {
			return i
		}
		return len(waitOrder)
	}
	for i := range c.Resolvers {
		if r := &c.Resolvers[i]; of == nil || rank(r) < rank(of) {
			of = r
		}
	}
	return of
}

// reason is what delays calls: of several resolvers, those of the worst.
func reason(c *stats.CallSnapshot) pace.Reason {
	if of := worst(c); of != nil {
		return pace.Reason(of.Calls.Reason)
	}
	return pace.Reason(c.Reason)
}

// whyWaiting describes what delays calls; empty if only --concurrency does. Of several resolvers it
// names the worst.
func whyWaiting(c *stats.CallSnapshot, now time.Time) string {
	if of := worst(c); of != nil {
		why := whyWaiting(&of.Calls, now)
		if why != "" {
			why = of.Name + ": " + why
		}
		return why
	}
	switch pace.Reason(c.Reason) {
	case pace.RetryAfter:
		left := figures.Compact(c.Until.Sub(now))
		if c.AskedToWait > 0 {
			return fmt.Sprintf("waiting: the service asked for %s, next call in %s", figures.Compact(c.AskedToWait), left)
		}
		return "waiting: the service asked for " + left
	case pace.Dead:
		down := "service down"
		if !c.DeadSince.IsZero() {
			down += " " + figures.Compact(now.Sub(c.DeadSince))
		}
		if c.InFlight > 0 || c.Until.IsZero() {
			return down + ", probing"
		}
		return fmt.Sprintf("%s, next probe in %s", down, figures.Compact(c.Until.Sub(now)))
	case pace.Rate:
		return "rate " + perSecond(c.Rate)
	case pace.Spread:
		return "rate " + perSecond(c.Rate) + ", the service's limit"
	}
	if c.InFlight == 0 && c.Waiting == 0 && c.Parked > 0 {
		return fmt.Sprintf("waiting: %s to come", figures.Plural(c.Parked, "answer"))
	}
	return ""
}

func perSecond(rate float64) string { return figures.Decimal(rate) + "/s" }
