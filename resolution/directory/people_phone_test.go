package directory

import (
	"testing"
)

// TestRawPhone: an import keeps the first phone as the file has it, beside its canonical form.
func TestRawPhone(t *testing.T) {
	dir := t.TempDir()
	mustImport(t, dir, Files{People: source(t, "people.csv", "network_url,phone,phones\n"+
		"network.example/in/a,(202) 555-0100 (cell),+12025550101;202-555-0102\n"+
		"network.example/in/b,+12025550100,\n"+
		"network.example/in/c,call me, 202.555.0103 ;+12025550104\n"+
		"network.example/in/d,+12025550100,(202) 555-0100\n"+
		"network.example/in/e,,\n"+
		"network.example/in/f,\"=\"\"02079460958\"\"\",\n")})
	d := mustOpen(t, dir)
	for _, f := range []struct{ who, phone, raw string }{
		{"a", "+12025550100", "(202) 555-0100 (cell)"},
		{"b", "+12025550100", ""},
		{"c", "+12025550103", "202.555.0103"},
		{"d", "+12025550100", ""},
		{"e", "", ""},
		{"f", "", ""}, // not of the default region
	} {
		p, err := d.Person("network.example/in/" + f.who)
		if err != nil || p == nil {
			t.Fatal(p, err)
		}
		phone := ""
		if len(p.Phones) > 0 {
			phone = p.Phones[0].Phone
		}
		if phone != f.phone || p.PhoneRaw != f.raw {
			t.Errorf("%s: %q, raw %q; want %q, raw %q", f.who, phone, p.PhoneRaw, f.phone, f.raw)
		}
	}
}
