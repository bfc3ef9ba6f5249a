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

// groupFacts is a row group that both implementations read alike: its values while
// they are checked, and what is remembered of them.
type groupFacts struct {
	file   *parquetFile
	rows   int64
	found  rowFindings
	leaves map[string]*leaf   // by column; those that are checked together
	bytes  map[string][]int64 // of the list of each row, by column, while its leaves are read
	hashed []bool             // rows with a hash

	suppressed    []bool // rows of suppressed people; nil until findSuppressed
	anySuppressed bool

	columns     map[string]*ColumnFacts
	totals      sinks.Totals
	inputs      int64     // input rows
	first, last *inputRow // nil without rows
}

// inputRow is the place of a row in the input.
type inputRow struct {
	source string
	row    int64
}

// together are the columns that are checked with each other, after all of them are
// read. The others take most of the memory, and are dropped after their own check.
var together = map[string]bool{
	"source": true, "source_row": true, "key": true, "outcome": true, "reason": true, "answered_by": true, "credits": true, "source_part": true,
	"phone": true, "phone_raw": true, "phone_valid": true,
}

func isTogether(column string) bool {
	return together[column] || strings.HasSuffix(column, "_min") || strings.HasSuffix(column, "_max")
}

// fork returns a copy of g for a column that is read at the same time as others. Its
// findings are in g after join.
func (g *groupFacts) fork() *groupFacts {
	return &groupFacts{
		file: g.file, rows: g.rows, found: rowFindings{file: g.found.file, rowGroup: g.found.rowGroup, before: g.found.before},
		leaves: maps.Clone(g.leaves), bytes: map[string][]int64{}, columns: map[string]*ColumnFacts{},
		suppressed: g.suppressed, anySuppressed: g.anySuppressed,
	}
}

// join adds the findings of a fork.
func (g *groupFacts) join(fork *groupFacts) {
	maps.Copy(g.leaves, fork.leaves)
	maps.Copy(g.columns, fork.columns)
	g.found.list = append(g.found.list, fork.found.list...) // of other columns
	if g.hashed == nil {
		g.hashed = fork.hashed
		return
	}
	for i, hashed := range fork.hashed {
		g.hashed[i] = g.hashed[i] || hashed
	}
}

// addLeaf adds a leaf column, in the order of the file. It reports whether g keeps the
// leaf.
func (g *groupFacts) addLeaf(path string, l *leaf) (kept bool) {
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
	facts.Nulls = int64(l.Count - l.present())
	for _, text := range l.Texts {
		facts.Longest = max(facts.Longest, int64(len(text)))
	}
	_, own := g.file.forms[column]
	if kept = own && isTogether(column); kept {
		g.leaves[column] = l
	}
	return kept
}

// addNested adds a leaf of a list. Its values count together with those of the other
// leaves of the list.
func (g *groupFacts) addNested(column string, facts *ColumnFacts, l *leaf) {
	if l.Repetition == nil || l.Definition == nil {
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

// release drops the values, and keeps their memory for others.
func (g *groupFacts) release(spare *spareLeaves) {
	for _, l := range g.leaves {
		spare.put(l)
	}
	g.leaves, g.bytes, g.hashed, g.suppressed = nil, nil, nil, nil
}

// present counts the values that are not null.
func (l *leaf) present() int { return len(l.Texts) + len(l.Numbers) + len(l.Floats) + len(l.Booleans) }

// measure adds the bytes of the texts of a list to those of each row, and returns the
// number of null rows.
func (l *leaf) measure(bytes []int64) (nulls int64) {
	row, value := -1, 0
	for i := range l.Count {
		if l.Repetition[i] == 0 {
			row++
		}
		if l.Definition[i] == 0 {
			nulls++
		}
		if l.Definition[i] == l.MaxDefinition {
			if value < len(l.Texts) {
				bytes[row] += int64(len(l.Texts[value]))
			}
			value++
		}
	}
	return nulls
}

// texts returns the values of an own text column by row, nil for null. It returns nil if
// the dataset has no such column.
func (g *groupFacts) texts(name string) []parquet.ByteArray {
	return g.leaves[name].rowTexts()
}

// rowTexts returns the values of a flat text column by row; nil for another column.
func (l *leaf) rowTexts() []parquet.ByteArray {
	switch {
	case l == nil || l.Repetition != nil, l.Definition == nil && len(l.Texts) != l.Count:
		return nil
	case l.Definition == nil:
		return l.Texts
	}
	rows, next := make([]parquet.ByteArray, l.Count), 0
	for i, d := range l.Definition {
		if d == l.MaxDefinition && next < len(l.Texts) {
			rows[i] = l.Texts[next]
			next++
		}
	}
	return rows
}

// numbers returns the values of a column of whole numbers by row.
func (g *groupFacts) numbers(name string) (values []int64, valid []bool) {
	l := g.leaves[name]
	if l == nil {
		return nil, nil
	}
	values, valid = make([]int64, l.Count), make([]bool, l.Count)
	next := 0
	for i := range l.Count {
		if (l.Definition == nil || l.Definition[i] == l.MaxDefinition) && next < len(l.Numbers) {
			values[i], valid[i] = l.Numbers[next], true
			next++
		}
	}
	return values, valid
}

// partSum has the counts of the rows of a part.
type partSum struct {
	totals sinks.Totals
	inputs int64 // input rows
	broken bool  // not all of its files could be read
}

// count adds up the row groups and compares outcomes and reasons with the manifest. It
// checks that rows are in the order of the input over all parts; of partitioned rows,
// in each folder.
func (c *checker) count(files []*parquetFile) {
	parts := c.result.Manifest.Parts
	sums := make([]partSum, len(parts))
	last := map[string]*inputRow{} // by folder
	for _, f := range files {
		if !f.isPart {
			if f.whole() {
				if f.outcome == "malformed" {
					c.result.Rows, c.result.Rejects = c.result.Rows+f.Rows, c.result.Rejects+f.Rows
				}
				if f.outcome != "" {
					c.compareReasons(f, parts[f.part].Totals)
				}
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

// addFile adds a file to its part. last is the input row of the previous row, and the
// result that of the last row of the file.
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
				c.found.report(Failure{File: f.Name, RowGroup: i + 1, Column: "source_row", Row: g.found.before + 1, Problem: problem})
			}
		}
		if g.last != nil {
			last = g.last
		}
	}
	return last
}

// order describes what is wrong with a row that follows another; "" if nothing is.
func (c *checker) order(before, after *inputRow) string {
	return orderProblem(before.source == after.source, before.row, after.row, c.rules.SeveralRows)
}

func orderProblem(sameSource bool, before, after int64, several bool) string {
	if !sameSource || after > before || several && after == before {
		return ""
	}
	return "rows are not in the order of the input"
}

// compareTotals compares the counts of a part with those in the manifest.
func (c *checker) compareTotals(name string, want sinks.Totals, sum *partSum) {
	got := sum.totals
	fail := func(format string, args ...any) {
		c.found.report(Failure{File: name, Column: "outcome", Problem: fmt.Sprintf(format, args...)})
	}
	counted := got.ByOutcome()
	for _, outcome := range slices.Sorted(maps.Keys(counted)) {
		if n, wanted := *counted[outcome], *want.ByOutcome()[outcome]; n != wanted {
			fail("%d rows are %s; the manifest says %d", n, outcome, wanted)
		} else if !maps.Equal(want.Reasons[outcome], got.Reasons[outcome]) {
			c.found.report(Failure{File: name, Column: "reason", Problem: "the counts of reasons of " + outcome + " rows differ from the manifest"})
		}
	}
	inputs, noun := want.Searches, "searches"
	if want.SourceRows > 0 {
		inputs, noun = want.SourceRows-want.NotSelected, "input rows"
	}
	most := inputs
	if c.result.Manifest.PartitionBy != "" {
		most += want.Suppressed // a search may have rows in the folder of its value, and suppressed ones in that of null
		if want.SourceRows > 0 {
			most = want.Rows // the folder may be that of the identifier
		}
	}
	if inputs > 0 && c.result.Manifest.HasPlaces() && (sum.inputs < inputs || sum.inputs > most) {
		fail("the rows are of %d %s; the manifest says %d", sum.inputs, noun, inputs)
	}
}

// compareReasons compares the reasons in a file beside a part with those in the manifest.
func (c *checker) compareReasons(f *parquetFile, want sinks.Totals) {
	var got sinks.Totals
	for _, g := range f.groups {
		got.Add(g.totals)
	}
	if !maps.Equal(want.Reasons[f.outcome], got.Reasons["malformed"]) {
		c.found.report(Failure{File: f.Name, Column: "reason", Problem: "the counts of reasons of " + f.outcome + " lines differ from the manifest"})
	}
}

// runs calls each for the runs of rows with the same source.
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
