package columns_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/leadetl/leadetl/pipeline/columns"
	"github.com/leadetl/leadetl/resolution"
)

// shownColumn is a column in a table of docs/dataset.md, or the name of a
// block.
var shownColumn = regexp.MustCompile("`([a-z0-9_]+)`(?: (INT32|INT64|DOUBLE|BOOLEAN|DATE|TIMESTAMP\\(MICROS, UTC\\)|LIST<STRUCT<[^>]*>>|LIST<STRING>))?|\\*(\\w+)\\*")

// TestPageOfColumns: docs/dataset.md shows every operation's columns as they
// are, in their order and with their types.
func TestPageOfColumns(t *testing.T) {
	page, err := os.ReadFile("../../docs/dataset.md")
	if err != nil {
		t.Fatal(err)
	}
	var fixed []string
	everyOperation := false
	cells := map[string]string{} // by the first cell of a row
	for line := range strings.Lines(string(page)) {
		row := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
		switch name := strings.Trim(row[0], "` *"); {
		case strings.HasPrefix(line, "### "):
			everyOperation = line == "### Every operation\n"
		case everyOperation && len(row) == 6 && strings.HasPrefix(row[0], " `"):
			fixed = append(fixed, name+" "+row[1])
		case len(row) == 2:
			cells[name] = row[1]
		}
	}
	var expand func(cell string) []string
	expand = func(cell string) (all []string) {
		for _, m := range shownColumn.FindAllStringSubmatch(cell, -1) {
			name, of, block := m[1], m[2], m[3]
			switch {
			case block != "":
				all = append(all, expand(cells[block])...)
			case of == "":
				all = append(all, name+" STRING")
			default:
				all = append(all, name+" "+of)
			}
		}
		return all
	}
	for _, op := range append(slices.Clone(resolution.SingleRecord), resolution.KeywordToLead, resolution.KeywordToLeadCount) {
		l, err := columns.NewLayout(columns.Settings{Operation: op, HEMProfiles: everyProfile, Remote: true})
		if err != nil {
			t.Fatal(err)
		}
		var want []string
		for _, c := range l.Columns() {
			want = append(want, c.Name+" "+c.Type)
		}
		if got := append(slices.Clone(fixed), expand(cells[string(op)])...); !slices.Equal(got, want) {
			t.Errorf("%s is shown as\n%s\nand has\n%s", op, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}
