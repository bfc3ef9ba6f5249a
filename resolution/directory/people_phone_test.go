package directory

import (
	"testing"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/directory/people"
	"github.com/leadetl/leadetl/transforms/phone"
)

// TestPhoneDetails: an import describes the first phone of each person as a run does. Details of other
// rules are left out.
func TestPhoneDetails(t *testing.T) {
	dir := t.TempDir()
	mustImport(t, dir, Files{People: source(t, "people.csv", "network_url,phone,phones\n"+
		"network.example/in/a,(202) 555-0100 ext. 12,+447400123456\n"+
		"network.example/in/b,,+447400123456;+12025550100\n"+
		"network.example/in/c,+80012345678,\n"+
		"network.example/in/d,+12345678,\n"+
		"network.example/in/e,+999123456789,\n"+
		"network.example/in/f,call me,\n")})
	want := []string{"US fixed_line_or_mobile", "GB mobile", "001 toll_free", " unknown", " unknown", ""}
	for _, c := range []struct {
		name, rules string
		unread      bool
		part        people.Fields
		has         bool
	}{
		{"a person", phone.Rules, false, people.Whole, true},
		{"a phone", phone.Rules, false, people.Phones, true},
		{"no column of details", phone.Rules, true, people.Phones, false},
		{"no such column of a person", phone.Rules, true, people.Whole, false},
		{"other rules", "phonenumbers v1.0.0", false, people.Whole, false},
		{"other rules of a phone", "phonenumbers v1.0.0", false, people.Phones, false},
	} {
		d := mustOpen(t, dir)
		e := d.manifest.Kinds[People]
		e.PhoneRules = c.rules
		d.manifest.Kinds[People] = e
		if got := d.HasOtherPhoneRules(); got != (c.rules != phone.Rules) {
			t.Errorf("%s: other rules %t", c.name, got)
		}
		a := resolution.NewAnswers()
		a.Unread.Texts[resolution.FieldPhoneDetails] = c.unread
		d.StartPeople(a)
		if _, err := d.AppendPeople([]uint32{0, 1, 2, 3, 4, 5}, nil, a, c.part, 1<<20); err != nil {
			t.Fatal(err)
		}
		for row, details := range want {
			number := string(a.Texts[resolution.FieldPhone].At(row))
			if described := ""; number != "" {
				if described = phone.Describe(number).Text(); described != details {
					t.Errorf("row %d: Describe(%q) = %q, want %q", row, number, described, details)
				}
			}
			if !c.has {
				details = ""
			}
			if got := string(a.Texts[resolution.FieldPhoneDetails].At(row)); got != details {
				t.Errorf("%s, row %d: %q, want %q", c.name, row, got, details)
			}
		}
	}
}

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
