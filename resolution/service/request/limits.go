package request

import (
	"errors"
	"fmt"

	"github.com/leadetl/leadetl/transforms/search"
)

// Limits bound what a body may hold. Texts are counted in characters.
type Limits struct {
	search.Limits
	DefaultPageLimit int
	DefaultHEMs      int

	Metadata int // bytes of it as JSON

	URL       int // callback_url, network_url, page_url, referrer
	UserAgent int
	VisitorID int
}

// DefaultLimits are the limits of the interface.
func DefaultLimits() Limits {
	searches := search.DefaultLimits()
	return Limits{
		Limits:           searches,
		DefaultPageLimit: 100,
		DefaultHEMs:      searches.HEMs,

		Metadata: 64 << 10,

		URL:       2048,
		UserAgent: 2048,
		VisitorID: 200,
	}
}

// Validate reports all limits that are not positive, and all defaults above their
// limit.
func (l Limits) Validate() error {
	var problems []error
	for _, c := range []struct {
		name  string
		value int
		most  int // 0: no other limit
	}{
		{"keywords", l.Keywords, 0},
		{"places", l.Places, 0},
		{"job titles", l.JobTitles, 0},
		{"term length", l.TermLength, 0},
		{"city length", l.CityLength, 0},
		{"date span", l.DateSpan, 0},
		{"default span", l.DefaultSpan, l.DateSpan},
		{"page limit", l.PageLimit, l.Depth},
		{"default page limit", l.DefaultPageLimit, l.PageLimit},
		{"hems", l.HEMs, 0},
		{"default hems", l.DefaultHEMs, l.HEMs},
		{"depth", l.Depth, 0},
		{"metadata", l.Metadata, 0},
		{"url", l.URL, 0},
		{"user agent", l.UserAgent, 0},
		{"visitor id", l.VisitorID, 0},
	} {
		switch {
		case c.value < 1:
			problems = append(problems, fmt.Errorf("limit %s is %d; it must be at least 1", c.name, c.value))
		case c.most > 0 && c.value > c.most:
			problems = append(problems, fmt.Errorf("limit %s is %d; it must be at most %d", c.name, c.value, c.most))
		}
	}
	return errors.Join(problems...)
}
