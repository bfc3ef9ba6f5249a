package keys

import (
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"

	"github.com/leadetl/leadetl/pipeline/columns"
	"github.com/leadetl/leadetl/pipeline/outcome"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/sources"
	"github.com/leadetl/leadetl/transforms/profile"
)

// What a row is asked about is the first of its identifier's keys.
func TestCanonicalKeysAreThoseOfRows(t *testing.T) {
	hosts := []string{"network.example"}
	for _, c := range []struct {
		op   resolution.Operation
		cell string
		want string // the key, or the reason to reject it
	}{
		{resolution.EmailToHEM, " Ada.Example@Bakery.Example. ", "ada.example@bakery.example"},
		{resolution.EmailToHEM, "C4CA4238A0B923820DCC509A6F75849B", "c4ca4238a0b923820dcc509a6f75849b"},
		{resolution.EmailToHEM, "nobody", "invalid_email"},
		{resolution.EmailToHEM, "", "empty"},
		{resolution.NetworkToPhone, "https://www.network.example/in/Ada-Example/?x=1", "network.example/in/ada-example"},
		{resolution.Enrichment, "https://www.network.example/company/bakery", "not_a_profile"},
		{resolution.IPToCompany, "192.31.196.1:443", "192.31.196.1"},
		{resolution.Deanonymization, "2001:DB8::0:1", "2001:db8::1"},
		{resolution.IPToCompany, "192.31.196", "invalid_ip"},
		{resolution.EmailToHEM, "Example, Ada <ada@bakery.example>", "ada@bakery.example"},
		{resolution.IPToCompany, "for=192.31.196.1;proto=http", "192.31.196.1"},
		{resolution.EmailToHEM, "'ada@bakery.example", "ada@bakery.example"},
		{resolution.EmailToHEM, " 'Ada@bakery.example ", "ada@bakery.example"},
		{resolution.EmailToHEM, `="ada@bakery.example"`, "ada@bakery.example"},
		{resolution.EmailToHEM, "\t+ada@bakery.example", "+ada@bakery.example"},
		{resolution.EmailToHEM, "'+ada@bakery.example", "+ada@bakery.example"},
		{resolution.EmailToHEM, "o'ada@bakery.example", "o'ada@bakery.example"},
		{resolution.EmailToHEM, "'Example, Ada <ada@bakery.example>", "ada@bakery.example"},
		{resolution.EmailToHEM, "'c4ca4238a0b923820dcc509a6f75849b", "c4ca4238a0b923820dcc509a6f75849b"},
		{resolution.EmailToHEM, "'", "empty"},
		{resolution.EmailToHEM, "'null", "empty"},
		{resolution.Enrichment, "'https://network.example/in/ada", "network.example/in/ada"},
		{resolution.Enrichment, "'network.example/in/ada", "network.example/in/ada"},
		{resolution.Enrichment, `="network.example/in/ada"`, "network.example/in/ada"},
		{resolution.IPToCompany, "'192.31.196.1", "192.31.196.1"},
		{resolution.IPToCompany, `="192.31.196.1"`, "192.31.196.1"},
	} {
		got := ""
		switch keys, err := Canonical(c.op.Identifier(), c.cell, hosts); err {
		case nil:
			got = keys[0]
		default:
			got = err.Error()
		}
		b := &columns.Batch{Rows: []int64{1}}
		cells := array.NewStringBuilder(memory.DefaultAllocator)
		cells.Append(c.cell)
		b.Reset(1)
		keyer{c.op, Reading{Profiles: profile.Rules{Hosts: hosts}}}.keys(b, spread{identifiers: cells.NewStringArray()})
		row := string(b.Keys.Data)
		if b.Outcomes[0] == outcome.Rejected {
			row = b.Reasons[0]
		}
		if got != c.want || row != c.want {
			t.Errorf("%s of %q: %q, and a row's %q; want %q", c.op, c.cell, got, row, c.want)
		}
	}
}

// A cell with several identifiers has the keys of all of them, also beside one that is not valid.
func TestCanonicalKeysOfLists(t *testing.T) {
	for _, f := range []struct {
		kind resolution.Identifier
		cell string
		want []string
		err  string
	}{
		{resolution.IP, "10.0.0.1, 8.8.8.8", []string{"10.0.0.1", "8.8.8.8"}, ""},
		{resolution.IP, "unknown, 8.8.8.8", []string{"8.8.8.8"}, "invalid_ip"},
		{resolution.NetworkURL, "linkedin.com/in/ada; linkedin.com/in/bob", []string{"linkedin.com/in/ada", "linkedin.com/in/bob"}, ""},
	} {
		got, err := Canonical(f.kind, f.cell, []string{"linkedin.com"})
		text := ""
		if err != nil {
			text = err.Error()
		}
		if !slices.Equal(got, f.want) || text != f.err {
			t.Errorf("%s: %q, %q, want %q, %q", f.cell, got, text, f.want, f.err)
		}
	}
}

// A list with one value is that value, whatever becomes of several; nulls do not count.
func TestListOfOne(t *testing.T) {
	for _, f := range []struct {
		op   resolution.Operation
		cell string
		want string // the key, or the reason to reject it
	}{
		{resolution.EmailToHEM, `["ada@bakery.example"]`, "ada@bakery.example"},
		{resolution.EmailToHEM, `[null,"ada@bakery.example",""]`, "ada@bakery.example"},
		{resolution.EmailToHEM, `["c4ca4238a0b923820dcc509a6f75849b"]`, "c4ca4238a0b923820dcc509a6f75849b"},
		{resolution.EmailToHEM, `[]`, "empty"},
		{resolution.EmailToHEM, `[null]`, "empty"},
		{resolution.EmailToHEM, `["",null]`, "empty"},
		{resolution.EmailToHEM, `["nobody"]`, "invalid_email"},
		{resolution.EmailToHEM, `["ada@bakery.example","bob@bakery.example"]`, "multiple"},
		{resolution.EmailToHEM, `["ada@bakery.example","bob"]`, "multiple"},
		{resolution.IPToCompany, `["192.31.196.1"]`, "192.31.196.1"},
		{resolution.IPToCompany, `[]`, "empty"},
		{resolution.IPToCompany, `["192.31.196.1","192.31.196.2"]`, "multiple"},
		{resolution.IPToCompany, `[2001:db8::1]:80`, "2001:db8::1"},
		{resolution.Enrichment, `["https://www.network.example/in/Ada"]`, "network.example/in/ada"},
		{resolution.Enrichment, `[null]`, "empty"},
		{resolution.Enrichment, `["network.example/in/ada","network.example/in/bob"]`, "multiple"},
	} {
		cells := array.NewStringBuilder(memory.DefaultAllocator)
		cells.AppendValues([]string{f.cell, "other"}, nil)
		column := cells.NewStringArray()
		for _, m := range []Multiple{"", First, Last, Each} {
			if f.want == "multiple" && m != "" {
				continue
			}
			k := keyer{f.op, Reading{Profiles: profile.Rules{Hosts: []string{"network.example"}}, Multiple: m}}
			in := &sources.Batch{Rows: []int64{1, 2}, Columns: []*array.String{column}}
			b, all := &columns.Batch{}, k.spread(in, in.Columns[0])
			all.begin(b, in, nil, false, 0)
			k.keys(b, all)
			got := string(b.Keys.At(0))
			if b.Outcomes[0] == outcome.Rejected {
				got = b.Reasons[0]
			}
			if got != f.want {
				t.Errorf("%s of %s with %q: %q, want %q", f.op, f.cell, m, got, f.want)
			}
		}
	}
}

// A strict run rejects what is around an identifier.
func TestStrict(t *testing.T) {
	for _, f := range []struct {
		op         resolution.Operation
		cell, want string
	}{
		{resolution.EmailToHEM, "Ada <ada@bakery.example>", "invalid_character"},
		{resolution.EmailToHEM, "ada@bakery.example,", "invalid_email"},
		{resolution.EmailToHEM, "ada@bakery.example", "ada@bakery.example"},
		{resolution.IPToCompany, "for=192.31.196.1", "invalid_ip"},
		{resolution.IPToCompany, "192.31.196.1:443", "192.31.196.1"},
	} {
		b := &columns.Batch{Rows: []int64{1}}
		b.Reset(1)
		cells := array.NewStringBuilder(memory.DefaultAllocator)
		cells.Append(f.cell)
		keyer{f.op, Reading{Strict: true}}.keys(b, spread{identifiers: cells.NewStringArray()})
		if got := string(b.Keys.Data) + b.Reasons[0]; got != f.want {
			t.Errorf("%s: %q, want %q", f.cell, got, f.want)
		}
	}
}

// An address is known by its digests too, whoever made them; a digest by
// itself alone.
func TestCanonicalKeysOfEmail(t *testing.T) {
	keys := func(cell string) []string {
		t.Helper()
		keys, err := Canonical(resolution.Email, cell, nil)
		if err != nil {
			t.Fatal(err)
		}
		return keys
	}
	all := keys("Jane.Doe+news@gmail.com")
	if len(all) != 1+3*3 {
		t.Errorf("%d keys of an address at gmail.com, want itself and three digests in three profiles", len(all))
	}
	if n := len(keys("jane@example.com")); n != 1+3 {
		t.Errorf("%d keys of an address that is the same in all profiles, want 4", n)
	}
	for _, digest := range all[1:] {
		if alone := keys(digest); !slices.Equal(alone, []string{digest}) {
			t.Errorf("a digest has the keys %q, want itself", alone)
		}
	}
}

func TestCanonicalKeysOfPages(t *testing.T) {
	for _, f := range []struct {
		cell string
		want []string
	}{
		{"https://www.facebook.com/profile.php?id=1&ref=x", []string{"facebook.com/profile.php?id=1"}},
		{"https://people.example/ada?utm_source=x", []string{"people.example/ada"}},
	} {
		if got, err := Canonical(resolution.NetworkURL, f.cell, nil); err != nil || !slices.Equal(got, f.want) {
			t.Errorf("%s: %q, %v, want %q", f.cell, got, err, f.want)
		}
	}
}

// A service is asked with the first spelling of an address whose key has a query in
// another order, and with the key of any other.
func TestAskedAsTyped(t *testing.T) {
	cells := array.NewStringBuilder(memory.DefaultAllocator)
	cells.AppendValues([]string{
		"https://www.x.example/v?b=2&a=1&utm_source=y", "null", "x.example/v?a=1&b=2", "http://me:secret@x.example:8080/v?c=1#top", "x.example/v?d=1",
		"https://www.x.example/Ada", "https://www.linkedin.com/in/Ada?trk=x", "linkedin.com/in/https://x.example/w?b&a=1", "https://x.example?p=1", "https://x.example/v?e=1&" + strings.Repeat("utm_id=x&", 300),
	}, nil)
	b := &columns.Batch{Rows: make([]int64, cells.Len())}
	b.Reset(cells.Len())
	b.Typed = cells.NewStringArray()
	keyer{resolution.NetworkToPhone, Reading{Profiles: profile.DefaultRules()}}.keys(b, spread{identifiers: b.Typed})
	asked, _ := Asked(b)
	want := []string{
		"x.example/v?a=1&b=2\x00https://www.x.example/v?b=2&a=1&utm_source=y", "x.example/v?c=1\x00http://x.example:8080/v?c=1#top", "x.example/v?d=1",
		"x.example/Ada", "linkedin.com/in/ada", "x.example/w?a=1&b", "x.example/?p=1\x00https://x.example?p=1", "x.example/v?e=1",
	}
	if !slices.Equal(asked, want) {
		t.Errorf("asked %q\nwant  %q", asked, want)
	}
}
