package directory

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/directory/people"
	"github.com/leadetl/leadetl/resolution/directory/visits"
	"github.com/leadetl/leadetl/transforms/email"
	"github.com/leadetl/leadetl/transforms/ipaddr"
)

func TestRoundTrip(t *testing.T) {
	dir := t.TempDir()
	report := mustImport(t, dir, sampleFiles(t))
	for _, k := range report.Kinds {
		if k.Bad+k.Dropped+k.Replaced != 0 {
			t.Errorf("%s: %+v", k.Kind, k)
		}
	}
	d := mustOpen(t, dir)

	ada, err := d.Person("network.example/in/ada")
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 1, 2, 2, 4, 5, 0, time.UTC)
	want := &people.Person{
		Lead: resolution.Lead{
			Contact: resolution.Contact{
				FirstName: "Ada", LastName: "Example", FullName: "Ada Example", Email: "ada@bakery.example",
				Emails:     []resolution.ContactEmail{{Email: "ada@bakery.example"}, {Email: "a.da+x@gmail.com"}},
				Phones:     []resolution.ContactPhone{{Phone: "+12025550100"}, {Phone: "+442079460018"}},
				LastSeenAt: &at,
			},
			NetworkURL: "network.example/in/ada", PhoneRaw: "(202) 555-0100",
		},
		CompanyDomain: "bakery.example", EmailKeys: []string{"ada@bakery.example", "a.da+x@gmail.com"},
	}
	if !reflect.DeepEqual(ada, want) {
		t.Errorf("person:\n got %+v\nwant %+v", ada, want)
	}
	if ben, err := d.Person("network.example/in/ben"); err != nil || ben == nil || ben.FullName != "Ben" {
		t.Errorf("ben: %+v, %v", ben, err)
	}
	if stranger, err := d.Person("network.example/in/stranger"); err != nil || stranger != nil {
		t.Errorf("a stranger: %+v, %v", stranger, err)
	}

	tea, err := d.Company("tea.example")
	if industry := "Beverages"; err != nil || !reflect.DeepEqual(tea, &resolution.Company{Name: "Tea, Limited", Domain: "tea.example", Industry: &industry}) {
		t.Errorf("company: %+v, %v", tea, err)
	}

	seen, err := d.Visits(netip.MustParseAddr("192.31.196.1"))
	if err != nil || len(seen) != 3 || seen[0].Confidence != 0.9 || seen[1].NetworkURL != "network.example/in/cleo" ||
		seen[1].Confidence != visits.DefaultConfidence || seen[2].NetworkURL != "network.example/in/ada" {
		t.Errorf("visits: %+v, %v", seen, err)
	}
	if err := d.Verify(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestPersonByEmail(t *testing.T) {
	dir := t.TempDir()
	mustImport(t, dir, Files{People: source(t, "people.csv", samplePeople)})
	d := mustOpen(t, dir)
	sums := func(form string) (md5, sha1, sha256, base64sha256 string) {
		s := email.Sum([]byte(form))
		return hex.EncodeToString(s.MD5[:]), hex.EncodeToString(s.SHA1[:]), hex.EncodeToString(s.SHA256[:]), base64.StdEncoding.EncodeToString(s.SHA256[:])
	}
	md5, sha1, sha256, b64 := sums("a.da+x@gmail.com")
	_, _, uid2, uid2b64 := sums("ada@gmail.com")
	_, _, google, _ := sums("ada+x@gmail.com")
	uid2MD5, _, _, _ := sums("ada@gmail.com")
	for _, f := range []struct {
		name, key string
		found     bool
	}{
		{"address", "a.da+x@gmail.com", true},
		{"md5", md5, true},
		{"sha1", sha1, true},
		{"sha256", sha256, true},
		{"sha256 in base64", b64, true},
		{"sha256 of the uid2 form", uid2, true},
		{"the same in base64", uid2b64, true},
		{"sha256 of the google form", google, true},
		{"md5 of the uid2 form: never asked for", uid2MD5, false},
		{"another address", "ada@mail.example", false},
		{"no address", "ada", false},
	} {
		p, known, err := d.PersonByEmail(f.key)
		if err != nil || (p != nil) != f.found || (f.found && (known != "a.da+x@gmail.com" || p.FirstName != "Ada")) {
			t.Errorf("%s: %+v, %q, %v; want found %v", f.name, p, known, err, f.found)
		}
	}
}

// TestPersonByRespelledEmail: an address that is another's uid2 form is not
// that other's, and whose it is as it is keeps it, whoever comes first.
func TestPersonByRespelledEmail(t *testing.T) {
	const header = "network_url,email\n"
	const jane, respelled = "network.example/in/jane,jane.doe+news@gmail.com\n", "network.example/in/jo,janedoe@gmail.com\n"
	sum := email.Sum([]byte("janedoe@gmail.com"))
	sha256 := hex.EncodeToString(sum.SHA256[:])
	for _, f := range []struct{ name, people, key, person, email string }{
		{"an unknown address", jane, "janedoe@gmail.com", "", ""},
		{"the digest of an unknown address", jane, sha256, "jane", "jane.doe+news@gmail.com"},
		{"the address as it is", jane, "jane.doe+news@gmail.com", "jane", "jane.doe+news@gmail.com"},
		{"the address of another", jane + respelled, "janedoe@gmail.com", "jo", "janedoe@gmail.com"},
		{"the digest of another's address", jane + respelled, sha256, "jo", "janedoe@gmail.com"},
		{"the address of whom only a digest is known", "network.example/in/mia," + sha256 + "\n", "janedoe@gmail.com", "mia", sha256},
	} {
		dir := t.TempDir()
		mustImport(t, dir, Files{People: source(t, "people.csv", header+f.people)})
		p, of, err := mustOpen(t, dir).PersonByEmail(f.key)
		person := ""
		if p != nil {
			person = strings.TrimPrefix(p.NetworkURL, "network.example/in/")
		}
		if err != nil || person != f.person || of != f.email {
			t.Errorf("%s: %q, %q, %v; want %q, %q", f.name, person, of, err, f.person, f.email)
		}
	}
}

func TestRange(t *testing.T) {
	dir := t.TempDir()
	mustImport(t, dir, sampleFiles(t))
	d := mustOpen(t, dir)
	for _, f := range []struct{ ip, orgType, company string }{
		{"192.31.196.7", "business", "Sample Bakery"},
		{"192.31.196.8", "business", "Tea, Limited"}, // the narrow range wins
		{"192.31.196.9", "business", "Tea, Limited"},
		{"192.31.196.10", "business", "Sample Bakery"},
		{"192.52.193.255", "isp", "Sample Telecom"},
		{"2001:20:1::77", "unknown", "Tea, Limited"},
		{"2001:20:2::77", "", ""},
		{"192.52.194.0", "", ""},
	} {
		for range 2 { // the second time, the company of the owner is known
			r, err := d.Range(netip.MustParseAddr(f.ip))
			if err != nil {
				t.Fatal(err)
			}
			var orgType, name string
			if r != nil {
				orgType, name = r.OrgType, r.Company.Name
			}
			if orgType != f.orgType || name != f.company {
				t.Errorf("%s: %q %q, want %q %q", f.ip, orgType, name, f.orgType, f.company)
			}
		}
	}
}

// TestCatchAllRanges answer where nothing narrower does.
func TestCatchAllRanges(t *testing.T) {
	dir := t.TempDir()
	mustImport(t, dir, Files{IPRanges: source(t, "r.csv", "cidr,range_start,range_end,name\n0.0.0.0/0,,,All\n"+
		",10.0.0.0,172.31.255.255,Half\n::/0,,,All6\n192.31.196.0/24,,,Narrow\n")})
	d := mustOpen(t, dir)
	for ip, name := range map[string]string{"192.31.196.1": "Narrow", "192.31.197.1": "All", "128.1.1.1": "Half", "2001:20:1::1": "All6"} {
		if r, err := d.Range(netip.MustParseAddr(ip)); err != nil || r == nil || r.Company.Name != name {
			t.Errorf("%s: %+v, %v; want %s", ip, r, err, name)
		}
	}
}

// TestCatchAllOfIPv6 does not answer for IPv4, whatever its form, and the directory is whole.
func TestCatchAllOfIPv6(t *testing.T) {
	for _, f := range []struct {
		name, line      string
		inside, outside []string
	}{
		{"all", "::/0,,,All6", []string{"2001:20:1::1", "2606:4700::1"}, []string{"8.8.8.8", "192.31.197.1", "64:ff9b::808:808"}},
		{"half", "::/1,,,All6", []string{"2001:20:1::1"}, []string{"8.8.8.8"}},
		{"a quarter", "::/2,,,All6", []string{"2001:20:1::1"}, []string{"8.8.8.8"}},
		{"with both ends", ",::,2001:20::ffff,All6", []string{"2001:20::1"}, []string{"8.8.8.8", "2001:20:1::1"}},
		{"from inside ::/96", ",::1,2001:20::ffff,All6", []string{"2001:20::1"}, []string{"8.8.8.8"}},
		{"only ::/96", ",::,::ffff:ffff,All6", nil, []string{"8.8.8.8", "::808:808"}},
		{"one address of ::/96", "::808:808,,,All6", nil, []string{"8.8.8.8", "::808:808"}},
	} {
		dir := t.TempDir()
		o := DefaultOptions()
		o.MaxBadLines = 1
		files := Files{IPRanges: source(t, "r.csv", "cidr,range_start,range_end,name\n"+f.line+"\n192.31.196.0/24,,,Narrow\n")}
		if _, err := Import(t.Context(), dir, files, o); err != nil {
			t.Errorf("%s: %v", f.name, err)
			continue
		}
		d := mustOpen(t, dir)
		want := map[string]string{"192.31.196.1": "Narrow"}
		for _, ip := range f.inside {
			want[ip] = "All6"
		}
		for _, ip := range f.outside {
			want[ip] = ""
		}
		for ip, name := range want {
			addr, _ := ipaddr.LookupAddr(netip.MustParseAddr(ip))
			r, err := d.Range(addr)
			got := ""
			if r != nil {
				got = r.Company.Name
			}
			if err != nil || got != name {
				t.Errorf("%s: %s: %q, %v; want %q", f.name, ip, got, err, name)
			}
		}
		if err := d.Verify(t.Context()); err != nil {
			t.Errorf("%s: verify: %v", f.name, err)
		}
	}
}

// TestCompaniesAfterRanges: new companies reach the ranges already there, and
// ranges whose company went keep what they know.
func TestCompaniesAfterRanges(t *testing.T) {
	dir := t.TempDir()
	addr := netip.MustParseAddr("192.31.196.1")
	company := func() *resolution.Company {
		t.Helper()
		d, err := Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		r, err := d.Range(addr)
		if err != nil {
			t.Fatal(err)
		}
		return r.Company
	}
	mustImport(t, dir, Files{IPRanges: source(t, "r.csv", sampleRanges)})
	if got := company(); got.Name != "" || got.Domain != "bakery.example" {
		t.Errorf("without companies: %+v", got)
	}
	mustImport(t, dir, Files{Companies: source(t, "c.csv", sampleCompanies)})
	if got := company(); got.Name != "Sample Bakery" || *got.YearFounded != 1987 || got.Industry != nil {
		t.Errorf("with companies: %+v", got)
	}
	mustImport(t, dir, Files{Companies: source(t, "c.csv", "domain,name\ntea.example,Tea\n")})
	if got := company(); got.Name != "" || got.Domain != "bakery.example" {
		t.Errorf("with other companies: %+v", got)
	}
	d := mustOpen(t, dir)
	if err := d.Verify(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestPack: what ranges carry of a company is the company.
func TestOpenMissing(t *testing.T) {
	if _, err := Open(t.TempDir()); !errors.Is(err, resolution.ErrInvalid) {
		t.Errorf("an empty folder: %v", err)
	}
	dir := t.TempDir()
	mustImport(t, dir, Files{Companies: source(t, "c.csv", sampleCompanies)})
	d := mustOpen(t, dir)
	for _, k := range Kinds {
		if d.Has(k) != (k == Companies) {
			t.Errorf("has %s: %v", k, d.Has(k))
		}
	}
	if d.Has(People) {
		t.Error("has people")
	}
	if p, err := d.Person("network.example/in/ada"); p != nil || err != nil {
		t.Error(p, err)
	}
	if r, err := d.Range(netip.MustParseAddr("192.31.196.1")); r != nil || err != nil {
		t.Error(r, err)
	}
	if v, err := d.Visits(netip.MustParseAddr("192.31.196.1")); v != nil || err != nil {
		t.Error(v, err)
	}
}

func TestFingerprint(t *testing.T) {
	first, again, other := t.TempDir(), t.TempDir(), t.TempDir()
	files := sampleFiles(t)
	mustImport(t, first, files)
	mustImport(t, again, Files{IPRanges: files.IPRanges, Visits: files.Visits})
	mustImport(t, again, Files{People: files.People, Companies: files.Companies, Searches: files.Searches})
	files.People = source(t, "people.csv", samplePeople+"network.example/in/cleo,Cleo,,,,,,\n")
	mustImport(t, other, files)
	a, b, c := mustOpen(t, first), mustOpen(t, again), mustOpen(t, other)
	if a.Fingerprint() != b.Fingerprint() {
		t.Error("the same sources in another order have another fingerprint")
	}
	if a.Fingerprint() == c.Fingerprint() {
		t.Error("one more person has the same fingerprint")
	}
	for i, s := range a.Stat() {
		s.Imported = time.Time{}
		o := b.Stat()[i]
		o.Imported, o.File, s.File = time.Time{}, "", ""
		if !reflect.DeepEqual(s, o) {
			t.Errorf("stat: %+v and %+v", s, o)
		}
	}
}

func TestStat(t *testing.T) {
	dir := t.TempDir()
	mustImport(t, dir, sampleFiles(t))
	want := map[Kind][2]int64{People: {2, 2}, Companies: {2, 2}, IPRanges: {4, 5}, Searches: {2, 1}, Visits: {3, 1}}
	for _, s := range mustOpen(t, dir).Stat() {
		if got := [2]int64{s.Rows, s.Keys}; got != want[s.Kind] || s.Source != string(s.Kind)+".csv" || s.Bytes == 0 || s.Imported.IsZero() {
			t.Errorf("%+v, want rows and keys %v", s, want[s.Kind])
		}
	}
}

func TestVerifyFindsDamage(t *testing.T) {
	for _, k := range Kinds {
		dir := t.TempDir()
		mustImport(t, dir, sampleFiles(t))
		d := mustOpen(t, dir)
		path := filepath.Join(dir, d.manifest.Kinds[k].File)
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		text[len(text)/2] ^= 0xff
		if err := os.WriteFile(path, text, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := d.Verify(t.Context()); err == nil {
			t.Errorf("%s: a changed byte was not noticed", k)
		}
		if err := os.WriteFile(path, text[:len(text)-1], 0o644); err != nil {
			t.Fatal(err)
		}
		if again, err := Open(dir); !errors.Is(err, resolution.ErrInvalid) {
			t.Errorf("%s: a cut file was opened: %v, %v", k, again, err)
		}
		if err := os.WriteFile(path, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
