package admission

import (
	"errors"
	"fmt"
	"time"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/service/limit"
	"github.com/leadetl/leadetl/resolution/service/metrics"
	"github.com/leadetl/leadetl/resolution/service/wire"
)

// SingleResult asks for the answer of an earlier call. Any key may, and Permit is asked
// again once the operation of that call is known.
const SingleResult resolution.Operation = "single_result"

// Class is the rate limit that a call counts against.
type Class uint8

// The classes of calls.
const (
	Single Class = iota
	Create
	Result
	classes
)

// policies are the names of the classes in the RateLimit headers.
var policies = [classes]string{Single: "single", Create: "create", Result: "result"}

// Limits bound the calls of one organization and the guesses of one address. The
// zero Rate means no limit.
type Limits struct {
	Single limit.Rate // single-record operations, of an organization
	Create limit.Rate // keyword creations, of an organization
	Result limit.Rate // result calls, of an organization
	// FailedAuth limits wrong credentials from one client address.
	FailedAuth limit.Rate
	// ActiveJobs is how many unfinished keyword searches an organization may
	// have; 0 is no limit.
	ActiveJobs int
	// KeptBytes is how many bytes an organization may store within a day:
	// callbacks, keyword searches, and answers under an Idempotency-Key. Beyond it,
	// calls that would store more are refused; 0 means no limit.
	KeptBytes int64
}

// DefaultLimits returns the defaults.
func DefaultLimits() Limits {
	return Limits{
		Single:     limit.Rate{Events: 600, Per: time.Minute, Burst: 20},
		Create:     limit.Rate{Events: 60, Per: time.Minute, Burst: 20},
		Result:     limit.Rate{Events: 300, Per: time.Minute, Burst: 20},
		FailedAuth: limit.Rate{Events: 30, Per: time.Minute, Burst: 30},
		ActiveJobs: 5,
		KeptBytes:  4 << 30,
	}
}

// Rates are the rates of an organization by the name of their class, without those that
// are no limit.
func (l Limits) Rates() map[string]limit.Rate {
	rates := map[string]limit.Rate{}
	for class, rate := range map[Class]limit.Rate{Single: l.Single, Create: l.Create, Result: l.Result} {
		if rate != limit.None {
			rates[policies[class]] = rate
		}
	}
	return rates
}

// Validate returns all errors in l.
func (l Limits) Validate() (errs []error) {
	for _, r := range []struct {
		name string
		rate limit.Rate
	}{
		{"single-record operations", l.Single}, {"creations", l.Create},
		{"results", l.Result}, {"failed authentications", l.FailedAuth},
	} {
		if err := r.rate.Validate(); err != nil {
			errs = append(errs, fmt.Errorf("limit of %s: %w", r.name, err))
		}
	}
	if l.ActiveJobs < 0 {
		errs = append(errs, errors.New("unfinished jobs of an organization: less than 0"))
	}
	if l.KeptBytes < 0 {
		errs = append(errs, errors.New("bytes kept of an organization: less than 0"))
	}
	return errs
}

// Sweep frees the memory of limits that are not used at the moment.
func (g *Gate) Sweep(now time.Time) {
	for _, b := range g.rates {
		b.Sweep(now)
	}
	g.guesses.Sweep(now)
}

// takeRate counts the call against its organization's rate, and sets the headers
// that tell the caller how much is left.
func (g *Gate) takeRate(c *Call) error {
	class := c.Class
	d := g.rates[class].Take(c.Caller.Account.Public, c.Began)
	d.Header(c.Header, policies[class])
	if d.Allowed {
		return nil
	}
	g.Metrics.RateLimited.WithLabelValues(policies[class]).Inc()
	// Retry-After is among the headers already.
	return wire.Refuse(wire.RateLimited, "The organization asks faster than its limit of %s. Wait as long as Retry-After says.", d.Rate)
}

// MayRetain refuses a call that would store data when its organization has
// reached its storage limit. Concurrent calls may exceed the limit by what each
// of them stores.
func (g *Gate) MayRetain(c *Call) error {
	limit := g.Limits.KeptBytes
	if limit == 0 {
		return nil
	}
	wait := c.Caller.Account.Retained.Wait(limit, c.Began)
	if wait == 0 {
		return nil
	}
	g.Metrics.RateLimited.WithLabelValues(metrics.KeptLimit).Inc()
	p := wire.Refuse(wire.RateLimited, "The organization has left its %d bytes of a day to be kept: in callbacks, keyword searches and answers "+
		"under an Idempotency-Key. Calls that leave none of these are answered.", limit)
	p.RetryAfter = wait
	return p
}

// Retaining counts the bytes that a creation stores, or a result call with an
// Idempotency-Key. A job is stored as its request, its work and its callback:
// each is about as large as the answer, which echoes the request.
func (g *Gate) Retaining(handle Handler) Handler {
	return func(c *Call) (*wire.Reply, error) {
		copies := int64(0)
		if c.Class == Create {
			copies = 3
		}
		if c.Key != nil {
			copies++
		}
		if copies == 0 {
			return handle(c)
		}
		if err := g.MayRetain(c); err != nil {
			return nil, err
		}
		r, err := handle(c)
		if err == nil && r.RetryAfter == 0 { // an unfinished job's answer is not stored
			c.Caller.Account.Retained.Add(copies*int64(len(r.Body)), c.Began)
		}
		return r, err
	}
}
