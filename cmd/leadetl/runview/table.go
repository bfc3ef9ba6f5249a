package runview

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/leadetl/leadetl/internal/figures"
	"github.com/leadetl/leadetl/internal/invisible"
)

// Table is a title with lines below it: counts with notes, and texts.
type Table struct {
	Title    string
	Below    Grid // after the lines
	minNames int  // minimum width of the names
	lines    []line
}

type line struct {
	name    string
	count   int64
	note    string
	noCount bool
}

// Count adds a count.
func (t *Table) Count(name string, n int64, note string) {
	t.lines = append(t.lines, line{name: name, count: n, note: note})
}

// CountIfAny adds a count unless it is 0.
func (t *Table) CountIfAny(name string, n int64, note string) {
	if n != 0 {
		t.Count(name, n, note)
	}
}

// Text adds a line whose text is aligned with the counts.
func (t *Table) Text(name, text string) {
	t.lines = append(t.lines, line{name: name, note: text, noCount: true})
}

// Print writes the table.
func (t *Table) Print(to io.Writer) error {
	names, counts := t.minNames, 0
	for _, l := range t.lines {
		names = max(names, len(l.name))
		if !l.noCount {
			counts = max(counts, len(figures.Grouped(l.count)))
		}
	}
	out := bufio.NewWriter(to)
	fmt.Fprintln(out, invisible.Escape(t.Title))
	for _, l := range t.lines {
		text := fmt.Sprintf("  %-*s  ", names, l.name)
		if !l.noCount {
			text += fmt.Sprintf("%*s  ", counts, figures.Grouped(l.count))
		}
		fmt.Fprintln(out, strings.TrimRight(text+invisible.Escape(l.note), " "))
	}
	t.Below.print(out)
	return out.Flush()
}

// Grid has rows of cells below heads. The first column and the last Notes columns are texts, the
// others figures.
type Grid struct {
	Heads []string
	Notes int
	Rows  [][]string
}

func (g Grid) print(to io.Writer) {
	if len(g.Rows) == 0 {
		return
	}
	widths := make([]int, len(g.Heads))
	rows := append([][]string{g.Heads}, g.Rows...)
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], len(invisible.Escape(cell)))
		}
	}
	fmt.Fprintln(to)
	for _, row := range rows {
		text := ""
		for i, cell := range row {
			width := widths[i]
			if i == 0 || i >= len(row)-g.Notes {
				width = -width
			}
			text += fmt.Sprintf("  %*s", width, invisible.Escape(cell))
		}
		fmt.Fprintln(to, strings.TrimRight(text, " "))
	}
}
