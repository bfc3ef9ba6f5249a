package request

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/transforms/search"
)

// Keyword reads the body of a list or a count creation, which take the same
// fields; any other operation is the caller's mistake and panics. today is any
// moment of the present day. With problems the call is the zero value.
func (l Limits) Keyword(op resolution.Operation, o Object, today time.Time) (KeywordCall, []Problem) {
	if op != resolution.KeywordToLead && op != resolution.KeywordToLeadCount {
		panic(fmt.Sprintf("request: %s is no keyword operation", op))
	}
	f := form{object: o, limits: l}
	f.require("keywords")
	keywords := f.terms("keywords", 1, l.Keywords, search.Words(l.TermLength))
	cities := f.terms("cities", 0, l.Places, search.SpacedWords(l.CityLength))
	states := f.terms("states", 0, l.Places, search.State)
	zips := f.terms("zips", 0, l.Places, search.Zip)
	leadType := f.leadType()
	days := f.period(today)
	inclusions := f.terms("job_title_inclusions", 0, l.JobTitles, search.SpacedWords(l.TermLength))
	exclusions := f.terms("job_title_exclusions", 0, l.JobTitles, search.SpacedWords(l.TermLength))
	page := f.page()
	callback := f.common()
	if problems := f.problems.all(); problems != nil {
		return KeywordCall{}, problems
	}

	return KeywordCall{
		Search: resolution.KeywordSearch{
			Keywords:           keywords.values,
			Cities:             cities.values,
			States:             states.values,
			Zips:               zips.values,
			LeadType:           leadType,
			Start:              days.start,
			End:                days.end,
			JobTitleInclusions: inclusions.values,
			JobTitleExclusions: exclusions.values,
		},
		Page:        page,
		CallbackURL: callback,
		Payload:     json.RawMessage(o.text),
		Fingerprint: fingerprint(
			fingerprinted{"keywords", keywords.folded},
			fingerprinted{"cities", cities.folded},
			fingerprinted{"states", states.folded},
			fingerprinted{"zips", zips.folded},
			fingerprinted{"lead_type", []string{leadType}},
			fingerprinted{"date_start", days.said[:1]},
			fingerprinted{"date_end", days.said[1:]},
			fingerprinted{"job_title_inclusions", inclusions.folded},
			fingerprinted{"job_title_exclusions", exclusions.folded},
		),
	}, nil
}

// leadType is b2b, b2c, or empty for either.
func (f *form) leadType() string {
	text, ok := f.text("lead_type")
	if !ok {
		return ""
	}
	leadType, wrong := search.LeadType(text)
	f.fault("/lead_type", wrong)
	return leadType
}

func (f *form) page() (p resolution.SearchPage) {
	l := f.limits
	var limitFine, pageFine bool
	p.Limit, limitFine = f.integer("limit", 1, l.PageLimit, l.DefaultPageLimit)
	p.HEMs, _ = f.integer("limit_of_hems", 1, l.HEMs, l.DefaultHEMs)
	p.Number, pageFine = f.integer("page", 1, l.Depth, 1)
	if limitFine && pageFine && p.Number > l.Depth/p.Limit {
		f.problem("/page", "out_of_range", "must be at most %d divided by limit", l.Depth)
	}
	p.Deanonymize = f.boolean("deanonymize")
	p.SuperEnrichment = f.boolean("super_enrichment")
	return p
}
