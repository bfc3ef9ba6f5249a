package spreadsheet

import "testing"

func TestMarks(t *testing.T) {
	for _, f := range []struct{ cell, value, text string }{
		{"", "", ""},
		{"ada@x.example", "ada@x.example", "ada@x.example"},
		{"'ada@x.example", "ada@x.example", "ada@x.example"},
		{" 'ada@x.example ", "ada@x.example", "ada@x.example"},
		{"\ufeff'ada@x.example", "ada@x.example", "ada@x.example"},
		{"'+14155550100", "+14155550100", "+14155550100"},
		{"'@acme.example", "@acme.example", "@acme.example"},
		{"'=1+1", "=1+1", "=1+1"},
		{"'-", "-", "-"},
		{"'", "", ""},
		{"''", "'", "'"},
		{"''ada", "'ada", "'ada"},
		{"o'brien@x.example", "o'brien@x.example", "o'brien@x.example"},
		{`="02138"`, "02138", "02138"},
		{` ="02138"`, "02138", "02138"},
		{`=""`, "", ""},
		{`="Ada ""A"" Doe"`, `Ada "A" Doe`, `Ada "A" Doe`},
		{`="a"&"b"`, `="a"&"b"`, `="a"&"b"`},
		{`="a`, `="a`, `="a`},
		{`=`, `=`, `=`},
		{`="`, `="`, `="`},
		{`=A1`, `=A1`, `=A1`},
		{"\t=1", "\t=1", "\t=1"}, // the caller trims
		{"'s-Hertogenbosch", "s-Hertogenbosch", "'s-Hertogenbosch"},
		{"'t Hart", "t Hart", "'t Hart"},
		{"'O'Brien", "O'Brien", "O'Brien"},
		{"'Ada's Bakery", "Ada's Bakery", "Ada's Bakery"},
		{"'02138", "02138", "02138"},
		{"'Growth' marketer", "Growth' marketer", "'Growth' marketer"},
		{"'Bakery'", "Bakery'", "'Bakery'"},
		{"'éa", "éa", "éa"},
	} {
		if got := Value(f.cell); got != f.value {
			t.Errorf("Value(%q) = %q, want %q", f.cell, got, f.value)
		}
		if got := ValueOf([]byte(f.cell)); string(got) != f.value {
			t.Errorf("ValueOf %q = %q, want %q", f.cell, got, f.value)
		}
		if got := Text(f.cell); got != f.text {
			t.Errorf("Text(%q) = %q, want %q", f.cell, got, f.text)
		}
	}
}
