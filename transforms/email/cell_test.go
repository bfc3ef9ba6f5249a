package email

import (
	"strings"
	"testing"
)

// What a cell may have around an address, and the values of a cell with several.
func TestCells(t *testing.T) {
	for _, f := range []struct{ cell, want string }{
		{"Jane.Doe@X.example", "jane.doe@x.example"},
		{"mailto:jane@x.example", "jane@x.example"},
		{"MAILTO:Jane@x.example?subject=Hello%20you", "jane@x.example"},
		{"mailto:jane%2Bnews@x.example", "jane+news@x.example"},
		{"<jane@x.example>", "jane@x.example"},
		{"Jane Doe <jane@x.example>", "jane@x.example"},
		{`"Doe, Jane" <jane@x.example>`, "jane@x.example"},
		{"Doe, Jane <jane@x.example>", "jane@x.example"},
		{"Doe; Jane | Sales <mailto:jane@x.example>", "jane@x.example"},
		{"Jane <jane@x.example>;", "jane@x.example"},
		{"jane@x.example,", "jane@x.example"},
		{" ; jane@x.example ;, ", "jane@x.example"},
		{"jane@x.example <JANE@x.example>", "jane@x.example"},
		{"'jane@x.example' <jane@x.example>", "jane@x.example"},
		{"a|b@x.example", "a|b@x.example"},
		{`"a,b"@x.example`, `"a,b"@x.example`},

		// Several.
		{"a@x.example, b@x.example", "multiple: a@x.example + b@x.example"},
		{"a@x.example\nb@x.example", "multiple: a@x.example + b@x.example"},
		{"a@x.example|b@x.example", "multiple: a@x.example + b@x.example"},
		{"a@x.example b@x.example", "multiple: a@x.example + b@x.example"},
		{"a|b@x.example; c@x.example", "multiple: a|b@x.example + c@x.example"},
		{"Doe, Ann <a@x.example>, Roe, Bob <b@x.example>,", "multiple: a@x.example + b@x.example"},
		{"a@x.example, tel, b@x.example", "multiple: a@x.example + invalid_email + b@x.example"},
		{"mailto:a@x.example,b@x.example", "multiple: a@x.example + b@x.example"},

		// What may be another address than it seems stays rejected.
		{"joe@y.example <jane@x.example>", "invalid_character"},
		{"Doe, jane@x.example", "invalid_character"},
		{"jane@x.example, Doe", "invalid_character"},
		{"Doe,jane@x.example", "invalid_email"},
		{"<jane@x.example> (work)", "invalid_character"},
		{"<jane@x.example", "invalid_email"},
		{"<<jane@x.example>>", "invalid_email"},
		{`"jane@x.example`, "invalid_email"},
		{"mailto:jane@x.example?cc=joe%40y.example", "invalid_email"},
		{"mailto:jane%zz@x.example", "invalid_email"},
		{"mailto:jane%0a@x.example", "invalid_email"},
		{"Jane <jane>", "invalid_character"},
		{"Jane <c4ca4238a0b923820dcc509a6f75849b>", "invalid_character"},
		{"mailto:", "invalid_email"},
		{",;", "invalid_email"},
		{"n/a", "empty"},
		{"jane\xff@x.example,", "invalid_utf8"},
	} {
		got := read([]byte(f.cell))
		if pieces := Split(f.cell); pieces != nil {
			var all []string
			for _, p := range pieces {
				all = append(all, read([]byte(p)))
			}
			got += ": " + strings.Join(all, " + ")
		}
		if got != f.want {
			t.Errorf("%q: %s, want %s", f.cell, got, f.want)
		}
	}
}

func read(cell []byte) string {
	a, err := Read(cell)
	if err != nil {
		return err.Error()
	}
	return string(a.AppendKey(nil))
}

// FuzzRead: Read says what Parse says where that finds a key, and values are never lists.
func FuzzRead(f *testing.F) {
	for _, cell := range []string{"jane@x.example", "Doe, Jane <jane@x.example>", "a@x.example|b@y.example", `"a,<b"@x.example, "`, "mailto:a%40b@c.example"} {
		f.Add([]byte(cell))
	}
	f.Fuzz(func(t *testing.T, cell []byte) {
		if a, err := Parse(cell); err == nil && read(cell) != string(a.AppendKey(nil)) {
			t.Errorf("%q: %s, and Parse reads it otherwise", cell, read(cell))
		}
		pieces := Split(string(cell))
		if len(pieces) == 1 {
			t.Errorf("%q: one value", cell)
		}
		for _, p := range pieces {
			if Split(p) != nil {
				t.Errorf("%q: the value %q has several", cell, p)
			}
		}
	})
}
