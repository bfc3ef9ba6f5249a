package embedded

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"strings"

	"github.com/leadetl/leadetl/internal/keyed"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/directory/people"
	"github.com/leadetl/leadetl/resolution/directory/searches"
	"github.com/leadetl/leadetl/resolution/values"
)

// searchers finds the people who made searches. One goroutine uses it.
type searchers struct {
	batch *batch
	// people are those of the last searches; nil if unknown.
	people []*people.Person
	// keys has the distinct keys of all emails of each, and their hashes: first that of the
	// search, then those of the person.
	keys     resolution.Answers
	own      resolution.Texts // emails of searches without a known profile
	distinct []int
}

func newSearchers(e *Engine) *searchers { return &searchers{batch: &batch{engine: e}} }

// each finds the people of all searches, a few at a time, and calls do for each search with its
// place among those few.
func (s *searchers) each(ctx context.Context, found []searches.Found, part people.Fields, do func(i int, f *searches.Found)) error {
	for len(found) > 0 {
		some := found[:min(together, len(found))]
		found = found[len(some):]
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := s.find(some, part); err != nil {
			return err
		}
		for i := range some {
			do(i, &some[i])
		}
	}
	return nil
}

// find finds the people of searches by profile key, or else by email.
func (s *searchers) find(found []searches.Found, part people.Fields) error {
	b, n := s.batch, len(found)
	b.arena.Reset()
	b.urls, b.keys, b.rows, s.people = resize(b.urls, n), resize(b.keys, n), resize(b.rows, n), resize(s.people, n)
	for i, f := range found {
		b.urls[i] = f.NetworkURL
	}
	if err := b.findPeople(b.urls, b.rows); err != nil {
		return err
	}
	s.own.Reset()
	for i, f := range found {
		if b.keys[i] = ""; b.rows[i] == keyed.None {
			b.keys[i] = f.EmailKey
		}
		s.own.Add([]byte(b.keys[i]))
	}
	if err := b.findByDigest(&s.own, b.part(part)); err != nil {
		return err
	}
	s.keys.Reset()
	for i, f := range found {
		own := f.EmailKey
		switch {
		case b.rows[i] != keyed.None:
			if err := b.engine.directory.FillPerson(b.rows[i], &b.arena, &b.people[i]); err != nil {
				return readable(err)
			}
		case b.emails[i] == "":
			s.people[i] = nil
			s.addKey(i, own)
			continue
		case b.addresses[i] == "":
			own = b.emails[i] // a digest has the hashes of its address in the directory
		}
		s.people[i] = &b.people[i].Person
		s.addKey(i, own)
		for _, key := range s.people[i].EmailKeys {
			if key != own {
				s.addKey(i, key)
			}
		}
	}
	s.keys.Emails.Pad(n)
	b.hashes.lists(&s.keys)
	return nil
}

func (s *searchers) addKey(i int, key string) {
	if key == "" {
		return
	}
	if !people.IsAddress([]byte(key)) {
		s.keys.Digests++
	}
	s.keys.Emails.Put(i, []byte(key), nil)
}

// hashesOf returns the places in keys.Hashes of the distinct hashes of a search, at most limit.
func (s *searchers) hashesOf(i, limit int) []int {
	s.distinct = s.distinct[:0]
	hashes := &s.keys.Hashes
next:
	for n, to := hashes.Of(i); n < to && len(s.distinct) < limit; n++ {
		for _, other := range s.distinct {
			if bytes.Equal(hashes.Texts.At(other), hashes.Texts.At(n)) {
				continue next
			}
		}
		s.distinct = append(s.distinct, n)
	}
	return s.distinct
}

// addLeads adds the leads of a page, with their companies if they are asked for.
func (s *searchers) addLeads(ctx context.Context, found []searches.Found, p resolution.SearchPage, to *resolution.Answers) error {
	var failed error
	err := s.each(ctx, found, people.Whole, func(i int, f *searches.Found) {
		lead := s.lead(i, f, p)
		row := to.Len()
		to.AddFound(&lead)
		for _, n := range s.hashesOf(i, p.HEMs) {
			to.Hashes.Put(row, s.keys.Hashes.Texts.At(n), s.keys.Hashes.Types.At(n))
		}
		if p.SuperEnrichment && s.people[i] != nil && s.people[i].CompanyDomain != "" && failed == nil {
			var code int32
			if code, failed = s.batch.engine.directory.AddEmployer(s.people[i].CompanyDomain, to.Companies.Table); failed == nil {
				to.SetCompany(code)
			}
		}
	})
	return errors.Join(err, readable(failed))
}

// lead is the lead of a search but for its hashes and its company. It is valid until the next
// find.
func (s *searchers) lead(i int, f *searches.Found, p resolution.SearchPage) resolution.FoundLead {
	lead := resolution.FoundLead{LeadID: f.LeadID, LeadType: f.LeadType, SearchedAt: f.SearchedAt, MatchedKeywords: f.MatchedKeywords}
	address, lives := place(f.Address, s.people[i])
	lead.Address = address
	if person := s.people[i]; person != nil {
		copyTexts(&lead.Lead, person, func(v *values.Value) bool { return v.Role })
	}
	lead.JobTitle = cmp.Or(f.JobTitle, lead.JobTitle)
	if p.Deanonymize {
		lead.NetworkURL = f.NetworkURL
		s.name(&lead.Lead, i, lives, p.SuperEnrichment)
	}
	return lead
}

// copyTexts copies the texts of a person whose rows are such.
func copyTexts(to *resolution.Lead, of *people.Person, such func(*values.Value) bool) {
	texts, from := to.Texts(), of.Texts()
	for i := range values.Person {
		if v := &values.Person[i]; v.Text > 0 && such(v) {
			*texts[v.Text] = *from[v.Text]
		}
	}
}

// place returns where a search was made from, completed by the address of the person if that
// is the same place: then lives is true. If the search has no place, it is the address of
// the person. It never has a street.
func place(search resolution.Address, person *people.Person) (a resolution.Address, lives bool) {
	if person == nil {
		return search, false
	}
	home := person.Address
	same := func(a, b string) bool { return a == "" || b == "" || strings.EqualFold(a, b) }
	if !same(search.City, home.City) || !same(search.State, home.State) || !same(search.ZipCode, home.ZipCode) {
		return search, false
	}
	return resolution.Address{
		City:    cmp.Or(search.City, home.City),
		State:   cmp.Or(search.State, home.State),
		ZipCode: cmp.Or(search.ZipCode, home.ZipCode),
	}, true
}

// name adds the data that identify the lead of a search. lives says that the address of the lead
// is that of the person.
func (s *searchers) name(l *resolution.Lead, i int, lives, whole bool) {
	var emails []resolution.ContactEmail
	for n, to := s.keys.Emails.Of(i); n < to; n++ {
		if key := s.keys.Emails.Texts.At(n); people.IsAddress(key) {
			emails = append(emails, resolution.ContactEmail{Email: text(key)})
		}
	}
	if len(emails) > 0 {
		l.Email = emails[0].Email
	}
	if whole {
		l.Emails = emails
	}
	p := s.people[i]
	if p == nil {
		return
	}
	l.NetworkURL = cmp.Or(l.NetworkURL, p.NetworkURL)
	copyTexts(l, p, func(v *values.Value) bool { return v.Kind == values.Plain && !v.Role && !v.InAddress })
	l.LastSeenAt = p.LastSeenAt
	if lives {
		l.Address.Street = p.Address.Street
	}
	if len(p.Phones) > 0 {
		l.Phone, l.PhoneRaw = p.Phones[0].Phone, p.PhoneRaw
	}
	if whole {
		l.Phones = p.Phones
	}
}
