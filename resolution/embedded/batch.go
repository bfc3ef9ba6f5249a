package embedded

import (
	"context"
	"encoding/hex"
	"fmt"
	"net/netip"
	"strings"
	"unsafe"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/directory/people"
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
	domains   []string
	companies []*resolution.Company // of addresses
	employers []*resolution.Company // of people
	hashes    hashes

	addresses []string // of email_to_hem, "" for a digest
	emails    []string // of the people found
	behind    hashes   // of the addresses behind digests
	sums      []byte   // SHA-256 of addresses whose profiles are asked for

	addrs    []netip.Addr
	owners   []uint32
	orgTypes []string
	visits   []visits.Visit
	ends     []int           // of each address's visits
	urls     []string        // visitors being looked up
	seen     []*visits.Visit // the visit that answers

	found   resolution.People
	rows    []uint32            // of people
	asked   []uint32            // of the visitors being looked up
	answers []resolution.Answer // of addresses without a visitor

	missed       []int // people with a company whose code is not known
	read         scratchCompany
	ownerCodes   []uint64 // what is known of the codes of the owners
	companyCodes []int32  // of addresses
	reasons      []string // of addresses without a code
}

// Resolve answers keys; see resolution.Batch.
func (b *batch) Resolve(ctx context.Context, keys []string, answers []resolution.Answer) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if b.operation.FindsPeople() {
		return b.resolveLeads(ctx, keys, answers)
	}
	b.start(keys, answers)
	var err error
	switch b.operation {
	case resolution.EmailToHEM:
		err = b.emailToHEM(answers)
	case resolution.IPToCompany:
		err = b.ipToCompany(answers)
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

// addHashes adds the hashes of the leads.
func (b *batch) addHashes() {
	for lead, hashes := range b.hashes.all() {
		b.leads[lead].HashedEmails = hashes
	}
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
		b.addHashes()
		return nil
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
	clear(b.companies)
	if err := b.findOwners(b.orgTypes); err != nil {
		return err
	}
	if d := b.engine.directory; d != nil {
		if err := d.CompaniesOf(b.owners, b.companies); err != nil {
			return readable(err)
		}
	}
	for i, addr := range b.addrs {
		if !addr.IsValid() {
			continue
		}
		reason := b.withoutOwner(b.owners[i], b.orgTypes[i])
		if reason == "" && b.companies[i] == nil {
			reason = NoCompany
		}
		if reason != "" {
			answers[i] = noMatch(reason)
			continue
		}
		b.match(answers, i, resolution.Lead{Company: b.companies[i]})
	}
	return nil
}

// findOwners sets the owners of the ranges of the addresses, and orgTypes to their kinds.
func (b *batch) findOwners(orgTypes []string) error {
	b.owners = resize(b.owners, len(b.addrs))
	clear(b.owners)
	clear(orgTypes)
	d := b.engine.directory
	if d == nil {
		return nil
	}
	if err := d.Owners(b.addrs, b.owners); err != nil {
		return readable(err)
	}
	return readable(d.OrgTypesOf(b.owners, orgTypes))
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
	if err := b.codeOwners(found); err != nil {
		return fmt.Errorf("embedded %s: %w", b.operation, err)
	}
	return nil
}
