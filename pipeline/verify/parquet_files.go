package verify

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/sourcegraph/conc"
	"github.com/sourcegraph/conc/pool"

	"github.com/leadetl/leadetl/sinks"
	"github.com/leadetl/leadetl/sinks/typed"
)

// parquetFile is a file of a part or of its rejects, while it is checked.
type parquetFile struct {
	sinks.File
	columns  []sinks.Column
	forms    map[string]string
	isPart   bool
	outcome  string // of the rows beside those of a part; "" if they have none of their own
	spares   int    // the place of a column that may be missing; -1 without one
	part     int    // of the manifest
	valued   bool   // in the folder of a value
	hasAsked bool   // several resolvers answered
	opened   *sinks.OpenFile
	left     atomic.Int32 // row groups still to be read
	foot     footer
	readers  readers
	sound    bool          // the footer is right
	groups   []*groupFacts // nil for one that could not be read
}

// whole reports whether the whole file could be read.
func (f *parquetFile) whole() bool { return f.sound && !slices.Contains(f.groups, nil) }

// parts checks every file of the manifest, and their counts.
func (c *checker) parts(ctx context.Context) error {
	m := c.result.Manifest
	var files []*parquetFile
	for i := range m.Parts {
		p := &m.Parts[i]
		for _, f := range p.Data() {
			valued := m.PartitionBy != "" && !strings.HasSuffix(path.Dir(f.Name), "="+sinks.DefaultPartition)
			files = append(files, &parquetFile{File: f, isPart: true, part: i, valued: valued, hasAsked: p.Asked != nil, columns: m.Schema, forms: c.forms()})
		}
		if p.Rejects != nil {
			files = append(files, &parquetFile{File: *p.Rejects, part: i, outcome: "malformed", columns: c.rules.Rejects, spares: len(c.rules.Rejects) - 1, forms: map[string]string{"reason": ""}})
		}
		if p.Suppressed != nil {
			files = append(files, &parquetFile{File: *p.Suppressed, part: i, outcome: "suppressed", columns: c.rules.Suppressed, spares: -1, forms: map[string]string{"reason": ""}})
		}
		if p.Asked != nil {
			files = append(files, &parquetFile{File: *p.Asked, part: i, columns: c.rules.Asked})
		}
	}
	work := pool.New().WithContext(ctx).WithCancelOnError().WithFirstError().WithMaxGoroutines(c.options.Workers)
	err := c.start(ctx, files, work)
	if err := errors.Join(err, work.Wait()); err != nil {
		return err
	}
	c.count(files)
	return c.origins(ctx, files)
}

// start opens the files in order and gives their row groups to workers.
func (c *checker) start(ctx context.Context, files []*parquetFile, work *pool.ContextPool) error {
	for _, f := range files {
		if !safeName(f.Name) {
			continue // it has a failure already
		}
		opened, err := c.intact(ctx, f.File)
		if err != nil {
			return err
		}
		if opened == nil {
			continue
		}
		f.opened = opened
		if f.sound = c.footers(f); !f.sound || len(f.foot.groups) == 0 {
			if err := opened.Close(); err != nil {
				return err
			}
			continue
		}
		f.groups = make([]*groupFacts, len(f.foot.groups))
		f.left.Store(int32(len(f.groups)))
		before := int64(0)
		for i, g := range f.foot.groups {
			from := before
			before += g.rows
			work.Go(func(ctx context.Context) (err error) {
				defer func() {
					if f.left.Add(-1) == 0 {
						f.readers = readers{} // they have the whole footer
						err = errors.Join(err, f.opened.Close())
					}
				}()
				if ctx.Err() != nil {
					return ctx.Err()
				}
				f.groups[i] = c.rowGroup(f, i, from)
				return nil
			})
		}
	}
	return nil
}

// safeName reports whether a name can be that of a file of a dataset. No other file is
// opened.
func safeName(name string) bool {
	return fs.ValidPath(name) && strings.HasSuffix(name, ".parquet")
}

// forms returns the forms of own columns. Columns kept from the input have none.
func (c *checker) forms() map[string]string {
	forms := map[string]string{}
	for _, column := range c.rules.Own {
		forms[column.Name] = column.Meaning.Form
	}
	for kept := range c.result.Manifest.KeptFrom() {
		delete(forms, kept)
	}
	return forms
}

// footers reads the footer of a file with both implementations, and compares them with
// each other and the manifest. It reports whether the rows can be read.
func (c *checker) footers(f *parquetFile) bool {
	fail := func(column, format string, args ...any) {
		c.found.report(Failure{File: f.Name, Column: column, Problem: fmt.Sprintf(format, args...)})
	}
	var err error
	if f.readers.one, err = typed.Open(f.Name, f.opened, f.opened.Size); err == nil {
		f.foot, err = footerOf(f.readers.one)
	}
	if placed, ok := errors.AsType[*typed.Error](err); ok {
		err = placed.Err
	}
	if err != nil {
		fail("", "the Arrow reader cannot read the footer: %v", err)
		return false
	}
	var other footer
	if f.readers.two, other, err = openSecond(f.opened); err != nil {
		fail("", "the second reader cannot read the footer: %v", err)
		return false
	}
	if !reflect.DeepEqual(f.foot, other) {
		fail("", "the two readers disagree on the footer")
		return false
	}
	var sum int64
	for i, g := range f.foot.groups {
		sum += g.rows
		for _, chunk := range g.chunks {
			if chunk.values < g.rows {
				c.found.report(Failure{File: f.Name, RowGroup: i + 1, Column: chunk.path, Problem: "it has fewer values and nulls than there are rows"})
				return false
			}
		}
	}
	if f.foot.rows != f.Rows || sum != f.Rows {
		fail("", "it has %d rows by its footer, %d in its row groups, and %d in the manifest", f.foot.rows, sum, f.Rows)
		return false
	}
	if !c.columnsOf(f, fail) {
		return false
	}
	if f.isPart {
		c.about(f, fail)
	}
	return true
}

// columnsOf compares the columns of a file with the right ones.
func (c *checker) columnsOf(f *parquetFile, fail func(column, format string, args ...any)) bool {
	var columns []sinks.Column
	for _, e := range f.foot.columns {
		columns = append(columns, e.Column())
	}
	want := f.columns
	if !f.isPart {
		if !c.ruled {
			return false
		}
		if f.spares >= 0 && len(columns) == len(want)-1 {
			want = slices.Delete(slices.Clone(want), f.spares, f.spares+1)
		}
		f.columns = want
	}
	if column, problem := differ(columns, want); problem != "" {
		fail(column, "%s", problem)
		return false
	}
	leaves := leavesOf(f.foot.columns)
	for i, g := range f.foot.groups {
		if len(g.chunks) != len(leaves) {
			c.found.report(Failure{File: f.Name, RowGroup: i + 1, Problem: fmt.Sprintf("it has %d column chunks; the schema has %d leaf columns", len(g.chunks), len(leaves))})
			return false
		}
		for j, chunk := range g.chunks {
			if chunk.path != leaves[j].Name {
				c.found.report(Failure{File: f.Name, RowGroup: i + 1, Column: leaves[j].Name, Problem: "another column is in its place"})
				return false
			}
			if chunk.physical != leaves[j].Physical {
				c.found.report(Failure{File: f.Name, RowGroup: i + 1, Column: chunk.path, Problem: "its type is not that of the schema"})
				return false
			}
		}
	}
	return true
}

// leavesOf returns the leaf columns of elements, with their paths as names.
func leavesOf(elements []typed.Element) (leaves []typed.Element) {
	for _, e := range elements {
		if e.Physical != "" {
			leaves = append(leaves, e)
		}
		for _, below := range leavesOf(e.Children) {
			below.Name = e.Name + "." + below.Name
			leaves = append(leaves, below)
		}
	}
	return leaves
}

// about compares the metadata of a part with the manifest.
func (c *checker) about(f *parquetFile, fail func(column, format string, args ...any)) {
	m := c.result.Manifest
	for key, want := range map[string]string{
		"leadetl.operation":      m.Operation,
		"leadetl.schema_version": fmt.Sprint(m.SchemaVersion),
		"leadetl.rules_version":  fmt.Sprint(m.RulesVersion),
	} {
		if f.foot.keyValues[key] != want {
			fail("", "the footer and the manifest differ in %s", strings.TrimPrefix(key, "leadetl."))
		}
	}
	for i, g := range f.foot.groups {
		for _, chunk := range g.chunks {
			if chunk.hasBounds && c.isText(chunk.path) {
				c.found.report(Failure{File: f.Name, RowGroup: i + 1, Column: chunk.path, Problem: "text columns must not have statistics, which are values in clear text"})
			}
		}
	}
}

func (c *checker) isText(path string) bool {
	top, _, nested := strings.Cut(path, ".")
	for _, column := range c.result.Manifest.Schema {
		if column.Name == top {
			return nested || column.Type == "STRING"
		}
	}
	return true
}

// rowGroup reads a row group with both implementations. It returns nil if it cannot be
// read.
func (c *checker) rowGroup(f *parquetFile, i int, before int64) *groupFacts {
	g := &groupFacts{
		file: f, rows: f.foot.groups[i].rows, found: rowFindings{file: f.Name, rowGroup: i + 1, before: before},
		leaves: map[string]*leaf{}, bytes: map[string][]int64{}, columns: map[string]*ColumnFacts{},
	}
	if problems := c.readGroup(g, f, i); len(problems) > 0 {
		c.found.report(problems...)
		return nil
	}
	switch {
	case !f.isPart:
		g.countMalformed()
	case c.ruled:
		g.check(c.rules)
		c.found.report(g.found.list...)
	}
	g.release(&c.spare)
	c.work.Done(g.rows)
	return g
}

// readGroup reads the leaves of a row group, several columns at a time. It first reads
// columns that the checks of others need, and drops columns with failures.
func (c *checker) readGroup(g *groupFacts, f *parquetFile, i int) (problems []Failure) {
	before, after := f.readingOrder(i)
	for _, columns := range [][][]int{before, after} {
		forks, failed := make([]*groupFacts, len(columns)), make([][]Failure, len(columns))
		var reading conc.WaitGroup
		for n, leaves := range columns {
			forks[n] = g.fork()
			reading.Go(func() {
				c.reading <- struct{}{}
				defer func() { <-c.reading }()
				failed[n] = c.readColumn(forks[n], i, leaves)
			})
		}
		reading.Wait()
		for n, fork := range forks {
			g.join(fork)
			problems = append(problems, failed[n]...)
		}
		if f.isPart && c.ruled && g.suppressed == nil {
			g.findSuppressed()
		}
	}
	return problems
}

// readers has both readers of a file, for several goroutines.
type readers struct {
	one *typed.File
	two secondReader
}

// readColumn reads the leaves of a top-level column.
func (c *checker) readColumn(g *groupFacts, rowGroup int, leaves []int) (problems []Failure) {
	for _, j := range leaves {
		chunk := g.file.foot.groups[rowGroup].chunks[j]
		path := chunk.path
		l, err := g.file.readers.leaf(rowGroup, j, g.rows, c.spare.get(chunk.physical))
		failure := Failure{File: g.file.Name, RowGroup: rowGroup + 1, Column: path}
		if err != nil {
			failure.Problem = err.Error()
			if differs, ok := errors.AsType[*differError](err); ok {
				failure.Row = g.found.before + max(differs.row, 1)
			}
		} else {
			failure.Problem = chunk.statistics.problem(l)
		}
		if failure.Problem != "" {
			problems = append(problems, failure)
			continue
		}
		kept := g.addLeaf(path, l)
		if g.file.isPart && c.ruled {
			g.checkColumn(path, l, c.rules)
		}
		if !kept {
			c.spare.put(l)
		}
	}
	return problems
}

// readingOrder returns the leaves of each top-level column: first of columns that the
// checks of others need, and then of the others.
func (f *parquetFile) readingOrder(rowGroup int) (before, after [][]int) {
	last := ""
	for j, chunk := range f.foot.groups[rowGroup].chunks {
		column, _, _ := strings.Cut(chunk.path, ".")
		_, own := f.forms[chunk.path]
		switch {
		case own && isTogether(chunk.path):
			before = append(before, []int{j})
		case column == last:
			after[len(after)-1] = append(after[len(after)-1], j)
		default:
			after = append(after, []int{j})
		}
		last = column
	}
	return before, after
}

// leaf reads a leaf column of a row group with both implementations.
func (r readers) leaf(rowGroup, i int, rows int64, used *leaf) (*leaf, error) {
	if err := r.two.checkPages(rowGroup, i); err != nil {
		return nil, err
	}
	l, err := readLeaf(r.one, rowGroup, i, used)
	if err != nil {
		return nil, fmt.Errorf("the Arrow reader cannot read it: %w", err)
	}
	if len(l.Repetition) > 0 && l.Repetition[0] > 0 {
		return nil, errors.New("its first value continues a list")
	}
	if n := l.rows(); n != rows {
		return nil, fmt.Errorf("it has %d rows; the row group has %d", n, rows)
	}
	err = compare(l, r.two, rowGroup, i)
	if err == nil && rowGroup == 0 {
		err = compareDecoded(l, r.two, rowGroup, i, decodedPages)
	}
	if _, differs := errors.AsType[*differError](err); err != nil && !differs {
		err = fmt.Errorf("the second reader cannot read it: %w", err)
	}
	return l, err
}
