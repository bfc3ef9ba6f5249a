package embedded

import (
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/transforms/orgtype"
)

// codeOwners sets the codes of the companies of the ranges of the addresses, with the kinds of
// their owners and the reasons of those without one.
func (b *batch) codeOwners(to *resolution.Answers) error {
	if err := b.findOwners(); err != nil {
		return err
	}
	n := len(b.owners)
	b.companyRows, b.companyCodes = resize(b.companyRows, n), resize(b.companyCodes, n)
	clear(b.companyCodes)
	d := b.engine.directory
	if d == nil {
		clear(b.companyRows)
	} else if err := d.OwnerCompanies(b.owners, b.companyRows); err != nil {
		return readable(err)
	}
	for i, owner := range b.owners {
		if !b.addrs[i].IsValid() {
			b.companyRows[i] = 0
			continue
		}
		if b.reasons[i] = b.withoutOwner(owner, b.orgTypes[i]); b.reasons[i] != "" {
			b.companyRows[i] = 0
		} else if b.companyRows[i] == 0 {
			b.reasons[i] = NoCompany
		}
	}
	return b.codeRows(to, b.companyCodes)
}

// codeRows sets codes to those of the companies of companyRows.
func (b *batch) codeRows(to *resolution.Answers, codes []int32) error {
	if b.engine.directory == nil {
		clear(codes)
		return nil
	}
	return readable(b.engine.directory.CodeCompanies(b.companyRows, &to.Unread, &to.Companies, codes))
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

// codeEmployers sets the codes of the companies of the people of rows.
func (b *batch) codeEmployers(to *resolution.Answers, rows []uint32) error {
	to.Companies.Codes = resize(to.Companies.Codes, len(rows))
	b.companyRows = resize(b.companyRows, len(rows))
	if d := b.engine.directory; d != nil {
		if err := d.Employers(rows, b.companyRows); err != nil {
			return readable(err)
		}
	}
	return b.codeRows(to, to.Companies.Codes)
}
