package request

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/transforms/search"
)

// Keyword reads the body that creates a list or a count; both take the same fields.
// Any other operation panics. today is any time of the present day. If there are
// problems, the call is the zero value.
func (l Limits) Keyword(op resolution.Operation, o Object, today time.Time) (KeywordCall, []Problem) {
	if !op.IsKeyword() {
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

// leadType reads b2b or b2c; empty means both.
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

// fingerprinted is one field of a fingerprint.
type fingerprinted struct {
	name   string
	values []string // any order
}

// fingerprint is the SHA-256 of fields. Every text and every list has its length in
// front, so that different fields never make the same bytes.
func fingerprint(fields ...fingerprinted) [sha256.Size]byte {
	var text []byte
	add := func(s string) {
		text = binary.AppendUvarint(text, uint64(len(s)))
		text = append(text, s...)
	}
	add("keyword search 1") // change the number when the meaning of the fields changes
	for _, field := range fields {
		add(field.name)
		text = binary.AppendUvarint(text, uint64(len(field.values)))
		for _, v := range slices.Sorted(slices.Values(field.values)) {
			add(v)
		}
	}
	return sha256.Sum256(text)
}

// unsaid stands in a fingerprint for a missing day.
const unsaid = "default"

// period holds the days of a search.
type period struct {
	start, end time.Time // midnight UTC, both included
	// said are the days that the body gives; unsaid for a missing one.
	said [2]string
}

// period reads date_start and date_end.
func (f *form) period(today time.Time) period {
	p := period{said: [2]string{unsaid, unsaid}}
	start, startFine := f.day("date_start", today)
	end, endFine := f.day("date_end", today)
	if !startFine || !endFine {
		return p
	}
	if !start.IsZero() {
		p.said[0] = start.Format(search.DayFormat)
	}
	if !end.IsZero() {
		p.said[1] = end.Format(search.DayFormat)
	}
	var wrong search.Fault
	p.start, p.end, wrong = f.limits.Period(start, end, today)
	f.fault("/date_start", wrong)
	return p
}

// day reads a day; zero when the field is missing. fine is false when it added a
// problem.
func (f *form) day(name string, today time.Time) (day time.Time, fine bool) {
	if f.object.get(name) == "" {
		return time.Time{}, true
	}
	text, ok := f.text(name)
	if !ok {
		return time.Time{}, false
	}
	day, wrong := search.Day(text, today)
	return day, f.fault("/"+name, wrong)
}
