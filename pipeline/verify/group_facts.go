package verify

import (
	"bytes"
	"fmt"
	"maps"
	"path"
	"slices"
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
	leaves map[string]*leaf   // those that are looked at together, by column
	bytes  map[string][]int64 // of each row's list, by column, while its leaves come
	hashed []bool             // rows that have some hash

	suppressed    []bool // rows of people who are; nil until it is asked
	anySuppressed bool

	columns     map[string]*ColumnFacts
	totals      sinks.Totals
	inputs      int64     // input rows
	first, last *inputRow // nil without rows
}

// inputRow is where a row comes from.
type inputRow struct {
	source string
	row    int64
}

// together are the columns that are looked at with each other once all are
// read. The others are forgotten as soon as they are looked at, which is most
// of the memory.
var together = map[string]bool{
	"source": true, "source_row": true, "key": true, "outcome": true, "reason": true, "answered_by": true, "credits": true,
	"phone": true, "phone_raw": true, "phone_valid": true,
}

func isTogether(column string) bool {
	return together[column] || strings.HasSuffix(column, "_min") || strings.HasSuffix(column, "_max")
}

// fork is what one of several columns is read with at the same time. It reads
// what g holds, and nothing that is found is in g before join.
func (g *groupFacts) fork() *groupFacts {
	return &groupFacts{
		file: g.file, rows: g.rows, found: rowFindings{file: g.found.file, rowGroup: g.found.rowGroup, before: g.found.before},
		leaves: maps.Clone(g.leaves), bytes: map[string][]int64{}, columns: map[string]*ColumnFacts{},
		suppressed: g.suppressed, anySuppressed: g.anySuppressed,
	}
}

// join takes in what was read with a fork.
func (g *groupFacts) join(fork *groupFacts) {
	maps.Copy(g.leaves, fork.leaves)
	maps.Copy(g.columns, fork.columns)
	g.found.list = append(g.found.list, fork.found.list...) // of other columns than before
	if g.hashed == nil {
		g.hashed = fork.hashed
		return
	}
	for i, hashed := range fork.hashed {
		g.hashed[i] = g.hashed[i] || hashed
	}
}

// add takes in a leaf column, in the order of the file. It reports whether the
// leaf is kept.
func (g *groupFacts) add(path string, l *leaf) (kept bool) {
	column, _, nested := strings.Cut(path, ".")
	facts := g.columns[column]
	if facts == nil {
		facts = &ColumnFacts{}
		g.columns[column] = facts
	}
	if nested {
		g.addNested(column, facts, l)
		return false
	}
	facts.Nulls = int64(l.count - l.present())
	for _, text := range l.texts {
		facts.Longest = max(facts.Longest, int64(len(text)))
	}
	_, own := g.file.forms[column]
	if kept = own && isTogether(column); kept {
		g.leaves[column] = l
	}
	return kept
}

// addNested takes in a leaf of a list. Its values count together with those of
// the list's other leaves.
func (g *groupFacts) addNested(column string, facts *ColumnFacts, l *leaf) {
	if l.repetition == nil || l.definition == nil {
		return
	}
	if g.bytes[column] == nil {
		g.bytes[column] = make([]int64, g.rows)
	}
	facts.Nulls = l.measure(g.bytes[column])
	for _, n := range g.bytes[column] {
		facts.Longest = max(facts.Longest, n)
	}
}

// release forgets the values.
func (g *groupFacts) release() { g.leaves, g.bytes, g.hashed, g.suppressed = nil, nil, nil, nil }

// present counts the values that are there.
func (l *leaf) present() int { return len(l.texts) + len(l.numbers) + len(l.floats) + len(l.booleans) }

// measure adds the bytes of a list's texts to those of each row, and returns
// how many rows are null.
func (l *leaf) measure(bytes []int64) (nulls int64) {
	row, value := -1, 0
	for i := range l.count {
		if l.repetition[i] == 0 {
			row++
		}
		if l.definition[i] == 0 {
			nulls++
		}
		if l.definition[i] == l.maxDefinition {
			if value < len(l.texts) {
				bytes[row] += int64(len(l.texts[value]))
			}
			value++
		}
	}
	return nulls
}

// texts are the values of an own column by row, nil where they are null; nil
// when the dataset has no such column of text.
func (g *groupFacts) texts(name string) []parquet.ByteArray {
	return g.leaves[name].rowTexts()
}

// rowTexts are the values of a flat text column by row; nil of another one.
func (l *leaf) rowTexts() []parquet.ByteArray {
	switch {
	case l == nil || l.repetition != nil, l.definition == nil && len(l.texts) != l.count:
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

// numbers are the values of a column of whole numbers by row.
func (g *groupFacts) numbers(name string) (values []int64, valid []bool) {
	l := g.leaves[name]
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

// partSum is what the rows of a part come to.
type partSum struct {
	totals sinks.Totals
	inputs int64 // input rows
	broken bool  // not all of its files could be read
}

// count adds the row groups up and compares what they come to with the
// manifest: the outcomes, the reasons, and that rows are in the order of the
// input over all parts, of each value's folder where they are parted.
func (c *checker) count(files []*parquetFile) {
	parts := c.result.Manifest.Parts
	sums := make([]partSum, len(parts))
	last := map[string]*inputRow{} // by folder
	for _, f := range files {
		if !f.isPart {
			if f.whole() {
				c.result.Rows, c.result.Rejects = c.result.Rows+f.Rows, c.result.Rejects+f.Rows
				c.compareMalformed(f, parts[f.part].Totals)
			}
			continue
		}
		folder := path.Dir(f.Name)
		if !f.whole() {
			sums[f.part].broken, last[folder] = true, nil
			continue
		}
		c.result.Rows += f.Rows
		last[folder] = c.addFile(&sums[f.part], f, last[folder])
	}
	for i := range sums {
		if c.ruled && !sums[i].broken {
			c.compareTotals(parts[i].Name, parts[i].Totals, &sums[i])
		}
	}
}

// addFile adds a file to its part. last is the input row of the row before the
// file's first, and what is returned that of its last.
func (c *checker) addFile(sum *partSum, f *parquetFile, last *inputRow) *inputRow {
	for i, g := range f.groups {
		sum.totals.Add(g.totals)
		sum.inputs += g.inputs
		for j := range c.result.Columns {
			facts := &c.result.Columns[j]
			if of := g.columns[facts.Name]; of != nil {
				facts.Nulls += of.Nulls
				facts.Longest = max(facts.Longest, of.Longest)
			}
		}
		if last != nil && g.first != nil {
			if last.source == g.first.source && last.row == g.first.row && c.rules.SeveralRows {
				sum.inputs--
			}
			if problem := c.order(last, g.first); problem != "" {
				c.found.add(Failure{File: f.Name, RowGroup: i + 1, Column: "source_row", Row: g.found.before + 1, Problem: problem})
			}
		}
		if g.last != nil {
			last = g.last
		}
	}
	return last
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
func (c *checker) compareTotals(name string, want sinks.Totals, sum *partSum) {
	got := sum.totals
	fail := func(format string, args ...any) {
		c.found.add(Failure{File: name, Column: "outcome", Problem: fmt.Sprintf(format, args...)})
	}
	counted := got.ByOutcome()
	for _, outcome := range slices.Sorted(maps.Keys(counted)) {
		if n, wanted := *counted[outcome], *want.ByOutcome()[outcome]; n != wanted {
			fail("%d rows are %s; the manifest says %d", n, outcome, wanted)
		} else if !maps.Equal(want.Reasons[outcome], got.Reasons[outcome]) {
			c.found.add(Failure{File: name, Column: "reason", Problem: "the counts of reasons of " + outcome + " rows differ from the manifest"})
		}
	}
	most := want.Searches
	if c.result.Manifest.PartitionBy != "" {
		most += want.Suppressed // a search may have some rows in the folder of its value, and suppressed ones in that of none
	}
	if want.Searches > 0 && (sum.inputs < want.Searches || sum.inputs > most) {
		fail("the rows are of %d searches; the manifest says %d", sum.inputs, want.Searches)
	}
}

// compareMalformed compares the reasons of a part's malformed lines with what
// the manifest says of them.
func (c *checker) compareMalformed(f *parquetFile, want sinks.Totals) {
	var got sinks.Totals
	for _, g := range f.groups {
		got.Add(g.totals)
	}
	if !maps.Equal(want.Reasons["malformed"], got.Reasons["malformed"]) {
		c.found.add(Failure{File: f.Name, Column: "reason", Problem: "the counts of reasons of malformed lines differ from the manifest"})
	}
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
