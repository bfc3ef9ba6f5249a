package embedded

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"go.uber.org/goleak"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/directory"
	"github.com/leadetl/leadetl/resolution/resolutiontest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// sample opens the sample directory, freshly imported.
func sample(tb testing.TB) *directory.Directory {
	tb.Helper()
	from := resolutiontest.Sample(tb)
	return imported(tb, directory.Files{
		People:    filepath.Join(from, "people.csv"),
		Companies: filepath.Join(from, "companies.csv"),
		IPRanges:  filepath.Join(from, "ip-ranges.csv"),
		Searches:  filepath.Join(from, "searches.csv"),
		Visits:    filepath.Join(from, "visits.csv"),
	})
}

// imported opens a directory of files.
func imported(tb testing.TB, files directory.Files) *directory.Directory {
	tb.Helper()
	dir := tb.TempDir()
	_, err := directory.Import(tb.Context(), dir, files, directory.DefaultOptions())
	if err != nil {
		tb.Fatal(err)
	}
	d, err := directory.Open(dir)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := d.Close(); err != nil {
			tb.Error(err)
		}
	})
	return d
}

func TestConformance(t *testing.T) { resolutiontest.Run(t, New(sample(t), Options{})) }

// TestHashesOfAnAddressAreItsOwn: whoever the directory knows, an address has
// the hashes it has without a directory.
func TestHashesOfAnAddressAreItsOwn(t *testing.T) {
	people := filepath.Join(t.TempDir(), "people.csv")
	// The second knows only the sha256 of pat@mail.example.
	text := "network_url,email\nnetwork.example/in/jane,jane.doe+news@gmail.com\n" +
		"network.example/in/pat,293002c07be86bc6a1a54b3e251a5322a9b7a83e9f0e1d9a26216e4722f9baa3\n"
	if err := os.WriteFile(people, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	with, without := New(imported(t, directory.Files{People: people}), Options{}), New(nil, Options{})
	for _, f := range []struct{ key, person string }{
		{"janedoe@gmail.com", ""}, // jane's uid2 form
		{"janedoe+news@gmail.com", ""},
		{"jane.doe+news@gmail.com", "network.example/in/jane"},
		{"pat@mail.example", "network.example/in/pat"},
	} {
		ask := resolution.Request{Operation: resolution.EmailToHEM, Key: f.key}
		got, err := resolution.NewSingle(with).Resolve(t.Context(), ask)
		if err != nil {
			t.Fatal(err)
		}
		own, err := resolution.NewSingle(without).Resolve(t.Context(), ask)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got.Lead.HashedEmails, own.Lead.HashedEmails) || got.Lead.NetworkURL != f.person {
			t.Errorf("%s: %+v, want person %q and hashes %v", f.key, got.Lead, f.person, own.Lead.HashedEmails)
		}
	}
}

func TestReasons(t *testing.T) {
	e := New(sample(t), Options{})
	for _, f := range []struct {
		operation   resolution.Operation
		key, reason string
	}{
		{resolution.NetworkToHEM, "network.example/in/a-stranger", "not_found"},
		{resolution.NetworkToHEM, "network.example/in/gia-dummy", "no_email"},
		{resolution.NetworkToPhone, "network.example/in/a-stranger", "not_found"},
		{resolution.NetworkToPhone, "network.example/in/dan-instance", "no_phone"},
		{resolution.Enrichment, "network.example/in/a-stranger", "not_found"},
		{resolution.IPToCompany, "10.1.2.3", "ip_class:private"},
		{resolution.IPToCompany, "127.0.0.1", "ip_class:loopback"},
		{resolution.IPToCompany, "100.64.3.4", "ip_class:cgnat"},
		{resolution.IPToCompany, "192.0.2.44", "ip_class:documentation"},
		{resolution.IPToCompany, "64:ff9b::a00:1", "ip_class:nat64"}, // of 10.0.0.1
		{resolution.IPToCompany, "192.31.196.150", "not_found"},
		{resolution.IPToCompany, "192.31.196.245", "no_company"},
		{resolution.IPToCompany, "192.52.193.10", "org_type:isp"},
		{resolution.IPToCompany, "192.52.193.70", "org_type:cellular"},
		{resolution.IPToCompany, "192.52.193.130", "org_type:hosting"},
		{resolution.IPToCompany, "192.52.193.200", "org_type:cdn"},
		{resolution.IPToCompany, "192.52.193.230", "org_type:vpn"},
		{resolution.IPToCompany, "192.175.48.78", "org_type:isp"}, // its file says residential
		{resolution.Deanonymization, "192.52.193.11", "org_type:isp"},
		{resolution.Deanonymization, "10.1.2.3", "ip_class:private"},
		{resolution.Deanonymization, "192.31.197.1", "not_found"},
	} {
		got, err := resolution.NewSingle(e).Resolve(t.Context(), resolution.Request{Operation: f.operation, Key: f.key})
		if err != nil || got.Lead != nil || got.Reason != f.reason {
			t.Errorf("%s %s: %+v, %v; want reason %s", f.operation, f.key, got, err, f.reason)
		}
	}
}

func TestDeanonymizationByCompany(t *testing.T) {
	d := sample(t)
	for _, f := range []struct {
		name, key  string
		options    Options
		company    string
		confidence float64
	}{
		{"a company's own range", "192.31.196.6", Options{}, "Sample Bakery", 0.7},
		{"a range of unknown kind", "192.31.196.113", Options{}, "Example Clinic", 0.4},
		{"a provider, asked for", "192.52.193.11", Options{IncludeProviders: true}, "Sample Telecom", 0.1},
	} {
		got, err := resolution.NewSingle(New(d, f.options)).Resolve(t.Context(), resolution.Request{Operation: resolution.Deanonymization, Key: f.key})
		if err != nil || got.Lead == nil || got.Lead.MatchLevel != "company" || got.Lead.Company.Name != f.company ||
			*got.Lead.Confidence != f.confidence {
			t.Errorf("%s: %+v, %v; want %s at %v", f.name, got.Lead, err, f.company, f.confidence)
		}
	}
}

func TestEqualVisitsTakeTheMostRecent(t *testing.T) {
	got, err := resolution.NewSingle(New(sample(t), Options{})).Resolve(t.Context(), resolution.Request{Operation: resolution.Deanonymization, Key: "192.52.193.10"})
	if err != nil || got.Lead.NetworkURL != "network.example/in/pia-testcase" {
		t.Fatalf("%+v, %v", got.Lead, err)
	}
}

func TestNoDirectory(t *testing.T) {
	e := New(nil, Options{})
	for _, f := range []struct {
		operation resolution.Operation
		key       string
		reason    string // "" is a match
	}{
		{resolution.EmailToHEM, "ada.example@bakery.example", ""},
		{resolution.NetworkToHEM, "network.example/in/ada-example", "not_found"},
		{resolution.NetworkToPhone, "network.example/in/ada-example", "not_found"},
		{resolution.Enrichment, "network.example/in/ada-example", "not_found"},
		{resolution.IPToCompany, "192.31.196.5", "not_found"},
		{resolution.IPToCompany, "10.0.0.1", "ip_class:private"},
		{resolution.Deanonymization, "192.31.196.5", "not_found"},
	} {
		got, err := resolution.NewSingle(e).Resolve(t.Context(), resolution.Request{Operation: f.operation, Key: f.key})
		if err != nil || got.Reason != f.reason || got.Matched() != (f.reason == "") {
			t.Errorf("%s: %+v, %v; want reason %q", f.operation, got, err, f.reason)
		}
	}
}

// TestBatchOfAddresses: a batch of addresses of all kinds answers as one of each alone.
func TestBatchOfAddresses(t *testing.T) {
	d := sample(t)
	random := rand.New(rand.NewPCG(3, 4))
	var keys []string
	for range 3000 {
		a := netip.AddrFrom4([4]byte{192, []byte{31, 52, 175}[random.IntN(3)], []byte{196, 193, 48}[random.IntN(3)], byte(random.Uint32())})
		keys = append(keys, a.String())
	}
	keys = append(keys, "10.0.0.1", "2001:20:1::17", "2620:4f:8000::9", "64:ff9b::c01f:c405", "2001:db8::1", "::1")
	for _, o := range []Options{{}, {IncludeProviders: true}} {
		e := New(d, o)
		for _, op := range []resolution.Operation{resolution.IPToCompany, resolution.Deanonymization} {
			got, err := resolutiontest.Ask(t.Context(), e.NewBatch(op), op, keys...)
			if err != nil {
				t.Fatal(err)
			}
			for i, key := range keys {
				want, err := resolution.NewSingle(e).Resolve(t.Context(), resolution.Request{Operation: op, Key: key})
				if lead := got.Lead(i); err != nil || !reflect.DeepEqual(lead, want.Lead) || got.Reasons[i] != want.Reason {
					t.Fatalf("%s of %s: %+v, %q, want %+v, %v", op, key, lead, got.Reasons[i], want, err)
				}
			}
		}
	}
}

// TestBatchAllocatesNothing: the memory of a batch is used again.
func TestBatchAllocatesNothing(t *testing.T) {
	e := New(sample(t), Options{})
	for op, some := range map[resolution.Operation][]string{
		resolution.EmailToHEM:      {"ada.example@bakery.example", "nobody@nowhere.example"},
		resolution.NetworkToHEM:    {"network.example/in/ada-example", "network.example/in/stranger"},
		resolution.NetworkToPhone:  {"network.example/in/ada-example", "network.example/in/stranger"},
		resolution.Enrichment:      {"network.example/in/ada-example", "network.example/in/stranger"},
		resolution.IPToCompany:     {"192.31.196.5", "192.52.193.10", "10.0.0.1", "192.31.197.1"},
		resolution.Deanonymization: {"192.31.196.5", "192.52.193.10", "10.0.0.1", "192.31.197.1"},
	} {
		keys := resolutiontest.Questions(op, slices.Repeat(some, 500)...)
		answers := resolutiontest.Answers()
		answers.Companies.Table = rowsTable{&resolution.CompanyList{}}
		b := e.NewBatch(op)
		n := testing.AllocsPerRun(5, func() {
			if _, err := b.Resolve(t.Context(), keys, math.MaxInt, answers); err != nil {
				t.Error(err)
			}
		})
		if n > 20 {
			t.Errorf("%s: %v allocations for %d keys", op, n, keys.Keys.Len())
		}
	}
}

func TestKeysNotCanonical(t *testing.T) {
	e := New(nil, Options{})
	for _, key := range []string{"::ffff:192.31.196.5", "fe80::1%eth0", "192.31.196.5:80", "x"} {
		if _, err := resolution.NewSingle(e).Resolve(t.Context(), resolution.Request{Operation: resolution.IPToCompany, Key: key}); !errors.Is(err, resolution.ErrInvalid) {
			t.Errorf("%s: %v, want ErrInvalid", key, err)
		}
	}
}

// TestProvidersAreNobodysCompany: whatever word a file has for a provider, the provider is not
// named as the company of a visitor; and an unknown word is a provider's.
func TestProvidersAreNobodysCompany(t *testing.T) {
	words := []struct{ word, reason string }{
		{"MOB", "org_type:cellular"}, {"SES", "org_type:hosting"}, {"RES", "org_type:vpn"}, {"PUB", "org_type:vpn"}, {"ISP/MOB", "org_type:isp"},
		{"Mobile ISP", "org_type:cellular"}, {"relay", "org_type:vpn"}, {"carrier", "org_type:cellular"}, {"cloud", "org_type:hosting"},
		{"Circus Troupe", "org_type:circus_troupe"}, {"ada@mail.example", "org_type:other"},
		{"COM", ""}, {"ORG", ""}, {"LIB", ""}, {"MIL", ""}, {"", ""}, {"inactive", ""},
	}
	path := filepath.Join(t.TempDir(), "ranges.csv")
	text := "cidr,name,org_type\n"
	for i, w := range words {
		text += fmt.Sprintf("192.31.196.%d,Somebody,%s\n", i, w.word)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	d := imported(t, directory.Files{IPRanges: path})
	for _, operation := range []resolution.Operation{resolution.IPToCompany, resolution.Deanonymization} {
		for i, w := range words {
			r := resolution.Request{Operation: operation, Key: fmt.Sprintf("192.31.196.%d", i)}
			got, err := resolution.NewSingle(New(d, Options{})).Resolve(t.Context(), r)
			if err != nil || got.Reason != w.reason || (got.Lead == nil) != (w.reason != "") {
				t.Errorf("%s of %q: %+v, %v; want reason %q", operation, w.word, got, err, w.reason)
			}
			if got, err = resolution.NewSingle(New(d, Options{IncludeProviders: true})).Resolve(t.Context(), r); err != nil || got.Lead == nil {
				t.Errorf("%s of %q, with providers: %+v, %v", operation, w.word, got, err)
			}
		}
	}
}
