package directory

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"

	"github.com/leadetl/leadetl/resolution"
)

// An address has the company of the narrowest range that holds it, however many are looked
// up at a time.
func TestOwnersAreScan(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	address := func() netip.Addr { // few, so that ranges nest and share their /16
		if r.IntN(4) == 0 {
			return netip.AddrFrom16([16]byte{0x26, 0x06, 14: byte(r.IntN(4)), 15: byte(r.IntN(256))})
		}
		return netip.AddrFrom4([4]byte{8, byte(r.IntN(3)), byte(r.IntN(256)), byte(r.IntN(256))})
	}
	for round, n := range []int{0, 1, 5, 3000} {
		ranges := map[netip.Prefix]string{}
		for i := range n {
			a := address()
			ranges[netip.PrefixFrom(a, a.BitLen()-r.IntN(12)).Masked()] = fmt.Sprintf("c%d.example", i)
		}
		lines := []string{"cidr,company_domain"}
		for p, domain := range ranges {
			lines = append(lines, p.String()+","+domain)
		}
		dir := t.TempDir()
		files := sampleFiles(t)
		files.IPRanges = source(t, fmt.Sprintf("ranges-%d.csv", round), strings.Join(lines, "\n")+"\n")
		mustImport(t, dir, files)
		d := mustOpen(t, dir)
		for _, size := range []int{1, 63, 64, 65, 1000} {
			addrs := make([]netip.Addr, size)
			for i := range addrs {
				if r.IntN(10) > 0 {
					addrs[i] = address()
				}
			}
			owners := make([]uint32, size)
			if err := d.Owners(addrs, owners); err != nil {
				t.Fatal(err)
			}
			for i, a := range addrs {
				want, narrowest := "", -1
				for p, domain := range ranges {
					if a.IsValid() && p.Contains(a) && p.Bits() > narrowest {
						want, narrowest = domain, p.Bits()
					}
				}
				got := ""
				if found := filled(t, d, owners[i]); found != nil {
					got = found.Domain
				}
				if got != want {
					t.Errorf("%d ranges, %d at a time: %v belongs to %q, want %q", n, size, a, got, want)
				}
			}
		}
	}
}

// filled reads the company of an owner into an entry; nil without one.
func filled(t *testing.T, d *Directory, owner uint32) *resolution.Company {
	if owner == 0 {
		return nil
	}
	company, err := d.companyOf(owner)
	if err != nil {
		t.Fatal(err)
	}
	return company
}
