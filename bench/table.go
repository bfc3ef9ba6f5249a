package main

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// table is a Markdown table that is readable as plain text too. The first row is
// its head.
type table [][]string

func (t table) String() string {
	widths := make([]int, len(t[0]))
	for _, row := range t {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	var b strings.Builder
	line := func(row []string, pad string) {
		for i, cell := range row {
			fmt.Fprintf(&b, "| %s%s ", cell, strings.Repeat(pad, widths[i]-utf8.RuneCountInString(cell)))
		}
		b.WriteString("|\n")
	}
	line(t[0], " ")
	line(make([]string, len(t[0])), "-")
	for _, row := range t[1:] {
		line(row, " ")
	}
	return b.String()
}

// grouped writes n with commas between thousands.
func grouped(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// millions writes a count of rows as in "10 M rows".
func millions(n int) string {
	if n >= 1_000_000 && n%100_000 == 0 {
		return fmt.Sprintf("%.3g M", float64(n)/1e6)
	}
	return grouped(n)
}

func megabytes(n int64) string { return fmt.Sprintf("%.0f MB", float64(n)/1e6) }
