package keys

import (
	"slices"
	"testing"

	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"

	"github.com/leadetl/leadetl/pipeline/columns"
	"github.com/leadetl/leadetl/pipeline/outcome"
	"github.com/leadetl/leadetl/resolution"
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
		keyer{operation: c.op, profiles: profile.Rules{Hosts: hosts}}.keys(b, cells.NewStringArray())
		row := string(b.Keys.Data)
		if b.Outcomes[0] == outcome.Rejected {
			row = b.Reasons[0]
		}
		if got != c.want || row != c.want {
			t.Errorf("%s of %q: %q, and a row's %q; want %q", c.op, c.cell, got, row, c.want)
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
