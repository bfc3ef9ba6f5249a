package columns_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/leadetl/leadetl/pipeline/columns"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/transforms/phone"
)

// shown is the name of a column in the table of operations in docs/reference/columns.md, or that of
// a block of columns.
var shown = regexp.MustCompile("`([a-z0-9_]+)`|\\[(\\w+)\\]")

// TestPageOfColumns: docs/reference/columns.md shows every operation's columns as they
// are, in their order and with their types.
func TestPageOfColumns(t *testing.T) {
	page, err := os.ReadFile("../../docs/reference/columns.md")
	if err != nil {
		t.Fatal(err)
	}
	cells := map[string]string{}            // of the table of operations
	blocks := map[string][]string{}         // the columns below a heading, with their types
	types := map[string]map[string]string{} // by heading and name
	heading := ""
	for line := range strings.Lines(string(page)) {
		if title, found := strings.CutPrefix(line, "### "); found {
			heading = strings.TrimSpace(title)
			types[heading] = map[string]string{}
		}
		row := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
		switch name := strings.Trim(row[0], "` "); {
		case len(row) == 4 && strings.HasPrefix(row[0], " `"):
			types[heading][name] = strings.Trim(row[1], "`")
			blocks[heading] = append(blocks[heading], name+" "+types[heading][name])
		case len(row) == 2:
			cells[name] = row[1]
		}
	}
	for _, op := range append(slices.Clone(resolution.SingleRecord), resolution.KeywordToLead, resolution.KeywordToLeadCount) {
		l, err := columns.NewLayout(columns.Settings{Operation: op, HEMProfiles: everyProfile, PhoneProfiles: []phone.Form{phone.E164, phone.Digits}, Remote: true, Parts: !op.IsKeyword()})
		if err != nil {
			t.Fatal(err)
		}
		var want []string
		for _, c := range l.Columns() {
			want = append(want, c.Name+" "+c.Type)
		}
		got := slices.Clone(blocks["every operation"])
		if !op.IsKeyword() {
			got = append(got, blocks["several in a cell"]...)
		}
		for _, m := range shown.FindAllStringSubmatch(cells[string(op)], -1) {
			if name, block := m[1], m[2]; block != "" {
				got = append(got, blocks[block]...)
			} else {
				got = append(got, name+" "+types[string(op)][name])
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s is shown as\n%s\nand has\n%s", op, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}
