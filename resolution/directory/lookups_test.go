package directory

import (
	"crypto/sha256"
	"encoding/hex"
	"net/netip"

	"github.com/leadetl/leadetl/internal/keyed"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/directory/people"
	"github.com/leadetl/leadetl/resolution/directory/visits"
	"github.com/leadetl/leadetl/transforms/email"
)

// Look-ups of one key at a time, for tests.

// Person finds a person by profile key; nil without one.
func (d *Directory) Person(key string) (*people.Person, error) {
	rows, e := []uint32{0}, &people.Entry{}
	if err := d.PeopleRows([]string{key}, rows); err != nil || rows[0] == keyed.None {
		return nil, err
	}
	err := d.FillPerson(rows[0], &keyed.Arena{}, e)
	return &e.Person, err
}

// PersonByEmail finds a person by the key of an email, and returns their email; nil without one.
func (d *Directory) PersonByEmail(key string) (p *people.Person, emailKey string, err error) {
	a, err := email.Parse([]byte(key))
	if err != nil {
		return nil, "", nil
	}
	address, digest := string(a.AppendKey(nil)), ""
	if a.Kind() == email.Plaintext {
		sum := sha256.Sum256([]byte(address))
		digest = string(sum[:])
	} else {
		raw, err := hex.DecodeString(address)
		if err != nil {
			return nil, "", err
		}
		address, digest = "", string(raw)
	}
	entries, emails := make([]people.Entry, 1), []string{""}
	err = d.FillPeopleByDigest([]string{digest}, []string{address}, &keyed.Arena{}, entries, emails, people.Whole)
	if emails[0] == "" {
		return nil, "", err
	}
	return &entries[0].Person, emails[0], err
}

// Company finds a company by its domain; nil without one.
func (d *Directory) Company(domain string) (*resolution.Company, error) {
	rows := []uint32{0}
	if err := guarded(Companies, func() { d.companies.FindAll([]string{domain}, rows) }); err != nil || rows[0] == 0 {
		return nil, err
	}
	list := &resolution.CompanyList{}
	code, err := d.AddEmployer(domain, list)
	a := resolution.Answers{Companies: resolution.CompanyCodes{Table: list, Codes: []int32{code}}}
	return a.Company(0), err
}

// companyOf is the company of an owner; nil without one.
func (d *Directory) companyOf(owner uint32) (*resolution.Company, error) {
	rows := []uint32{0}
	if err := d.OwnerCompanies([]uint32{owner}, rows); err != nil {
		return nil, err
	}
	a := resolution.Answers{Companies: resolution.CompanyCodes{Table: &resolution.CompanyList{}, Codes: []int32{0}}}
	err := d.CodeCompanies(rows, &a.Unread, &a.Companies, a.Companies.Codes)
	return a.Company(0), err
}

// owner is the owner of an address. Company is nil if the range has neither a name nor a domain.
type owner struct {
	OrgType string
	Company *resolution.Company
}

// Range finds the narrowest range of an address; nil without one.
func (d *Directory) Range(addr netip.Addr) (*owner, error) {
	owners, orgTypes := []uint32{0}, []string{""}
	if err := d.Owners([]netip.Addr{addr}, owners); err != nil || owners[0] == 0 {
		return nil, err
	}
	if err := d.OrgTypesOf(owners, orgTypes); err != nil {
		return nil, err
	}
	company, err := d.companyOf(owners[0])
	return &owner{OrgType: orgTypes[0], Company: company}, err
}

// Visits lists the visits from an address.
func (d *Directory) Visits(addr netip.Addr) ([]visits.Visit, error) {
	return d.FillVisits([]netip.Addr{addr}, &keyed.Arena{}, nil, []int{0})
}
