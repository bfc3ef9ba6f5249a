package embedded

import (
	"sync/atomic"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/directory/companies"
	"github.com/leadetl/leadetl/resolution/directory/records"
	"github.com/leadetl/leadetl/transforms/orgtype"
)

// companyCodes are the codes that a table gave companies of the directory. All batches with
// the table share them.
type companyCodes struct {
	table   resolution.CompanyTable
	owners  codes // of IP ranges
	domains codes // by their codes among the domains of people
	rows    codes // of companies
}

// codesOf returns the codes of a table. There are those of one table at a time: a caller
// uses one until it is full. Those of a list, which is soon empty again, are not remembered.
func (e *Engine) codesOf(t resolution.CompanyTable) *companyCodes {
	if _, short := t.(*resolution.CompanyList); short {
		return &companyCodes{table: t}
	}
	c := e.codes.Load()
	if c == nil || c.table != t {
		c = &companyCodes{t, newCodes(), newCodes(), newCodes()}
		e.codes.Store(c)
	}
	return c
}

// codes remembers the codes of numbers. Of two numbers with the same place, it remembers the
// last; without places, none. It is safe from many goroutines.
type codes []atomic.Uint64 // the number + 1, then its code

func newCodes() codes { return make(codes, 1<<17) }

func (c codes) get(number uint32) (code int32, known bool) {
	return codeIn(c.at(number), number)
}

func (c codes) at(number uint32) uint64 {
	if len(c) == 0 {
		return 0
	}
	return c[number%uint32(len(c))].Load()
}

// atAll sets to[i] to what may have the code of a number: codeIn says whether it does. Between
// the reads are no branches, so that the processor waits for many at once.
func (c codes) atAll(numbers []uint32, to []uint64) {
	for i, number := range numbers {
		to[i] = c.at(number)
	}
}

func codeIn(n uint64, number uint32) (code int32, known bool) {
	return int32(uint32(n)), uint32(n>>32) == number+1
}

func (c codes) put(number uint32, code int32) {
	if len(c) > 0 {
		c[number%uint32(len(c))].Store(uint64(number+1)<<32 | uint64(uint32(code)))
	}
}

// scratchCompany is a company on its way into a table.
type scratchCompany struct {
	companies.Entry
	arena records.Arena
}

// codeOwners sets the codes of the companies of the ranges of the addresses, with the kinds of
// their owners and the reasons of those without one.
func (b *batch) codeOwners(table resolution.CompanyTable) error {
	if err := b.findOwners(); err != nil {
		return err
	}
	known := b.engine.codesOf(table)
	b.ownerCodes, b.companyCodes = resize(b.ownerCodes, len(b.owners)), resize(b.companyCodes, len(b.owners))
	known.owners.atAll(b.owners, b.ownerCodes)
	for i, owner := range b.owners {
		b.companyCodes[i] = 0
		if !b.addrs[i].IsValid() {
			continue
		}
		if b.reasons[i] = b.withoutOwner(owner, b.orgTypes[i]); b.reasons[i] != "" {
			continue
		}
		code, there := codeIn(b.ownerCodes[i], owner)
		if !there {
			var err error
			if code, err = b.addOwner(table, owner); err != nil {
				return err
			}
			known.owners.put(owner, code)
		}
		if b.companyCodes[i] = code; code == 0 {
			b.reasons[i] = NoCompany
		}
	}
	return nil
}

// withoutOwner is why an address is not answered with the company of the owner of its range;
// "" if it may be.
func (b *batch) withoutOwner(owner uint32, orgType string) string {
	switch {
	case owner == 0:
		return NotFound
	case orgtype.IsProvider(orgType) && !b.engine.options.IncludeProviders:
		return providerReason(orgType)
	}
	return ""
}

// addOwner adds the company of an owner to a table, and returns 0 if it has none.
func (b *batch) addOwner(t resolution.CompanyTable, owner uint32) (int32, error) {
	b.read.arena.Reset()
	there, err := b.engine.directory.FillCompanyOf(owner, &b.read.arena, &b.read.Entry)
	if err != nil || !there {
		return 0, readable(err)
	}
	return t.Add(&b.read.Company), nil
}

// codeEmployers sets the codes of the companies of people. It looks up a domain with a code
// once.
func (b *batch) codeEmployers(a *resolution.Answers) error {
	to, of := &a.Companies, &a.CompanyDomains
	to.Codes = resize(to.Codes, of.Len())
	clear(to.Codes)
	if b.engine.directory == nil {
		return nil
	}
	known := b.engine.codesOf(to.Table)
	b.domains, b.missed = b.domains[:0], b.missed[:0]
	for i := range to.Codes {
		if of.Table != nil {
			code, there := known.domains.get(uint32(of.Codes[i]))
			if there {
				to.Codes[i] = code
				continue
			}
		}
		if domain := of.At(i); len(domain) > 0 {
			b.domains, b.missed = append(b.domains, text(domain)), append(b.missed, i)
		}
	}
	var rows [together]uint32
	for from := 0; from < len(b.missed); from += together {
		n := min(together, len(b.missed)-from)
		if err := b.engine.directory.CompanyRows(b.domains[from:from+n], rows[:n]); err != nil {
			return readable(err)
		}
		for k, i := range b.missed[from : from+n] {
			code, err := b.codeEmployer(known, rows[k], b.domains[from+k])
			if err != nil {
				return err
			}
			if to.Codes[i] = code; of.Table != nil {
				known.domains.put(uint32(of.Codes[i]), code)
			}
		}
	}
	return nil
}

// codeEmployer returns the code of the company of a row; of one with the domain and nothing
// else without a row.
func (b *batch) codeEmployer(known *companyCodes, row uint32, domain string) (int32, error) {
	if row == records.None {
		return known.table.Add(&resolution.Company{Domain: domain}), nil
	}
	code, there := known.rows.get(row)
	if !there {
		b.read.arena.Reset()
		if err := b.engine.directory.FillCompany(row, &b.read.arena, &b.read.Entry); err != nil {
			return 0, readable(err)
		}
		code = known.table.Add(&b.read.Company)
		known.rows.put(row, code)
	}
	return code, nil
}
