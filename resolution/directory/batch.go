package directory

import (
	"net/netip"
	"runtime/debug"

	"github.com/leadetl/leadetl/internal/keyed"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/directory/people"
	"github.com/leadetl/leadetl/resolution/directory/visits"
	"github.com/leadetl/leadetl/transforms/phone"
)

// Look-ups of many keys at once. They allocate nothing: texts are in an arena, and
// entries are used again.

// PeopleRows sets rows to the rows of profile keys; keyed.None without one, and for an
// empty key.
func (d *Directory) PeopleRows(keys []string, rows []uint32) error {
	return guarded(People, func() { d.people.FindAll(keys, rows) })
}

// StartPeople makes a empty for people of the directory.
func (d *Directory) StartPeople(a *resolution.Answers) {
	d.peopleFile().Start(a, d != nil && !d.HasOtherPhoneRules())
}

// HasOtherPhoneRules reports whether phones of people were described by other rules than those of
// this program, so that the answers have no details of them.
func (d *Directory) HasOtherPhoneRules() bool {
	return d.Has(People) && d.manifest.Kinds[People].PhoneRules != phone.Rules
}

// peopleFile is the file of people, which may have none.
func (d *Directory) peopleFile() *people.File {
	if d == nil {
		return people.None
	}
	return d.people
}

// AppendPeople appends the people of rows to a; see people.File.AppendAll.
func (d *Directory) AppendPeople(rows []uint32, urls []string, a *resolution.Answers, part people.Fields, limit int) (n int, err error) {
	err = guarded(People, func() { n = d.peopleFile().AppendAll(rows, urls, a, part, limit) })
	return n, err
}

// FillPerson reads the person of a row into an entry.
func (d *Directory) FillPerson(row uint32, arena *keyed.Arena, e *people.Entry) error {
	return guarded(People, func() { d.people.Fill(row, arena, e) })
}

// FillPeopleByDigest reads people by raw digests of their emails into entries. addresses
// are those of the digests, "" if unknown. It sets emails to the person's email with the digest; see
// people.File.FillAllByDigest.
func (d *Directory) FillPeopleByDigest(digests, addresses []string, arena *keyed.Arena, entries []people.Entry, emails []string, part people.Fields) error {
	clear(emails)
	return guarded(People, func() { d.people.FillAllByDigest(digests, addresses, arena, entries, emails, part) })
}

// AppendProfiles appends the profiles of the people who have addresses; see
// people.File.AppendProfiles.
func (d *Directory) AppendProfiles(addresses *resolution.Texts, sums []byte, profiles *resolution.Texts) error {
	return guarded(People, func() { d.people.AppendProfiles(addresses, sums, profiles) })
}

// Owners sets owners to the owner of the range of each address; see ranges.File.Owners.
func (d *Directory) Owners(addrs []netip.Addr, owners []uint32) error {
	clear(owners)
	if d.ranges == nil {
		return nil
	}
	return guarded(IPRanges, func() { d.ranges.Owners(addrs, owners) })
}

// OrgTypesOf sets orgTypes to the kind of organization of each owner but 0.
func (d *Directory) OrgTypesOf(owners []uint32, orgTypes []string) error {
	clear(orgTypes)
	if d.ranges == nil {
		return nil
	}
	return guarded(IPRanges, func() { d.ranges.OrgTypes(owners, orgTypes) })
}

// OwnerCompanies sets rows to those of the companies of owners; 0 without one.
func (d *Directory) OwnerCompanies(owners, rows []uint32) error {
	clear(rows)
	if d.joins == nil {
		return nil
	}
	return guarded(joins, func() { d.joins.Owners(owners, rows) })
}

// Employers sets rows to those of the companies of people, by their rows; 0 without one.
func (d *Directory) Employers(people, rows []uint32) error {
	clear(rows)
	if d.joins == nil {
		return nil
	}
	return guarded(joins, func() { d.joins.People(people, rows) })
}

// CodeCompanies sets codes to those of the companies of rows of OwnerCompanies and Employers, in the
// table of to. Where that takes rows, the rows are the codes, once the columns that are read of them
// are checked.
func (d *Directory) CodeCompanies(rows []uint32, unread *resolution.Unread, to *resolution.CompanyCodes, codes []int32) error {
	if d.joins == nil {
		clear(codes)
		return nil
	}
	err := func() (err error) {
		defer keyed.Guard(&err, debug.SetPanicOnFault(true))
		if to.Table.TakesRows() {
			to.Rows = d.joins.Raw
			if err := d.joins.Checker(&unread.Company).Check(rows); err != nil {
				return err
			}
			for i, row := range rows {
				codes[i] = int32(row)
			}
			return nil
		}
		for i, row := range rows {
			if codes[i] = 0; row > 0 {
				codes[i] = to.Table.Add(d.joins.Record(row))
			}
		}
		return nil
	}()
	if err != nil && d.companies.Has(err) { // most values are there
		return damaged(Companies, err)
	}
	return damaged(joins, err)
}

// AddEmployer adds the company of a domain to a table, and returns its code.
func (d *Directory) AddEmployer(domain string, to resolution.CompanyTable) (code int32, err error) {
	r := resolution.CompanyRecord{}
	r.Fields[resolution.CompanyDomain].Text = domain
	err = guarded(Companies, func() {
		var rows [1]uint32
		if d.companies.FindAll([]string{domain}, rows[:]); rows[0] > 0 {
			r = d.companies.Record(rows[0])
		}
		code = to.Add(r)
	})
	return code, err
}

// FillVisits appends the visits of all addresses to list, and sets ends to the end of
// those of each; see visits.File.AppendAll.
func (d *Directory) FillVisits(addrs []netip.Addr, arena *keyed.Arena, list []visits.Visit, ends []int) (_ []visits.Visit, err error) {
	err = guarded(Visits, func() { list = d.visits.AppendAll(list, addrs, arena, ends) })
	return list, err
}

// guarded runs look-ups in the file of a kind.
func guarded(k Kind, look func()) error {
	return damaged(k, func() (err error) {
		defer keyed.Guard(&err, debug.SetPanicOnFault(true))
		look()
		return nil
	}())
}
