package verify

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/apache/arrow/go/v17/parquet"

	"github.com/leadetl/leadetl/sinks"
)

// groupFacts is a row group that both implementations have read the same:
// its values while they are looked at, and what is remembered of them.
type groupFacts struct {
	file   *parquetFile
	rows   int64
	found  rowFindings
	leaves map[string]*leaf // by path

	columns     []ColumnFacts
	totals      sinks.Totals
	inputs      int64     // input rows
	first, last *inputRow // nil without rows
}

// inputRow is where a row comes from.
type inputRow struct {
	source string
	row    int64
}

func (g *groupFacts) add(path string, l *leaf) {
	if g.leaves == nil {
		g.leaves = map[string]*leaf{}
	}
	g.leaves[path] = l
}

// release forgets the values.
func (g *groupFacts) release() {
	for _, column := range g.file.columns {
		g.columns = append(g.columns, g.factsOf(column))
	}
	g.leaves = nil
}

// factsOf is how the values of a top-level column are.
func (g *groupFacts) factsOf(column sinks.Column) ColumnFacts {
	facts := ColumnFacts{Column: column}
	var longest []int64 // by row, where several leaves make a value
	for path, l := range g.leaves {
		if path != column.Name && !strings.HasPrefix(path, column.Name+".") {
			continue
		}
		if path == column.Name {
			facts.Nulls = int64(l.count - l.present())
			for _, text := range l.texts {
				facts.Longest = max(facts.Longest, int64(len(text)))
			}
			return facts
		}
		if longest == nil {
			longest = make([]int64, g.rows)
		}
		nulls, widest := l.measure(longest)
		facts.Nulls, facts.Width = nulls, max(facts.Width, widest)
	}
	for _, n := range longest {
		facts.Longest = max(facts.Longest, n)
	}
	return facts
}

// present counts the values that are there.
func (l *leaf) present() int { return len(l.texts) + len(l.numbers) + len(l.floats) + len(l.booleans) }

// measure adds the bytes of a list's texts to those of each row, and returns
// how many rows are null and how many values the longest list has.
func (l *leaf) measure(bytes []int64) (nulls, widest int64) {
	row, value, width := -1, 0, int64(0)
	for i := range l.count {
		if l.repetition[i] == 0 {
			row, width = row+1, 0
		}
		switch d := l.definition[i]; {
		case d == 0:
			nulls++
		case d > 1: // not an empty list
			width++
			widest = max(widest, width)
		}
		if l.definition[i] == l.maxDefinition {
			if value < len(l.texts) {
				bytes[row] += int64(len(l.texts[value]))
			}
			value++
		}
	}
	return nulls, widest
}

// texts are the values of a flat text column by row, nil where they are null;
// nil when the dataset has no such column.
func (g *groupFacts) texts(name string) []parquet.ByteArray {
	l := g.own(name)
	switch {
	case l == nil || l.repetition != nil, l.definition == nil && len(l.texts) != l.count: // no such column, or of another type
		return nil
	case l.definition == nil:
		return l.texts
	}
	rows, next := make([]parquet.ByteArray, l.count), 0
	for i, d := range l.definition {
		if d == l.maxDefinition && next < len(l.texts) {
			rows[i] = l.texts[next]
			next++
		}
	}
	return rows
}

// own is the leaf of an own column, nil when the dataset has none of that
// name. A column kept from the input never has the name of an own one.
func (g *groupFacts) own(name string) *leaf {
	if _, known := g.file.forms[name]; !known {
		return nil
	}
	return g.leaves[name]
}

// numbers are the values of a column of whole numbers by row.
func (g *groupFacts) numbers(name string) (values []int64, valid []bool) {
	l := g.own(name)
	if l == nil {
		return nil, nil
	}
	values, valid = make([]int64, l.count), make([]bool, l.count)
	next := 0
	for i := range l.count {
		if (l.definition == nil || l.definition[i] == l.maxDefinition) && next < len(l.numbers) {
			values[i], valid[i] = l.numbers[next], true
			next++
		}
	}
	return values, valid
}

// count adds the row groups up and compares what they come to with the
// manifest: the outcomes, the reasons, and that rows are in the order of the
// input over all parts.
func (c *checker) count(files []*parquetFile) {
	part := -1
	var last *inputRow
	for _, f := range files {
		if !f.isPart {
			if f.whole() {
				c.result.Rows, c.result.Rejects = c.result.Rows+f.Rows, c.result.Rejects+f.Rows
			}
			continue
		}
		part++
		if !f.whole() {
			last = nil
			continue
		}
		c.result.Rows += f.Rows
		var sum sinks.Totals
		var inputs int64
		for i, g := range f.groups {
			sum.Add(g.totals)
			inputs += g.inputs
			for j := range g.columns {
				facts := &c.result.Columns[j]
				facts.Nulls += g.columns[j].Nulls
				facts.Longest, facts.Width = max(facts.Longest, g.columns[j].Longest), max(facts.Width, g.columns[j].Width)
			}
			if last != nil && g.first != nil {
				if last.source == g.first.source && last.row == g.first.row && c.rules.SeveralRows {
					inputs--
				}
				if problem := c.order(last, g.first); problem != "" {
					c.found.add(Failure{File: f.Name, RowGroup: i + 1, Column: "source_row", Row: g.found.before + 1, Problem: problem})
				}
			}
			if g.last != nil {
				last = g.last
			}
		}
		if c.ruled {
			c.compareTotals(f.Name, c.result.Manifest.Parts[part].Totals, sum, inputs)
		}
	}
}

// order says what is wrong with a row that follows another; empty when nothing
// is.
func (c *checker) order(before, after *inputRow) string {
	return orderProblem(before.source == after.source, before.row, after.row, c.rules.SeveralRows)
}

func orderProblem(sameSource bool, before, after int64, several bool) string {
	if !sameSource || after > before || several && after == before {
		return ""
	}
	return "rows are not in the order of the input"
}

// compareTotals compares what a part's rows come to with what the manifest
// says of it.
func (c *checker) compareTotals(name string, want, got sinks.Totals, inputs int64) {
	fail := func(format string, args ...any) {
		c.found.add(Failure{File: name, Column: "outcome", Problem: fmt.Sprintf(format, args...)})
	}
	for _, n := range []struct {
		name      string
		want, got int64
	}{
		{"matched", want.Matched, got.Matched}, {"no_match", want.NoMatch, got.NoMatch}, {"rejected", want.Rejected, got.Rejected},
		{"failed", want.Failed, got.Failed}, {"suppressed", want.Suppressed, got.Suppressed}, {"skipped", want.Skipped, got.Skipped},
	} {
		if n.want != n.got {
			fail("%d rows are %s, not the %d of the manifest", n.got, n.name, n.want)
			continue
		}
		if n.name == "matched" {
			continue
		}
		if !sameCounts(want.Reasons[n.name], got.Reasons[n.name]) {
			c.found.add(Failure{File: name, Column: "reason", Problem: "the reasons of rows that are " + n.name + " are not counted as in the manifest"})
		}
	}
	if want.Searches > 0 && want.Searches != inputs {
		fail("the rows are those of %d searches, not of the %d of the manifest", inputs, want.Searches)
	}
}

func sameCounts(a, b map[string]int64) bool {
	if len(a) != len(b) {
		return false
	}
	for reason, n := range a {
		if b[reason] != n {
			return false
		}
	}
	return true
}

// runs calls each with the runs of rows that have one source.
func runs(sources []parquet.ByteArray, each func(from, to int)) {
	for from := 0; from < len(sources); {
		to := from + 1
		for to < len(sources) && bytes.Equal(sources[to], sources[from]) {
			to++
		}
		each(from, to)
		from = to
	}
}
