package directory

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/maxmind/mmdbwriter"
	"github.com/maxmind/mmdbwriter/mmdbtype"

	"github.com/leadetl/leadetl/resolution"
)

// ownedMMDB writes a database as somebody else would.
func ownedMMDB(tb testing.TB, records map[string]mmdbtype.Map) string {
	tb.Helper()
	return writtenMMDB(tb, mmdbwriter.Options{}, records)
}

func writtenMMDB(tb testing.TB, o mmdbwriter.Options, records map[string]mmdbtype.Map) string {
	tb.Helper()
	o.DatabaseType, o.Description, o.RecordSize, o.IncludeReservedNetworks = "Somebody-Else", map[string]string{"en": "a test"}, 24, true
	tree, err := mmdbwriter.New(o)
	if err != nil {
		tb.Fatal(err)
	}
	for cidr, record := range records {
		_, network, err := net.ParseCIDR(cidr)
		if err != nil {
			tb.Fatal(err)
		}
		if err := tree.Insert(network, record); err != nil {
			tb.Fatal(err)
		}
	}
	path := filepath.Join(tb.TempDir(), "owned.mmdb")
	f, err := os.Create(path)
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	if _, err := tree.WriteTo(f); err != nil {
		tb.Fatal(err)
	}
	return path
}

func traits(fields mmdbtype.Map) mmdbtype.Map { return mmdbtype.Map{"traits": fields} }

func TestOwnedMMDB(t *testing.T) {
	path := ownedMMDB(t, map[string]mmdbtype.Map{
		"192.31.196.0/28":  {"name": mmdbtype.String("Flat"), "domain": mmdbtype.String("WWW.Flat.example"), "type": mmdbtype.String("hosting")},
		"192.31.196.16/28": traits(mmdbtype.Map{"organization": mmdbtype.String("Nested"), "domain": mmdbtype.String("bakery.example"), "user_type": mmdbtype.String("college")}),
		"192.31.196.32/28": {"organization": mmdbtype.String("Third"), "name": mmdbtype.String(" "), "as_type": mmdbtype.String("isp")},
		"192.31.196.48/28": {},
		"192.31.196.64/28": {"name": mmdbtype.Map{"en": mmdbtype.String("no string")}, "connection_type": mmdbtype.String("Cellular")},
		"192.31.196.80/28": {"org": mmdbtype.String("Elsewhere")},
	})
	for _, companies := range []string{"", sampleCompanies} {
		dir := t.TempDir()
		files := Files{IPRanges: path}
		if companies != "" {
			files.Companies = source(t, "c.csv", companies)
		}
		report := mustImport(t, dir, files)
		if k := report.Kinds[len(report.Kinds)-1]; k.Rows != 5 {
			t.Errorf("%d networks", k.Rows)
		}
		d := mustOpen(t, dir)
		nested := "Nested"
		if companies != "" {
			nested = "Sample Bakery" // joined by its domain
		}
		for _, f := range []struct{ ip, orgType, name, domain string }{
			{"192.31.196.1", "hosting", "Flat", "flat.example"},
			{"192.31.196.17", "education", nested, "bakery.example"},
			{"192.31.196.33", "isp", "Third", ""},
			{"192.31.196.49", "", "", ""}, // an empty map is no answer
			{"192.31.196.65", "cellular", "", ""},
			{"192.31.196.81", "", "", ""},
			{"2001:20::1", "", "", ""},
		} {
			for range 2 {
				r, err := d.Range(netip.MustParseAddr(f.ip))
				if err != nil {
					t.Fatal(err)
				}
				var got resolution.Company
				var orgType string
				if r != nil {
					if orgType = r.OrgType; r.Company != nil {
						got = *r.Company
					}
				}
				if orgType != f.orgType || got.Name != f.name || got.Domain != f.domain {
					t.Errorf("%s: %q %q %q, want %q %q %q", f.ip, orgType, got.Name, got.Domain, f.orgType, f.name, f.domain)
				}
			}
		}
		if err := d.Verify(t.Context()); err != nil {
			t.Error(err)
		}
	}

	o := DefaultOptions()
	o.Fields.Name = []string{"org"}
	dir := t.TempDir()
	if _, err := Import(t.Context(), dir, Files{IPRanges: path}, o); err != nil {
		t.Fatal(err)
	}
	if r, err := mustOpen(t, dir).Range(netip.MustParseAddr("192.31.196.81")); err != nil || r.Company.Name != "Elsewhere" {
		t.Errorf("with another field: %+v, %v", r, err)
	}
}

// TestCatchAllMMDB: ::/96 of an MMDB is IPv4, so a network around it answers for IPv4 too. It is
// one range.
func TestCatchAllMMDB(t *testing.T) {
	path := writtenMMDB(t, mmdbwriter.Options{DisableIPv4Aliasing: true}, map[string]mmdbtype.Map{"::/1": {"name": mmdbtype.String("All")}})
	dir := t.TempDir()
	mustImport(t, dir, Files{IPRanges: path})
	d := mustOpen(t, dir)
	for _, ip := range []string{"8.8.8.8", "2001:20:1::1"} {
		if r, err := d.Range(netip.MustParseAddr(ip)); err != nil || r == nil || r.Company.Name != "All" {
			t.Errorf("%s: %+v, %v", ip, r, err)
		}
	}
	if stats := d.Stat(); stats[0].Keys != 1 {
		t.Errorf("%d ranges, want 1", stats[0].Keys)
	}
	if err := d.Verify(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestRefusedMMDB(t *testing.T) {
	nothing := ownedMMDB(t, map[string]mmdbtype.Map{"192.31.196.0/28": {"city": mmdbtype.String("Sample")}})
	good, err := os.ReadFile(ownedMMDB(t, map[string]mmdbtype.Map{"192.31.196.0/28": {"name": mmdbtype.String("Sample")}}))
	if err != nil {
		t.Fatal(err)
	}
	loop := append([]byte(nil), good...)
	for i := range 60 {
		loop[i] = 0xee // the first nodes of the tree point outside of everything
	}
	cut := good[60:]
	for _, f := range []struct{ name, path string }{
		{"no field we look for", nothing},
		{"a broken tree", source(t, "loop.mmdb", string(loop))},
		{"a cut file", source(t, "cut.mmdb", string(cut))},
	} {
		dir := t.TempDir()
		mustImport(t, dir, Files{IPRanges: source(t, "r.csv", sampleRanges)})
		if _, err := Import(t.Context(), dir, Files{IPRanges: f.path}, DefaultOptions()); !errors.Is(err, resolution.ErrInvalid) {
			t.Errorf("%s: %v, want ErrInvalid", f.name, err)
		}
		if r, err := mustOpen(t, dir).Range(netip.MustParseAddr("192.31.196.1")); err != nil || r == nil {
			t.Errorf("%s: the old ranges are gone: %v", f.name, err)
		}
		if got := files(t, dir); len(got) != 2 {
			t.Errorf("%s: files %v", f.name, got)
		}
	}
}

// TestPublishedMMDB takes the MaxMind test databases where they are present.
// Source: github.com/maxmind/MaxMind-DB, test-data.
func TestPublishedMMDB(t *testing.T) {
	from := "../../../shared/data/maxmind"
	if _, err := os.Stat(from); err != nil {
		t.Skip("the published databases are not here")
	}
	for _, f := range []struct {
		name, ip      string
		orgType, want string // "" when the database is refused
	}{
		{"GeoIP2-Enterprise-Test.mmdb", "74.209.24.1", "isp", "Fairpoint Communications"},
		{"GeoIP2-ISP-Test.mmdb", "1.128.0.1", "unknown", "Telstra Internet"},
		{"GeoLite2-ASN-Test.mmdb", "", "", ""}, // has autonomous_system_organization only
		{"MaxMind-DB-test-ipv4-24.mmdb", "", "", ""},
		{"MaxMind-DB-test-broken-search-tree-24.mmdb", "", "", ""},
	} {
		dir := t.TempDir()
		_, err := Import(t.Context(), dir, Files{IPRanges: filepath.Join(from, f.name)}, DefaultOptions())
		if f.want == "" {
			if !errors.Is(err, resolution.ErrInvalid) {
				t.Errorf("%s: %v, want ErrInvalid", f.name, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", f.name, err)
			continue
		}
		r, err := mustOpen(t, dir).Range(netip.MustParseAddr(f.ip))
		if err != nil || r == nil || r.Company == nil {
			t.Errorf("%s: %+v, %v", f.name, r, err)
		} else if r.OrgType != f.orgType || r.Company.Name != f.want {
			t.Errorf("%s: %q %q, want %q %q", f.name, r.OrgType, r.Company.Name, f.orgType, f.want)
		}
	}
}
