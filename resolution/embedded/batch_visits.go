package embedded

import (
	"net/netip"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/directory/people"
	"github.com/leadetl/leadetl/resolution/directory/visits"
)

// deanonymization looks for visitors of the addresses, and then for the companies of the
// addresses.
func (b *batch) deanonymization(answers []resolution.Answer) error {
	if err := b.parse(answers); err != nil {
		return err
	}
	b.confidences = resize(b.confidences, len(b.keys))
	if b.engine.directory != nil {
		if err := b.visitors(answers); err != nil {
			return err
		}
	}
	if err := b.complete(answers); err != nil {
		return err
	}
	if err := b.findCompanies(answers); err != nil {
		return err
	}
	for i, addr := range b.addrs {
		if lead := answers[i].Lead; addr.IsValid() && lead != nil {
			b.confidences[i] = companyConfidence(b.orgTypes[i])
			lead.MatchLevel, lead.Confidence = levelCompany, &b.confidences[i]
		}
	}
	return nil
}

// visitors answers the addresses with visitors, and removes them from addrs. It prefers a
// visitor of whom the directory has more than the profile.
func (b *batch) visitors(answers []resolution.Answer) (err error) {
	n := len(b.keys)
	b.ends, b.urls, b.seen = resize(b.ends, n), resize(b.urls, n), resize(b.seen, n)
	clear(b.seen)
	if b.visits, err = b.engine.directory.FillVisits(b.addrs, &b.arena, b.visits[:0], b.ends); err != nil {
		return readable(err)
	}
	// Each round looks up the next visitor of the remaining addresses.
	for round := 0; b.nextVisitors(answers, round); round++ {
		if err := b.fillPeople(b.urls, people.Whole); err != nil {
			return err
		}
		for i, url := range b.urls {
			switch {
			case url == "" || b.hidden(i, url):
			case b.found[i]:
				b.lead(answers, i, &b.people[i].Person)
				b.seen[i] = b.visit(i, round)
			case b.seen[i] == nil:
				b.seen[i] = b.visit(i, round)
			}
		}
	}
	for i, v := range b.seen {
		if v == nil {
			continue
		}
		if answers[i].Lead == nil {
			b.match(answers, i, resolution.Lead{NetworkURL: v.NetworkURL})
		}
		b.leads[i].MatchLevel, b.leads[i].Confidence = levelPerson, &v.Confidence
		b.addrs[i] = netip.Addr{}
	}
	return nil
}

// nextVisitors sets urls to the visitors of a round. It returns false without any.
func (b *batch) nextVisitors(answers []resolution.Answer, round int) (left bool) {
	for i := range b.urls {
		b.urls[i] = ""
		if v := b.visit(i, round); v != nil && answers[i].Lead == nil {
			b.urls[i], left = v.NetworkURL, true
		}
	}
	return left
}

// visit returns the n-th visit of address i; nil if there are fewer.
func (b *batch) visit(i, n int) *visits.Visit {
	from := 0
	if i > 0 {
		from = b.ends[i-1]
	}
	if from+n >= b.ends[i] {
		return nil
	}
	return &b.visits[from+n]
}

// hidden reports whether the visitor is suppressed.
func (b *batch) hidden(i int, url string) bool {
	return b.engine.listed(resolution.NetworkURL, url) || b.found[i] && b.engine.hides(&b.people[i].Person)
}
