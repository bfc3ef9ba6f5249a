package program

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/width"

	"github.com/leadetl/leadetl/internal/figures"
	"github.com/leadetl/leadetl/sinks"
	"github.com/leadetl/leadetl/sinks/schema"
)

const (
	// maxCell is the maximum width of a value in the table.
	maxCell = 40
	// columnGap separates two columns.
	columnGap = "  "
)

// printTable prints the rows as a table, and the rows and cost of the dataset. Columns that were
// not asked for by name have to fit into lineWidth characters.
func (h *head) printTable(to io.Writer, lineWidth int, m *sinks.Manifest) error {
	var shown, empty, more []string // names
	var widths, places []int
	left := lineWidth
	for _, i := range h.tableOrder() {
		c := h.columns[i]
		need, hasValue := textWidth(c.Name), false
		for _, row := range h.rows {
			if row[i] != nil {
				need, hasValue = max(need, textWidth(printable(*row[i]))), true
			}
		}
		need = min(need, maxCell, lineWidth)
		switch {
		case !hasValue && !h.asked:
			empty = append(empty, printable(c.Name))
			continue
		case !h.asked && (len(more) > 0 || len(shown) > 0 && need+len(columnGap) > left):
			more = append(more, printable(c.Name))
			continue
		case len(shown) > 0:
			left -= len(columnGap)
		}
		left -= need
		shown, widths, places = append(shown, printable(c.Name)), append(widths, need), append(places, i)
	}
	w := bufio.NewWriter(to)
	line := func(cellAt func(n int) string) {
		var b strings.Builder
		for n := range shown {
			if n > 0 {
				b.WriteString(columnGap)
			}
			b.WriteString(fit(cellAt(n), widths[n]))
		}
		fmt.Fprintln(w, strings.TrimRight(b.String(), " "))
	}
	if len(shown) > 0 {
		line(func(n int) string { return shown[n] })
	}
	for _, row := range h.rows {
		line(func(n int) string {
			if value := row[places[n]]; value != nil {
				return printable(*value)
			}
			return ""
		})
	}
	cost := ""
	if m.CreditsTotal != nil {
		cost = "; paid for the dataset: " + figures.Plural(*m.CreditsTotal, "credit")
	}
	fmt.Fprintf(w, "%s of %s%s\n", figures.Grouped(int64(len(h.rows))), figures.Plural(m.Totals.Rows, "row"), cost)
	for _, list := range []struct {
		what  string
		names []string
	}{{"no value in these rows: ", empty}, {"do not fit; see --select and --json: ", more}} {
		if len(list.names) > 0 && len(h.rows) > 0 {
			fmt.Fprintln(w, list.what+strings.Join(list.names, ", "))
		}
	}
	return w.Flush()
}

// lineage are the columns that say where a row and its answer come from.
var lineage = []string{"source", "source_row", "key", "resolution_id", "resolved_at", "answered_by", "credits", "source_part"}

// tableOrder returns the order of the columns. Unless they were requested, what changed comes
// first, and lineage columns last: they are long, and users look for the answers.
func (h *head) tableOrder() (order []int) {
	placeOf := func(c schema.Column) int {
		switch {
		case h.asked:
			return 1
		case h.beside && (c.Name == "change" || c.Name == "changed"):
			return 0
		case slices.Contains(lineage, c.Name):
			return 2
		}
		return 1
	}
	for place := range 3 {
		for i, c := range h.columns {
			if placeOf(c) == place {
				order = append(order, i)
			}
		}
	}
	return order
}

// printable returns a text without terminal control characters.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '·'
	}, text)
}

// fit cuts or pads a text to a width.
func fit(text string, to int) string {
	if textWidth(text) > to {
		var cut strings.Builder
		left := to - 1
		for _, r := range text {
			if left -= runeWidth(r); left < 0 {
				break
			}
			cut.WriteRune(r)
		}
		text = cut.String() + "…"
	}
	return text + strings.Repeat(" ", max(0, to-textWidth(text)))
}

func textWidth(text string) (n int) {
	for _, r := range text {
		n += runeWidth(r)
	}
	return n
}

// runeWidth returns how many terminal columns a character takes.
func runeWidth(r rune) int {
	switch {
	case unicode.In(r, unicode.Mn, unicode.Me):
		return 0
	case width.LookupRune(r).Kind() == width.EastAsianWide, width.LookupRune(r).Kind() == width.EastAsianFullwidth:
		return 2
	}
	return 1
}
