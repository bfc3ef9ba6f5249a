package embedded

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/leadetl/leadetl/internal/keyed"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/directory/people"
	"github.com/leadetl/leadetl/resolution/directory/visits"
	"github.com/leadetl/leadetl/transforms/ipaddr"
)

var _ resolution.Resolver = (*Engine)(nil)

// NewBatch returns memory for the look-ups of an operation on one record.
func (e *Engine) NewBatch(op resolution.Operation) resolution.Batch {
	return &batch{engine: e, operation: op}
}

// batch is the memory of look-ups. Element i of every slice belongs to key i; a slice that is
// used is as long as the keys.
type batch struct {
	engine    *Engine
	operation resolution.Operation
	arena     keyed.Arena // texts of all answers

	keys    []string // those that may be answered, "" for the others
	reasons []string // why a key is not answered, "" if it may be
	rows    []uint32 // of people
	people  []people.Entry
	hashes  hashes
	plain   resolution.TypedTexts // emails without digests

	addresses []string // of email_to_hem, "" for a digest
	digests   []string // of the keys, raw
	emails    []string // of the people found
	sums      []byte   // SHA-256 of the keys

	addrs    []netip.Addr // those that can be looked up
	owners   []uint32
	orgTypes []string
	visits   []visits.Visit
	ends     []int           // of each address's visits
	urls     []string        // visitors being looked up
	asked    []uint32        // rows of the visitors being looked up
	seen     []*visits.Visit // the visit that answers

	companyRows  []uint32 // of addresses, or people
	companyCodes []int32  // of addresses
}

// Resolve answers keys; see resolution.Batch. Errors wrap resolution.ErrInvalid for a key that
// is not an email and for other operations, and resolution.ErrUnavailable if the directory
// cannot be read.
func (b *batch) Resolve(ctx context.Context, of resolution.Questions, limit int, to *resolution.Answers) (n int, err error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	switch id, gives := b.operation.Identifier(), b.operation.Gives(); {
	case id == resolution.Email:
		n, err = of.Keys.Len(), b.emailToHEM(&of, to)
	case id == resolution.NetworkURL:
		n, err = b.peopleOf(&of.Keys, limit, to)
	case gives == resolution.GivesCompany:
		n, err = len(of.Addrs), b.ipToCompany(of.Addrs, to)
	case gives == resolution.GivesVisitor:
		n, err = b.deanonymization(of.Addrs, limit, to)
	default:
		err = fmt.Errorf("%w: not an operation on one record", resolution.ErrInvalid)
	}
	if err != nil {
		return 0, fmt.Errorf("embedded %s: %w", b.operation, err)
	}
	return n, nil
}

// start sets the keys. Suppressed ones are not answered.
func (b *batch) start(keys *resolution.Texts) {
	n, id := keys.Len(), b.operation.Identifier()
	b.arena.Reset()
	b.keys, b.reasons = resize(b.keys, n), resize(b.reasons, n)
	clear(b.reasons)
	for i := range n {
		b.keys[i] = text(keys.At(i))
		if b.engine.listed(id, b.keys[i]) {
			b.keys[i], b.reasons[i] = "", NotFound
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

// part is what is read of a person: all of them if there is a list of suppressed
// people to compare them with.
func (b *batch) part(wanted people.Fields) people.Fields {
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

// startAddrs sets the addresses that can be looked up. The others have a reason.
func (b *batch) startAddrs(addrs []netip.Addr) {
	b.arena.Reset()
	b.addrs, b.reasons = resize(b.addrs, len(addrs)), resize(b.reasons, len(addrs))
	for i, a := range addrs {
		b.addrs[i], b.reasons[i] = netip.Addr{}, ""
		if !a.IsValid() {
			continue
		}
		look, ok := ipaddr.LookupAddr(a)
		switch {
		case b.engine.options.Listed != nil && b.engine.listed(resolution.IP, a.String()):
			b.reasons[i] = NotFound
		case !ok:
			b.reasons[i] = classReason(ipaddr.ClassOf(a))
		default:
			b.addrs[i] = look
		}
	}
}

func (b *batch) ipToCompany(addrs []netip.Addr, to *resolution.Answers) error {
	to.Reset()
	b.startAddrs(addrs)
	if err := b.codeOwners(to); err != nil {
		return err
	}
	to.OrgTypes = append(to.OrgTypes, b.orgTypes...)
	to.Companies.Codes = append(to.Companies.Codes, b.companyCodes...)
	to.Reasons = append(to.Reasons, b.reasons...)
	to.Matched = resize(to.Matched, len(addrs))
	for i, code := range b.companyCodes {
		to.Matched[i] = code != 0
	}
	return nil
}

// findOwners sets the owners of the ranges of the addresses, and their kinds.
func (b *batch) findOwners() error {
	b.owners, b.orgTypes = resize(b.owners, len(b.addrs)), resize(b.orgTypes, len(b.addrs))
	clear(b.owners)
	clear(b.orgTypes)
	d := b.engine.directory
	if d == nil {
		return nil
	}
	if err := d.Owners(b.addrs, b.owners); err != nil {
		return readable(err)
	}
	return readable(d.OrgTypesOf(b.owners, b.orgTypes))
}
