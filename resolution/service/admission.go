package service

import (
	"github.com/leadetl/leadetl/resolution/service/metrics"
	"github.com/leadetl/leadetl/resolution/service/wire"
)

// admit counts the call against its organization's rate, and sets the headers
// that tell the caller how much is left.
func (s *Service) admit(c *call) error {
	class := c.route.class
	d := s.limits[class].Take(c.account.public, c.began)
	d.Header(c.header, policies[class])
	if d.Allowed {
		return nil
	}
	s.metrics.RateLimited.WithLabelValues(policies[class]).Inc()
	// Retry-After is among the headers already.
	return wire.Refuse(wire.RateLimited, "The organization asks faster than its limit of %s. Wait as long as Retry-After says.", d.Rate)
}

// mayRetain refuses a call that would store data when its organization has
// reached its storage limit. Concurrent calls may exceed the limit by what each
// of them stores.
func (s *Service) mayRetain(c *call) error {
	limit := s.options.Limits.KeptBytes
	if limit == 0 {
		return nil
	}
	wait := c.account.retained.Wait(limit, c.began)
	if wait == 0 {
		return nil
	}
	s.metrics.RateLimited.WithLabelValues(metrics.KeptLimit).Inc()
	p := wire.Refuse(wire.RateLimited, "The organization has left its %d bytes of a day to be kept: in callbacks, keyword searches and answers "+
		"under an Idempotency-Key. Calls that leave none of these are answered.", limit)
	p.RetryAfter = wait
	return p
}

// retaining counts the bytes that a creation stores, or a result call with an
// Idempotency-Key. A job is stored as its request, its work and its callback:
// each is about as large as the answer, which echoes the request.
func (s *Service) retaining(handle func(*call) (*wire.Reply, error)) func(*call) (*wire.Reply, error) {
	return func(c *call) (*wire.Reply, error) {
		copies := int64(0)
		if c.route.class == create {
			copies = 3
		}
		if c.key != nil {
			copies++
		}
		if copies == 0 {
			return handle(c)
		}
		if err := s.mayRetain(c); err != nil {
			return nil, err
		}
		r, err := handle(c)
		if err == nil && r.RetryAfter == 0 { // an unfinished job's answer is not stored
			c.account.retained.Add(copies*int64(len(r.Body)), c.began)
		}
		return r, err
	}
}
