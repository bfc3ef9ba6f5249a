package runview

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
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

// Print writes the table. On a terminal, notes that do not fit go on in lines of their own.
func (t *Table) Print(to io.Writer) error {
	return t.print(to, cli.Width(to))
}

// print writes the table for a width, 0 for any.
func (t *Table) print(to io.Writer, width int) error {
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
		indent := strings.Repeat(" ", len(text))
		for i, part := range Wrap(invisible.Escape(l.note), width-len(text)) {
			if i > 0 {
				text = indent
			}
			fmt.Fprintln(out, strings.TrimRight(text+part, " "))
		}
	}
	t.Below.print(out)
	return out.Flush()
}

// leastNote is the width below which notes are not wrapped: a word a line is harder to read.
const leastNote = 20

// Wrap divides a text at spaces into lines of a width, one for a width that is too small.
// A word that is longer has a line of its own.
func Wrap(text string, width int) (lines []string) {
	for width >= leastNote && utf8.RuneCountInString(text) > width {
		at := strings.LastIndex(string([]rune(text)[:width+1]), " ")
		if at <= 0 {
			if at = strings.Index(text, " "); at <= 0 {
				break
			}
		}
		lines, text = append(lines, text[:at]), strings.TrimLeft(text[at:], " ")
	}
	return append(lines, text)
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
