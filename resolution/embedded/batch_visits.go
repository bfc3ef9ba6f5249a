package embedded

import (
	"math"
	"net/netip"

	"github.com/leadetl/leadetl/internal/keyed"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/directory/people"
	"github.com/leadetl/leadetl/resolution/directory/visits"
)

// deanonymization looks for visitors of the addresses, and then for the companies of the
// addresses.
func (b *batch) deanonymization(addrs []netip.Addr, limit int, to *resolution.Answers) (n int, err error) {
	b.startAddrs(addrs)
	b.rows, b.urls, b.seen = resize(b.rows, len(addrs)), resize(b.urls, len(addrs)), resize(b.seen, len(addrs))
	for i := range b.rows {
		b.rows[i] = keyed.None
	}
	clear(b.seen)
	clear(b.urls)
	if b.engine.directory != nil {
		if err := b.visitors(); err != nil {
			return 0, err
		}
	}
	b.engine.directory.StartPeople(to)
	if n, err = b.engine.directory.AppendPeople(b.rows, b.urls, to, people.Whole, limit); err != nil {
		return 0, readable(err)
	}
	if err := b.complete(to, people.Whole, b.rows[:n]); err != nil {
		return 0, err
	}
	for i, v := range b.seen {
		if v != nil {
			b.addrs[i] = netip.Addr{}
		}
	}
	if err := b.codeOwners(to); err != nil {
		return 0, err
	}
	levels := &to.Texts[resolution.FieldMatchLevel]
	for i := range n {
		level, confidence := "", math.NaN()
		switch v := b.seen[i]; {
		case v != nil:
			level, confidence = levelPerson, v.Confidence
		case b.companyCodes[i] != 0:
			level, confidence = levelCompany, companyConfidence(b.orgTypes[i])
			if !to.Unread.Companies {
				to.Companies.Codes[i] = b.companyCodes[i]
			}
		}
		levels.AddText([]byte(level))
		to.Reasons, to.Matched = append(to.Reasons, b.reasons[i]), append(to.Matched, level != "")
		to.Confidences = append(to.Confidences, confidence)
	}
	return n, nil
}

// visitors sets seen to the visits that answer, with rows and urls of the visitors. It
// prefers a visitor of whom the directory has more than the profile.
func (b *batch) visitors() (err error) {
	n := len(b.addrs)
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
			case b.asked[i] != keyed.None:
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
			b.urls[i], b.asked[i] = "", keyed.None
		}
	}
	return nil
}

// nextVisitors sets urls to the visitors of a round. It returns false without any.
func (b *batch) nextVisitors(round int) (left bool) {
	for i := range b.urls {
		b.urls[i] = ""
		if v := b.visit(i, round); v != nil && b.rows[i] == keyed.None {
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
