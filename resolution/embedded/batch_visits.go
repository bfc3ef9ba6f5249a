package embedded

import (
	"net/netip"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/directory/people"
	"github.com/leadetl/leadetl/resolution/directory/records"
	"github.com/leadetl/leadetl/resolution/directory/visits"
)

// deanonymization looks for visitors of the addresses, and then for the companies of the
// addresses.
func (b *batch) deanonymization(limit int, p *resolution.People) (n int, err error) {
	if err := b.parse(b.answers); err != nil {
		return 0, err
	}
	for i := range b.rows {
		b.rows[i] = records.None
	}
	b.urls, b.seen = resize(b.urls, len(b.keys)), resize(b.seen, len(b.keys))
	clear(b.seen)
	if b.engine.directory != nil {
		if err := b.visitors(); err != nil {
			return 0, err
		}
	}
	b.engine.directory.StartPeople(p, people.Whole)
	if n, err = b.engine.directory.AppendPeople(b.rows, b.urls, p, people.Whole, limit); err != nil {
		return 0, readable(err)
	}
	if err := b.complete(p); err != nil {
		return 0, err
	}
	for i, v := range b.seen {
		if v != nil {
			b.addrs[i] = netip.Addr{}
		}
	}
	if err := b.visitedFrom(p); err != nil {
		return 0, err
	}
	for i := range n {
		level, confidence, answer := "", 0., b.answers[i]
		switch v := b.seen[i]; {
		case v != nil:
			level, confidence = levelPerson, v.Confidence
		case b.addrs[i].IsValid() && answer.Reason == "":
			level, confidence = levelCompany, companyConfidence(b.orgTypes[i])
			if p.Companies.Table != nil {
				p.Companies.Codes[i] = b.companyCodes[i]
			}
		}
		p.Reasons, p.Matched = append(p.Reasons, answer.Reason), append(p.Matched, level != "")
		p.MatchLevels, p.Confidences = append(p.MatchLevels, level), append(p.Confidences, confidence)
	}
	return n, nil
}

// visitedFrom looks up the companies of the addresses without a visitor: their codes if the
// answers are columns with a table of companies.
func (b *batch) visitedFrom(p *resolution.People) error {
	if p.Companies.Table == nil {
		return b.findCompanies(b.answers)
	}
	n := len(b.addrs)
	b.orgTypes, b.companyCodes, b.reasons = resize(b.orgTypes, n), resize(b.companyCodes, n), resize(b.reasons, n)
	found := resolution.Companies{CompanyCodes: resolution.CompanyCodes{Table: p.Companies.Table, Codes: b.companyCodes}, OrgTypes: b.orgTypes, Reasons: b.reasons}
	if err := b.codeOwners(found); err != nil {
		return err
	}
	for i, addr := range b.addrs {
		if addr.IsValid() {
			b.answers[i].Reason = b.reasons[i]
		}
	}
	return nil
}

// visitors sets seen to the visits that answer, with rows and urls of the visitors. It
// prefers a visitor of whom the directory has more than the profile.
func (b *batch) visitors() (err error) {
	n := len(b.keys)
	b.ends, b.asked = resize(b.ends, n), resize(b.asked, n)
	if b.visits, err = b.engine.directory.FillVisits(b.addrs, &b.arena, b.visits[:0], b.ends); err != nil {
		return readable(err)
	}
	// Each round looks up the next visitor of the remaining addresses.
	for round := 0; b.nextVisitors(round); round++ {
		if err := b.findVisitors(); err != nil {
			return err
		}
		for i, url := range b.urls {
			switch {
			case url == "":
			case b.asked[i] != records.None:
				b.rows[i], b.seen[i] = b.asked[i], b.visit(i, round)
			case b.seen[i] == nil:
				b.seen[i] = b.visit(i, round)
			}
		}
	}
	for i, v := range b.seen {
		if b.urls[i] = ""; v != nil {
			b.urls[i] = v.NetworkURL
		}
	}
	return nil
}

// findVisitors sets asked to the rows of the visitors of urls, and removes those who are
// suppressed from urls.
func (b *batch) findVisitors() error {
	if b.engine.options.Listed == nil {
		return b.findPeople(b.urls, b.asked)
	}
	if err := b.engine.directory.PeopleRows(b.urls, b.asked); err != nil {
		return readable(err)
	}
	known := append([]uint32(nil), b.asked...)
	if err := b.findPeople(b.urls, b.asked); err != nil {
		return err
	}
	for i, url := range b.urls {
		if b.engine.listed(resolution.NetworkURL, url) || known[i] != b.asked[i] {
			b.urls[i], b.asked[i] = "", records.None
		}
	}
	return nil
}

// nextVisitors sets urls to the visitors of a round. It returns false without any.
func (b *batch) nextVisitors(round int) (left bool) {
	for i := range b.urls {
		b.urls[i] = ""
		if v := b.visit(i, round); v != nil && b.rows[i] == records.None {
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
