package embedded

import (
	"context"
	"fmt"
	"math"

	"github.com/leadetl/leadetl/internal/hashlanes"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/directory/people"
	"github.com/leadetl/leadetl/resolution/directory/records"
)

var _ resolution.PeopleBatch = (*batch)(nil)

// ResolvePeople answers keys as columns; see resolution.PeopleBatch.
func (b *batch) ResolvePeople(ctx context.Context, keys []string, limit int, p *resolution.People) (n int, err error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	b.answers = resize(b.answers, len(keys))
	b.start(keys, b.answers)
	if n, err = b.fillPeople(limit, p); err != nil {
		return 0, fmt.Errorf("embedded %s: %w", b.operation, err)
	}
	return n, nil
}

// resolveLeads is ResolvePeople with the answers as leads.
func (b *batch) resolveLeads(ctx context.Context, keys []string, answers []resolution.Answer) error {
	if _, err := b.ResolvePeople(ctx, keys, math.MaxInt, &b.found); err != nil {
		return err
	}
	b.found.Leads(b.leads)
	if err := b.addCompanies(); err != nil {
		return fmt.Errorf("embedded %s: %w", b.operation, err)
	}
	for i := range keys {
		answers[i] = noMatch(b.found.Reasons[i])
		if b.found.Matched[i] {
			answers[i] = match(&b.leads[i])
		}
	}
	return nil
}

// addCompanies adds the companies of the leads of the people found.
func (b *batch) addCompanies() error {
	p := &b.found
	if !p.Whole || b.engine.directory == nil {
		return nil
	}
	n := len(p.Matched)
	b.domains, b.employers = resize(b.domains, n), resize(b.employers, n)
	for i := range n {
		b.domains[i] = text(p.CompanyDomains.At(i))
	}
	if err := b.engine.directory.FindCompanies(b.domains, b.employers); err != nil {
		return readable(err)
	}
	for i, matched := range p.Matched {
		switch {
		case matched && b.operation == resolution.Deanonymization && p.MatchLevels[i] == levelCompany:
			b.leads[i].Company = b.companies[i]
		case matched:
			b.leads[i].Company = b.employers[i]
		}
	}
	return nil
}

// together is how many people are looked up and then read, so that what was loaded for the
// one is in the cache of the processor for the other.
const together = 128

func (b *batch) fillPeople(limit int, p *resolution.People) (n int, err error) {
	b.rows = resize(b.rows, len(b.keys))
	if b.operation == resolution.Deanonymization {
		return b.deanonymization(limit, p)
	}
	part, lacking := people.Whole, ""
	switch b.operation {
	case resolution.NetworkToPhone:
		part, lacking = people.Phones, NoPhone
	case resolution.NetworkToHEM:
		part, lacking = people.Emails, NoEmail
	}
	b.engine.directory.StartPeople(p, part)
	for n < len(b.keys) && p.Size <= limit {
		to := min(n+together, len(b.keys))
		if err := b.findPeople(b.keys[n:to], b.rows[n:to]); err != nil {
			return 0, err
		}
		appended, err := b.engine.directory.AppendPeople(b.rows[n:to], nil, p, part, limit)
		if err != nil {
			return 0, readable(err)
		}
		n += appended
	}
	if err := b.complete(p); err != nil {
		return 0, err
	}
	for i := range n {
		reason := b.answers[i].Reason
		switch {
		case b.keys[i] == "":
		case b.rows[i] == records.None:
			reason = NotFound
		case lacking == NoPhone && len(p.Phone.At(i)) == 0, lacking == NoEmail && p.EmailKeys.Ends[i] == p.EmailKeys.Ends[i+1]:
			reason = lacking
		}
		p.Reasons, p.Matched = append(p.Reasons, reason), append(p.Matched, reason == "" && b.keys[i] != "")
	}
	return n, nil
}

// findPeople sets rows to those of the people of profile keys who are not suppressed.
func (b *batch) findPeople(keys []string, rows []uint32) error {
	if b.engine.directory == nil {
		for i := range rows {
			rows[i] = records.None
		}
		return nil
	}
	if err := b.engine.directory.PeopleRows(keys, rows); err != nil || b.engine.options.Listed == nil {
		return readable(err)
	}
	b.people = resize(b.people, 1)
	for i, row := range rows {
		if row == records.None {
			continue
		}
		if err := b.engine.directory.FillPerson(row, &b.arena, &b.people[0]); err != nil {
			return readable(err)
		}
		if b.engine.hides(&b.people[0].Person) {
			rows[i] = records.None
		}
	}
	return nil
}

// complete adds hashes and companies to people.
func (b *batch) complete(p *resolution.People) error {
	b.hashes.lists(p)
	if !p.Whole {
		return nil
	}
	return b.codeEmployers(p)
}

// lists makes the hashes of the emails of people: md5, sha1 and sha256 of an address, or
// the digest itself.
func (h *hashes) lists(p *resolution.People) {
	keys := &p.EmailKeys.Texts
	n := keys.Len()
	h.md5, h.sha1, h.sha256 = resize(h.md5, 32*n), resize(h.sha1, 40*n), resize(h.sha256, 64*n)
	hashlanes.Hex(h.md5, h.sha1, h.sha256, keys.Data, keys.Offsets)
	to := &p.Hashes
	if p.Digests == 0 {
		h.listAll(p)
		return
	}
	for i := 1; i < len(p.EmailKeys.Ends); i++ {
		for e := int(p.EmailKeys.Ends[i-1]); e < int(p.EmailKeys.Ends[i]); e++ {
			key := keys.At(e)
			if !resolution.IsAddress(key) {
				to.Texts.Add(key)
				to.Types = append(to.Types, typeCode(len(key)))
				continue
			}
			to.Texts.Add(h.md5[32*e : 32*e+32])
			to.Texts.Add(h.sha1[40*e : 40*e+40])
			to.Texts.Add(h.sha256[64*e : 64*e+64])
			to.Types = append(to.Types, 0, 1, 2)
		}
		to.End()
	}
}

// listAll is lists where all keys are addresses, whose hashes have the same lengths.
func (h *hashes) listAll(p *resolution.People) {
	const all = 32 + 40 + 64
	n, to := p.EmailKeys.Texts.Len(), &p.Hashes
	data := resize(to.Texts.Data, n*all)
	offsets, types := resize(to.Texts.Offsets, 3*n+1), resize(to.Types, 3*n)
	for e := range n {
		at := e * all
		hashed := data[at : at+all]
		copy(hashed, h.md5[32*e:32*e+32])
		copy(hashed[32:], h.sha1[40*e:40*e+40])
		copy(hashed[72:], h.sha256[64*e:64*e+64])
		offsets[3*e+1], offsets[3*e+2], offsets[3*e+3] = int32(at+32), int32(at+72), int32(at+all)
		types[3*e], types[3*e+1], types[3*e+2] = 0, 1, 2
	}
	to.Texts, to.Types = resolution.Texts{Data: data, Offsets: offsets}, types
	for _, end := range p.EmailKeys.Ends[1:] {
		to.Ends = append(to.Ends, 3*end)
	}
}

// typeCode is the code of the type of a digest by its length in hex.
func typeCode(length int) int32 {
	switch length {
	case 32:
		return 0
	case 40:
		return 1
	}
	return 2
}
