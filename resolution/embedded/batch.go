package embedded

import (
	"context"
	"encoding/hex"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"unsafe"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/directory/people"
	"github.com/leadetl/leadetl/resolution/directory/ranges"
	"github.com/leadetl/leadetl/resolution/directory/records"
	"github.com/leadetl/leadetl/resolution/directory/visits"
	"github.com/leadetl/leadetl/transforms/ipaddr"
)

var _ resolution.BatchResolver = (*Engine)(nil)

// NewBatch returns memory for the answers of an operation on one record.
func (e *Engine) NewBatch(op resolution.Operation) resolution.Batch {
	return &batch{engine: e, operation: op}
}

// batch is the memory of answers. Element i of every slice belongs to key i; a slice that is
// used is as long as the keys.
type batch struct {
	engine    *Engine
	operation resolution.Operation
	arena     records.Arena // texts of all answers

	keys      []string // those that may be answered, "" for the others
	leads     []resolution.Lead
	people    []people.Entry
	found     []bool // whether people has the key's
	domains   []string
	companies []*resolution.Company
	hashes    hashes

	addresses []string // of email_to_hem, "" for a digest
	emails    []string // of the people found
	behind    hashes   // of the addresses behind digests

	addrs       []netip.Addr
	owners      []uint32
	orgTypes    []string
	confidences []float64
	visits      []visits.Visit
	ends        []int           // of each address's visits
	urls        []string        // visitors being looked up
	seen        []*visits.Visit // the visit that answers
}

// Resolve answers keys; see resolution.Batch.
func (b *batch) Resolve(ctx context.Context, keys []string, answers []resolution.Answer) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	b.start(keys, answers)
	var err error
	switch b.operation {
	case resolution.EmailToHEM:
		err = b.emailToHEM(answers)
	case resolution.NetworkToHEM, resolution.NetworkToPhone, resolution.Enrichment:
		err = b.byProfile(answers)
	case resolution.IPToCompany:
		err = b.ipToCompany(answers)
	case resolution.Deanonymization:
		err = b.deanonymization(answers)
	default:
		return fmt.Errorf("embedded %s: %w: not an operation on one record", b.operation, resolution.ErrInvalid)
	}
	if err != nil {
		return fmt.Errorf("embedded %s: %w", b.operation, err)
	}
	return nil
}

func (b *batch) start(keys []string, answers []resolution.Answer) {
	clear(answers)
	b.arena.Reset()
	b.hashes.reset()
	b.leads = resize(b.leads, len(keys))
	b.domains = resize(b.domains, len(keys))
	clear(b.domains)
	b.keys = append(b.keys[:0], keys...)
	if b.engine.options.Listed == nil {
		return
	}
	for i, key := range keys {
		if b.engine.listed(b.operation.Identifier(), key) {
			b.keys[i], answers[i] = "", noMatch(NotFound)
		}
	}
}

// resize returns a slice of length n with undefined elements.
func resize[T any](s []T, n int) []T {
	if cap(s) < n {
		return append(s[:cap(s)], make([]T, n-cap(s))...)
	}
	return s[:n]
}

// match answers a key with its lead.
func (b *batch) match(answers []resolution.Answer, i int, lead resolution.Lead) {
	b.leads[i] = lead
	answers[i].Lead = &b.leads[i]
}

// person returns the person of key i; nil if they are unknown or suppressed.
func (b *batch) person(i int) *people.Person {
	if !b.found[i] || b.engine.hides(&b.people[i].Person) {
		return nil
	}
	return &b.people[i].Person
}

// fillPeople looks up the people of keys.
func (b *batch) fillPeople(keys []string, part people.Part) error {
	b.people, b.found = resize(b.people, len(keys)), resize(b.found, len(keys))
	if b.engine.directory == nil {
		clear(b.found)
		return nil
	}
	return readable(b.engine.directory.FillPeople(keys, &b.arena, b.people, b.found, b.part(part)))
}

// part is what is read of a person: all of them if there is a list of suppressed
// people to compare them with.
func (b *batch) part(wanted people.Part) people.Part {
	if b.engine.options.Listed != nil {
		return people.Whole
	}
	return wanted
}

// readable says that the directory's files failed us.
func readable(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: read directory: %w", resolution.ErrUnavailable, err)
}

func (b *batch) byProfile(answers []resolution.Answer) error {
	part := people.Whole
	switch b.operation {
	case resolution.NetworkToPhone:
		part = people.Phones
	case resolution.NetworkToHEM:
		part = people.Emails
	}
	if err := b.fillPeople(b.keys, part); err != nil {
		return err
	}
	for i, key := range b.keys {
		p := b.person(i)
		switch {
		case key == "":
		case p == nil:
			answers[i] = noMatch(NotFound)
		case b.operation == resolution.NetworkToPhone:
			if len(p.Phones) == 0 {
				answers[i] = noMatch(NoPhone)
				continue
			}
			b.match(answers, i, resolution.Lead{Phone: p.Phones[0].Phone})
		case b.operation == resolution.NetworkToHEM:
			if len(p.EmailKeys) == 0 {
				answers[i] = noMatch(NoEmail)
				continue
			}
			b.hashes.add(i, p.EmailKeys...)
			b.match(answers, i, resolution.Lead{NetworkURL: p.NetworkURL})
		default:
			b.lead(answers, i, p)
		}
	}
	return b.complete(answers)
}

// lead answers a key with all data of a person. complete adds hashes and company.
func (b *batch) lead(answers []resolution.Answer, i int, p *people.Person) {
	lead := resolution.Lead{Contact: p.Contact, NetworkURL: p.NetworkURL}
	if len(p.Phones) > 0 {
		lead.Phone = p.Phones[0].Phone
	}
	b.hashes.add(i, p.EmailKeys...)
	b.domains[i] = p.CompanyDomain
	b.match(answers, i, lead)
}

// complete adds the hashes and the companies of the leads.
func (b *batch) complete(answers []resolution.Answer) error {
	for lead, hashes := range b.hashes.all() {
		b.leads[lead].HashedEmails = hashes
	}
	if !slices.ContainsFunc(b.domains, func(domain string) bool { return domain != "" }) {
		return nil
	}
	b.companies = resize(b.companies, len(b.keys))
	if err := b.engine.directory.FindCompanies(b.domains, b.companies); err != nil {
		return readable(err)
	}
	for i, domain := range b.domains {
		if domain != "" {
			answers[i].Lead.Company = b.companies[i]
		}
	}
	return nil
}

func (b *batch) emailToHEM(answers []resolution.Answer) error {
	for i, key := range b.keys {
		if key != "" {
			b.hashes.add(i, key)
		}
	}
	if b.engine.directory == nil {
		for i, key := range b.keys {
			if key != "" {
				b.match(answers, i, resolution.Lead{})
			}
		}
		return b.complete(answers)
	}
	n := len(b.keys)
	digests := b.domains // no lead has a company
	b.addresses, b.emails, b.people = resize(b.addresses, n), resize(b.emails, n), resize(b.people, n)
	clear(b.addresses)
	raw := b.arena.Take(32 * n)
	for i, hashes := range b.hashes.all() {
		sum, last := raw[32*i:32*i+32], hashes[len(hashes)-1].Email
		size, err := hex.Decode(sum, unsafe.Slice(unsafe.StringData(last), len(last)))
		if err != nil {
			return fmt.Errorf("%w: the key is not an email", resolution.ErrInvalid)
		}
		digests[i], b.leads[i].HashedEmails = text(sum[:size]), hashes
		if strings.Contains(b.keys[i], "@") {
			b.addresses[i] = b.keys[i]
		}
	}
	if err := b.engine.directory.FillPeopleByDigest(digests, b.addresses, &b.arena, b.people, b.emails, b.part(people.Emails)); err != nil {
		return readable(err)
	}
	b.behind.reset()
	for i, key := range b.keys {
		if key == "" {
			continue
		}
		lead := resolution.Lead{HashedEmails: b.leads[i].HashedEmails}
		if b.emails[i] != "" {
			p := &b.people[i].Person
			if b.engine.hides(p) {
				answers[i] = noMatch(NotFound)
				continue
			}
			lead.NetworkURL = p.NetworkURL
			// A digest has the hashes of the address behind it; an address has
			// its own, also where the directory has no more of it than a digest.
			if b.addresses[i] == "" {
				b.behind.add(i, b.emails[i])
			}
		}
		b.match(answers, i, lead)
	}
	for i, hashes := range b.behind.all() {
		b.leads[i].HashedEmails = hashes
	}
	return nil
}

// parse sets the addresses of the keys that can be looked up, and answers the others.
func (b *batch) parse(answers []resolution.Answer) error {
	b.addrs = resize(b.addrs, len(b.keys))
	for i, key := range b.keys {
		b.addrs[i] = netip.Addr{}
		if key == "" {
			continue
		}
		a, err := parseAddr(key)
		if err != nil {
			return err
		}
		found, ok := ipaddr.LookupAddr(a)
		if !ok {
			answers[i] = noMatch(classReason(ipaddr.ClassOf(a)))
			continue
		}
		b.addrs[i] = found
	}
	return nil
}

func (b *batch) ipToCompany(answers []resolution.Answer) error {
	if err := b.parse(answers); err != nil {
		return err
	}
	if err := b.findCompanies(answers); err != nil {
		return err
	}
	for i := range answers {
		if b.owners[i] != 0 {
			answers[i].OrgType = b.orgTypes[i]
		}
	}
	return nil
}

// findCompanies answers the addresses with the companies of their ranges.
func (b *batch) findCompanies(answers []resolution.Answer) error {
	n := len(b.keys)
	b.orgTypes, b.companies = resize(b.orgTypes, n), resize(b.companies, n)
	if err := b.lookUp(b.companies, b.orgTypes); err != nil {
		return err
	}
	for i, addr := range b.addrs {
		if !addr.IsValid() {
			continue
		}
		if reason := b.withoutCompany(i, b.companies[i], b.orgTypes[i]); reason != "" {
			answers[i] = noMatch(reason)
			continue
		}
		b.match(answers, i, resolution.Lead{Company: b.companies[i]})
	}
	return nil
}

// lookUp sets what the directory has of the ranges of the addresses.
func (b *batch) lookUp(companies []*resolution.Company, orgTypes []string) error {
	b.owners = resize(b.owners, len(b.addrs))
	clear(b.owners)
	clear(companies)
	clear(orgTypes)
	d := b.engine.directory
	if d == nil {
		return nil
	}
	if err := d.Owners(b.addrs, b.owners); err != nil {
		return readable(err)
	}
	return readable(d.OfOwners(b.owners, companies, orgTypes))
}

// withoutCompany is why address i is not answered with the company of its range; "" if it
// is.
func (b *batch) withoutCompany(i int, c *resolution.Company, orgType string) string {
	switch {
	case b.owners[i] == 0:
		return NotFound
	case ranges.IsProvider(orgType) && !b.engine.options.IncludeProviders:
		return providerReason(orgType)
	case c == nil:
		return NoCompany
	}
	return ""
}

// Companies answers addresses; see resolution.CompanyBatch.
func (b *batch) Companies(ctx context.Context, addrs []netip.Addr, found resolution.Companies) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	b.addrs = resize(b.addrs, len(addrs))
	for i, a := range addrs {
		b.addrs[i] = netip.Addr{}
		if !a.IsValid() {
			continue
		}
		look, ok := ipaddr.LookupAddr(a)
		switch {
		case b.engine.options.Listed != nil && b.engine.listed(resolution.IP, a.String()):
			found.Reasons[i] = NotFound
		case !ok:
			found.Reasons[i] = classReason(ipaddr.ClassOf(a))
		default:
			b.addrs[i] = look
		}
	}
	if err := b.lookUp(found.Companies, found.OrgTypes); err != nil {
		return fmt.Errorf("embedded %s: %w", b.operation, err)
	}
	for i, addr := range b.addrs {
		if !addr.IsValid() {
			continue
		}
		if reason := b.withoutCompany(i, found.Companies[i], found.OrgTypes[i]); reason != "" {
			found.Companies[i], found.Reasons[i] = nil, reason
		}
	}
	return nil
}
