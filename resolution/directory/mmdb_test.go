package directory

import (
	"errors"
	"fmt"
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
	o.DatabaseType, o.RecordSize, o.IncludeReservedNetworks = "Somebody-Else", 24, true
	if o.Description == nil {
		o.Description = map[string]string{"en": "a test"}
	}
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
	return written(tb, tree)
}

// written writes a tree into a file.
func written(tb testing.TB, tree *mmdbwriter.Tree) string {
	tb.Helper()
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

// TestFlagsOfMMDB: a record that says yes to being a provider is one, whatever its type and
// however it says so.
func TestFlagsOfMMDB(t *testing.T) {
	yes, no := mmdbtype.Bool(true), mmdbtype.Bool(false)
	records, types := map[string]mmdbtype.Map{}, map[string]string{}
	for i, f := range []struct {
		fields mmdbtype.Map
		want   string
	}{
		{mmdbtype.Map{"hosting": yes}, "hosting"},
		{mmdbtype.Map{"hosting": mmdbtype.String("true"), "vpn": mmdbtype.String("")}, "hosting"},
		{mmdbtype.Map{"hosting": no, "vpn": no, "proxy": mmdbtype.String("false"), "tor": mmdbtype.Uint32(0)}, "unknown"},
		{mmdbtype.Map{"is_hosting_provider": yes, "type": mmdbtype.String("business")}, "hosting"},
		{mmdbtype.Map{"traits": mmdbtype.Map{"is_anonymous_vpn": yes, "user_type": mmdbtype.String("business")}}, "vpn"},
		{mmdbtype.Map{"privacy": mmdbtype.Map{"vpn": mmdbtype.Uint16(1), "hosting": yes}}, "vpn"},
		{mmdbtype.Map{"a": mmdbtype.Map{"b": mmdbtype.Map{"relay": yes}}}, "vpn"},
		{mmdbtype.Map{"is_vpn": yes, "type": mmdbtype.String("isp")}, "isp"},
		{mmdbtype.Map{"mobile": mmdbtype.Int32(1)}, "cellular"},
		{mmdbtype.Map{"vpn": mmdbtype.String("no"), "hosting": mmdbtype.Map{"name": mmdbtype.String("true")}, "type": mmdbtype.String("business")}, "business"},
		{mmdbtype.Map{"usage_type": mmdbtype.String("ISP/MOB")}, "isp"},
		{mmdbtype.Map{"type": mmdbtype.String("circus")}, "circus"},
	} {
		f.fields["name"] = mmdbtype.String("Somebody")
		ip := fmt.Sprintf("192.31.196.%d", i)
		records[ip+"/32"], types[ip] = f.fields, f.want
	}
	dir := t.TempDir()
	report := mustImport(t, dir, Files{IPRanges: ownedMMDB(t, records)})
	if words := fmt.Sprint(report.Kinds[0].UnknownWords); words != "[{circus 1}]" {
		t.Errorf("unknown words %s", words)
	}
	d := mustOpen(t, dir)
	for ip, want := range types {
		if r, err := d.Range(netip.MustParseAddr(ip)); err != nil || r == nil || r.OrgType != want {
			t.Errorf("%s: %+v, %v; want %s", ip, r, err, want)
		}
	}
}

// TestMappedMMDB: IPv4 addresses that a database has at ::ffff:0:0/96 are reached as IPv4.
func TestMappedMMDB(t *testing.T) {
	name := func(s string) mmdbtype.Map { return mmdbtype.Map{"name": mmdbtype.String(s)} }
	for _, f := range []struct {
		records map[string]mmdbtype.Map
		want    map[string]string
	}{
		{map[string]mmdbtype.Map{"::ffff:8.8.8.0/120": name("Mapped"), "2001:20:1::/48": name("Six")},
			map[string]string{"8.8.8.8": "Mapped", "8.8.9.8": "", "2001:20:1::1": "Six"}},
		{map[string]mmdbtype.Map{"::ffff:0:0/96": name("All")}, map[string]string{"8.8.8.8": "All"}},
		{map[string]mmdbtype.Map{"::fffe:0:0/95": name("Wide")}, map[string]string{"8.8.8.8": "Wide", "2001:20:1::1": ""}},
	} {
		// Aliasing would have IPv4 at ::/96 there. net.IPNet cannot write such a network, so
		// the tree gets 16 bytes.
		tree, err := mmdbwriter.New(mmdbwriter.Options{DatabaseType: "Mapped", Description: map[string]string{"en": "a test"}, RecordSize: 24,
			IncludeReservedNetworks: true, DisableIPv4Aliasing: true})
		if err != nil {
			t.Fatal(err)
		}
		for cidr, record := range f.records {
			p := netip.MustParsePrefix(cidr)
			raw := p.Addr().As16()
			if err := tree.Insert(&net.IPNet{IP: raw[:], Mask: net.CIDRMask(p.Bits(), 128)}, record); err != nil {
				t.Fatal(err)
			}
		}
		dir := t.TempDir()
		mustImport(t, dir, Files{IPRanges: written(t, tree)})
		d := mustOpen(t, dir)
		for ip, want := range f.want {
			got := ""
			r, err := d.Range(netip.MustParseAddr(ip))
			if r != nil {
				got = r.Company.Name
			}
			if err != nil || got != want {
				t.Errorf("%v: %s is %q, %v; want %q", f.records, ip, got, err, want)
			}
		}
		if err := d.Verify(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// TestMMDBWithoutADescription: the format does not ask for one.
func TestMMDBWithoutADescription(t *testing.T) {
	dir := t.TempDir()
	mustImport(t, dir, Files{IPRanges: writtenMMDB(t, mmdbwriter.Options{Description: map[string]string{}}, map[string]mmdbtype.Map{"8.8.8.0/24": {"name": mmdbtype.String("Plain")}})})
	if r, err := mustOpen(t, dir).Range(netip.MustParseAddr("8.8.8.8")); err != nil || r == nil || r.Company.Name != "Plain" {
		t.Errorf("%+v, %v", r, err)
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
		if got := files(t, dir); len(got) != 3 {
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
