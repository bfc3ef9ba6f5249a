package embedded

import (
	"sync/atomic"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/transforms/orgtype"
)

// companyCodes are the codes that a table gave companies of the directory. All batches with
// the table share them. The zero value remembers nothing.
type companyCodes struct {
	engine  *Engine
	owners  *codes // of IP ranges
	domains *codes // by their codes among the domains of people
	rows    *codes // of companies
}

// codesOf returns what the table remembers.
func (e *Engine) codesOf(t resolution.CompanyTable) companyCodes {
	known, there := t.Memory(func() any { return companyCodes{e, new(codes), new(codes), new(codes)} }).(companyCodes)
	if !there || known.engine != e {
		return companyCodes{}
	}
	return known
}

// codes are the codes of numbers, in pages that are made when they are needed. They are safe
// from many goroutines. Those that are nil remember nothing.
type codes [1 << (32 - codePageBits)]atomic.Pointer[codePage]

const codePageBits = 16

// codePage has the codes of numbers that follow each other, + 1; 0 for one that is not known.
type codePage [1 << codePageBits]atomic.Int32

func (c *codes) get(number uint32) (code int32, known bool) {
	if c == nil {
		return 0, false
	}
	page := c[number>>codePageBits].Load()
	if page == nil {
		return 0, false
	}
	code = page[number%uint32(len(page))].Load() - 1
	return code, code >= 0
}

func (c *codes) put(number uint32, code int32) {
	if c == nil {
		return
	}
	page := &c[number>>codePageBits]
	if page.Load() == nil {
		page.CompareAndSwap(nil, new(codePage))
	}
	page.Load()[number%(1<<codePageBits)].Store(code + 1)
}

// all sets to[i] to the code of a number; below 0 for one that is not known. Few branches are
// between the reads, so that the processor waits for many at once.
func (c *codes) all(numbers []uint32, to []int32) {
	for i, number := range numbers {
		code, known := c.get(number)
		if !known {
			code = -1
		}
		to[i] = code
	}
}

// codeOwners sets the codes of the companies of the ranges of the addresses, with the kinds of
// their owners and the reasons of those without one.
func (b *batch) codeOwners(table resolution.CompanyTable) error {
	if err := b.findOwners(); err != nil {
		return err
	}
	known := b.engine.codesOf(table)
	b.companyCodes = resize(b.companyCodes, len(b.owners))
	known.owners.all(b.owners, b.companyCodes)
	b.missed = b.missed[:0]
	for i, owner := range b.owners {
		code := b.companyCodes[i]
		b.companyCodes[i] = 0
		if !b.addrs[i].IsValid() {
			continue
		}
		if b.reasons[i] = b.withoutOwner(owner, b.orgTypes[i]); b.reasons[i] != "" {
			continue
		}
		if code < 0 {
			b.missed = append(b.missed, i)
		} else if b.companyCodes[i] = code; code == 0 {
			b.reasons[i] = NoCompany
		}
	}
	return b.codeMissed(table, known)
}

// codeMissed does the same for the addresses in missed, whose owners have no code yet.
func (b *batch) codeMissed(table resolution.CompanyTable, known companyCodes) error {
	var owners, rows [together]uint32
	for from := 0; from < len(b.missed); from += together {
		missed := b.missed[from:min(from+together, len(b.missed))]
		for k, i := range missed {
			owners[k] = b.owners[i]
		}
		b.ownerDomains.Reset()
		b.ownerNames.Reset()
		if err := b.engine.directory.AppendOwners(owners[:len(missed)], &b.ownerDomains, &b.ownerNames); err != nil {
			return readable(err)
		}
		b.domains = b.domains[:0]
		for k := range missed {
			b.domains = append(b.domains, text(b.ownerDomains.At(k)))
		}
		if err := b.engine.directory.CompanyRows(b.domains, rows[:len(missed)]); err != nil {
			return readable(err)
		}
		for k, i := range missed {
			code, there := known.owners.get(owners[k])
			if !there { // else a row of this batch was the first
				var err error
				if code, err = b.codeOwner(table, known.rows, rows[k], b.domains[k], text(b.ownerNames.At(k))); err != nil {
					return err
				}
				known.owners.put(owners[k], code)
			}
			if b.companyCodes[i] = code; code == 0 {
				b.reasons[i] = NoCompany
			}
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

// codeOwner returns the code of the company of an owner with a domain and a name, 0 if it has
// neither.
func (b *batch) codeOwner(table resolution.CompanyTable, known *codes, row uint32, domain, name string) (int32, error) {
	switch {
	case name == "" && domain == "":
		return 0, nil
	case name == "":
		return b.codeEmployer(table, known, row, domain)
	case row == 0:
		return table.Add((&resolution.Company{Domain: domain, Name: name}).Record()), nil
	}
	code, err := b.engine.directory.AddCompany(row, name, table)
	return code, readable(err)
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
			code, err := b.codeEmployer(to.Table, known.rows, rows[k], b.domains[from+k])
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
func (b *batch) codeEmployer(table resolution.CompanyTable, known *codes, row uint32, domain string) (int32, error) {
	if row == 0 {
		return table.Add((&resolution.Company{Domain: domain}).Record()), nil
	}
	if code, there := known.get(row); there {
		return code, nil
	}
	code, err := b.engine.directory.AddCompany(row, "", table)
	if err != nil {
		return 0, readable(err)
	}
	known.put(row, code)
	return code, nil
}
