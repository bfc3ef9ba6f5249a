package service

import "github.com/leadetl/leadetl/resolution/service/wire"

// admit counts the call against its organization's rate, and tells the
// caller where it stands.
func (s *Service) admit(c *call) error {
	class := c.route.class
	d := s.limits[class].Take(c.account.public, c.began)
	d.Header(c.header, policies[class])
	if d.Allowed {
		return nil
	}
	s.metrics.rateLimited.WithLabelValues(policies[class]).Inc()
	// Retry-After is among the headers already.
	return wire.Refuse(wire.RateLimited, "The organization asks faster than its limit of %s. Wait as long as Retry-After says.", d.Rate)
}
