package directory

import (
	"net/netip"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/directory/companies"
	"github.com/leadetl/leadetl/resolution/directory/records"
	"github.com/leadetl/leadetl/resolution/directory/visits"
)

// Look-ups of one key at a time, for tests.

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
	r, e := &owner{OrgType: orgTypes[0]}, &companies.Entry{}
	there, err := d.FillCompanyOf(owners[0], &records.Arena{}, e)
	if there {
		r.Company = &e.Company
	}
	return r, err
}

// Visits lists the visits from an address.
func (d *Directory) Visits(addr netip.Addr) ([]visits.Visit, error) {
	return d.FillVisits([]netip.Addr{addr}, &records.Arena{}, nil, []int{0})
}
