package jsonlist

import (
	"slices"
	"testing"
)

func TestTexts(t *testing.T) {
	for _, f := range []struct {
		cell string
		want []string
		ok   bool
		only string
	}{
		{`["a"]`, []string{"a"}, true, "a"},
		{`["a","b c"]`, []string{"a", "b c"}, true, `["a","b c"]`},
		{`[]`, nil, true, ""},
		{`[ ]`, nil, true, ""},
		{`[null]`, nil, true, ""},
		{`[""]`, nil, true, ""},
		{`[null,"", " \u200b","N/A"]`, nil, true, ""},
		{`[null,"a",""]`, []string{"a"}, true, "a"},
		{`["\"q\" \u00e9"]`, []string{`"q" é`}, true, `"q" é`},
		{`[14155550100]`, []string{"14155550100"}, true, "14155550100"},
		{`[{"x": 1},["a"]]`, []string{`{"x": 1}`, `["a"]`}, true, `[{"x": 1},["a"]]`},
		{"", nil, false, ""},
		{"a", nil, false, "a"},
		{`[2001:db8::1]:80`, nil, false, `[2001:db8::1]:80`},
		{`["a"`, nil, false, `["a"`},
		{`["a"] b`, nil, false, `["a"] b`},
		{`{"a":["b"]}`, nil, false, `{"a":["b"]}`},
	} {
		if got, ok := Texts(f.cell); !slices.Equal(got, f.want) || ok != f.ok {
			t.Errorf("Texts(%q) = %q, %v, want %q, %v", f.cell, got, ok, f.want, f.ok)
		}
		if got := Only(f.cell); got != f.only {
			t.Errorf("Only(%q) = %q, want %q", f.cell, got, f.only)
		}
	}
}
