package suppression

import (
	"reflect"
	"testing"
)

// TestLines: what is found leads back to the lines that it is from.
func TestLines(t *testing.T) {
	b := NewBuilder(rules)
	for line, cell := range []string{
		"j.doe@gmail.com", "https://linkedin.com/in/ada", "+12025550123", "@acme.example", "J.Doe@gmail.com", "203.0.113.7",
		"5b48ec4e1914e24663c2fe34b93e3e93062530ae5f5c7ea128cfe9a08bdbcc85", // ada@mail.example
	} {
		if err := b.AddLine(uint32(line), cell); err != nil {
			t.Fatal(cell, err)
		}
	}
	lines, finder := b.Lines(), b.Set().RememberingFinder()
	for _, c := range []struct {
		what  string
		named func(string) bool
		text  string
		want  []uint32
	}{
		{"a body", body(finder), `{"a":["x",{"b":"jdoe+news@gmail.com"}],"p":"202 555 0123"}`, []uint32{0, 2, 4}},
		{"the member of a body", body(finder), `{"linkedin.com/in/ada":1}`, []uint32{1}},
		{"a body that is cut off", body(finder), `{"a":"203.0.113.7","b":"linkedin.com/in/ada`, []uint32{1, 5}},
		{"a page", body(finder), `<td>ada@mail.example</td>`, []uint32{6}},
		{"a line", finder.NamesInLine, "7;\"Ada@mail.example\";x\t203.0.113.7", []uint32{5, 6}},
		{"a cell with several", finder.NamesInCell, "x@acme.example; Ada <ada@mail.example>", []uint32{3, 6}},
		{"a cell with a digest", finder.NamesInCell, " 5B48EC4E1914E24663C2FE34B93E3E93062530AE5F5C7EA128CFE9A08BDBCC85 ", []uint32{6}},
		{"nobody", body(finder), `{"a":"nobody@mail.example","n":12025550123}`, nil},
	} {
		clear(finder.Found())
		if named, got := c.named(c.text), lines.Of(finder.Found()); !reflect.DeepEqual(got, c.want) || named != (c.want != nil) {
			t.Errorf("%s: %v, %v; want %v", c.what, named, got, c.want)
		}
	}
}

func body(f *Finder) func(string) bool {
	return func(text string) bool { return f.NamesInBody([]byte(text)) }
}
