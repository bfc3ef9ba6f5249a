package directory

import (
	"net/netip"
	"runtime/debug"

	"github.com/leadetl/leadetl/internal/columnfile"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/directory/companies"
	"github.com/leadetl/leadetl/resolution/directory/people"
	"github.com/leadetl/leadetl/resolution/directory/records"
	"github.com/leadetl/leadetl/resolution/directory/visits"
)

// Look-ups of many keys at once. Texts go into an arena and entries are used
// again, so that a look-up allocates nothing.

// FillPeople reads the people of profile keys into entries and sets found for
// each key that somebody has. An empty key is nobody's; its entry stays.
func (d *Directory) FillPeople(keys []string, arena *records.Arena, entries []people.Entry, found []bool) error {
	clear(found)
	if d.people == nil {
		return nil
	}
	return guarded(People, func() { d.people.FillAll(keys, arena, entries, found) })
}

// FillPeopleByDigest is FillPeople by raw digests of emails. addresses are those
// that the digests were made of, "" when unknown. emails are set to the person's
// email that the digest stands for; see people.File.PersonByEmail.
func (d *Directory) FillPeopleByDigest(digests, addresses []string, arena *records.Arena, entries []people.Entry, emails []string) error {
	clear(emails)
	if d.people == nil {
		return nil
	}
	return guarded(People, func() { d.people.FillAllByDigest(digests, addresses, arena, entries, emails) })
}

// FillCompanies reads the companies of domains into entries. Where no company
// has a domain, the entry has the domain and nothing else.
func (d *Directory) FillCompanies(domains []string, arena *records.Arena, entries []companies.Entry) error {
	if d.companies == nil {
		for i, domain := range domains {
			entries[i].Company = resolution.Company{Domain: domain}
		}
		return nil
	}
	return guarded(Companies, func() { d.companies.FillAll(domains, arena, entries) })
}

// Owners sets owners to the owner of the range around each address; see
// ranges.File.Owner. The zero address has none.
func (d *Directory) Owners(addrs []netip.Addr, owners []uint32) error {
	clear(owners)
	if d.ranges == nil {
		return nil
	}
	return guarded(IPRanges, func() {
		for i, addr := range addrs {
			if addr.IsValid() {
				owners[i] = d.ranges.Owner(addr)
			}
		}
	})
}

// FillOwners sets what is known of each owner but 0: its kind of organization
// and its company, which known tells is one.
func (d *Directory) FillOwners(owners []uint32, arena *records.Arena, entries []companies.Entry, orgTypes []string, known []bool) error {
	clear(known)
	clear(orgTypes)
	if d.ranges == nil {
		return nil
	}
	return guarded(IPRanges, func() {
		for i, owner := range owners {
			if owner != 0 {
				orgTypes[i] = d.ranges.OrgType(owner)
				known[i] = d.ranges.Fill(owner, arena, &entries[i])
			}
		}
	})
}

// FillVisits appends the visits of all addresses to list and sets ends to where
// those of each address end. The zero address has none.
func (d *Directory) FillVisits(addrs []netip.Addr, arena *records.Arena, list []visits.Visit, ends []int) (_ []visits.Visit, err error) {
	err = guarded(Visits, func() {
		for i, addr := range addrs {
			if d.visits != nil && addr.IsValid() {
				list = d.visits.Append(list, addr, arena)
			}
			ends[i] = len(list)
		}
	})
	return list, err
}

// guarded runs look-ups in the file of a kind.
func guarded(k Kind, look func()) error {
	return damaged(k, func() (err error) {
		defer columnfile.Guard(&err, debug.SetPanicOnFault(true))
		look()
		return nil
	}())
}
