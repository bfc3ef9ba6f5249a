package changes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"

	"github.com/leadetl/leadetl/pipeline/columns"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/sinks"
	"github.com/leadetl/leadetl/sinks/schema"
)

// row is a row of a test's dataset: a kept column, and some of an enrichment. In texts, "-" is
// null. Lists have their values with commas.
type row struct{ id, key, outcome, reason, phone, words, credits string }

// own are the columns of row that are not kept.
var own = []string{"key", "outcome", "reason", "company_city", "matched_keywords", "credits"}

// parse reads rows, a line each, with the columns of row.
func parse(lines string) (rows []row) {
	for line := range strings.Lines(lines) {
		if f := strings.Fields(line); len(f) > 0 {
			rows = append(rows, row{f[0], f[1], f[2], f[3], f[4], f[5], f[6]})
		}
	}
	return rows
}

func (r row) cells() []string {
	return []string{r.id, r.key, r.outcome, r.reason, r.phone, r.words, r.credits}
}

func (r row) String() string { return strings.Join(r.cells(), " ") }

// ownColumns are the columns of own. No operation has all of them, but one that finds leads.
func ownColumns() []schema.Column { return columns.Every(resolution.KeywordToLead, own, nil) }

// dataset writes rows as a dataset. size is the number of rows of a part.
func dataset(t interface{ Fatal(...any) }, dir, jobID string, size int, rows []row, change ...func(*sinks.Manifest)) *Dataset {
	d, err := sinks.Open(context.Background(), dir, sinks.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	all := append([]schema.Column{schema.New("id", arrow.BinaryTypes.String, true)}, ownColumns()...)
	m := &sinks.Manifest{
		Format: sinks.ManifestFormat, Operation: string(resolution.KeywordToLead), SchemaVersion: columns.SchemaVersion, RulesVersion: columns.RulesVersion,
		JobID: jobID, Schema: all, CompletedAt: time.Date(2026, 11, 24, 3, 0, 0, 0, time.UTC),
	}
	m.Job, _ = json.Marshal(jobOf(nil))
	for some := range slices.Chunk(append(rows[:len(rows):len(rows)], row{}), size) { // the last is left out
		if some[len(some)-1] == (row{}) {
			some = some[:len(some)-1]
		}
		w, err := d.PartFiles(len(m.Parts), sinks.Table{Columns: all, Compression: sinks.Snappy}, "")
		if err != nil {
			t.Fatal(err)
		}
		rec := record(all, some)
		if err := w.Write("", rec); err != nil {
			t.Fatal(err)
		}
		rec.Release()
		if err := w.Finish(); err != nil {
			t.Fatal(err)
		}
		f, _, err := w.Commit()
		if err != nil {
			t.Fatal(err)
		}
		p := sinks.Part{File: f, Totals: sinks.Totals{Rows: int64(len(some))}}
		for _, r := range some {
			if r.outcome == "suppressed" {
				p.Totals.Suppressed++
			}
		}
		m.Totals.Add(p.Totals)
		m.Parts = append(m.Parts, p)
	}
	if m.Totals.Suppressed > 0 {
		m.Job, _ = json.Marshal(jobOf(map[string]any{"suppression": "lists"}))
	}
	for _, c := range change {
		c(m)
	}
	text, err := json.Marshal(m)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, sinks.ManifestName), text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return &Dataset{Dir: filepath.Base(dir), Files: reader(t, dir), Manifest: m}
}

// jobOf is a job whose column id is kept from "Record ID", which rows are resolved by.
func jobOf(job map[string]any) map[string]any {
	all := map[string]any{"select": append([]string{"id"}, own...), "id_column": "Record ID", "input_columns": []string{"Record ID"}, "renamed": map[string]string{"id": "Record ID"}}
	maps.Copy(all, job)
	return all
}

func reader(t interface{ Fatal(...any) }, dir string) *sinks.Reader {
	r, err := sinks.OpenReader(context.Background(), dir, sinks.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// record makes a record of rows. It has the columns of row in their order.
func record(all []schema.Column, rows []row) arrow.Record {
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema.Arrow(all))
	defer b.Release()
	for _, r := range rows {
		for i, cell := range r.cells() {
			switch f := b.Field(i).(type) {
			case *array.StringBuilder:
				if cell == "-" {
					f.AppendNull()
				} else {
					f.Append(cell)
				}
			case *array.Int32Builder:
				if n, err := strconv.Atoi(cell); err == nil {
					f.Append(int32(n))
				} else {
					f.AppendNull()
				}
			case *array.ListBuilder:
				f.Append(cell != "-")
				for _, word := range strings.FieldsFunc(cell, func(r rune) bool { return r == ',' }) {
					if cell != "-" {
						f.ValueBuilder().(*array.StringBuilder).Append(word)
					}
				}
			}
		}
	}
	return b.NewRecord()
}

// made are changes in a folder.
type made struct {
	*sinks.Changes
	dir  string
	rows []map[string]string // by column; "-" is null
}

// compare makes the changes of two datasets.
func compare(t interface{ Fatal(...any) }, dir string, before *Dataset, after *Dataset, s Settings) (made, error) {
	d, err := sinks.Open(context.Background(), dir, sinks.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	c, err := Make(context.Background(), before, *after, s, Target{Create: d.Beside(""), Sum: d.Sum, Compression: sinks.Snappy, Scratch: filepath.Dir(dir)})
	m := made{Changes: c, dir: dir}
	if err != nil {
		return m, err
	}
	shape, err := ShapeOf(after.Manifest)
	if err != nil {
		t.Fatal(err)
	}
	shape.columns = shape.Columns(Settings{By: c.By, Compare: c.Compare, Was: c.Was})
	list := &sinks.Manifest{}
	for _, f := range c.Files {
		list.Parts = append(list.Parts, sinks.Part{File: f})
	}
	rows, err := openSide(Dataset{Files: reader(t, dir), Manifest: list}, shape)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.close()
	every := make([]int, len(shape.columns))
	for i := range every {
		every[i] = i
	}
	at := newCursor(rows, every)
	var all []difference
	for n := range rows.rows {
		all = append(all, difference{new: n})
	}
	picked := picking{from: at, row: func(d difference) int64 { return d.new }, do: func(some []difference, arrays []arrow.Array) error {
		for i := range some {
			cells := map[string]string{}
			for place, c := range shape.columns {
				cells[c.Name] = text(arrays[place], i)
			}
			m.rows = append(m.rows, cells)
		}
		return nil
	}}
	if err := errors.Join(picked.add(context.Background(), all), picked.flush(context.Background())); err != nil {
		t.Fatal(err)
	}
	return m, nil
}

func text(a arrow.Array, i int) string {
	if a.IsNull(i) {
		return "-"
	}
	switch a := a.(type) {
	case *array.String:
		return strings.Clone(a.Value(i))
	case *array.List:
		from, to := a.ValueOffsets(i)
		var words []string
		for at := from; at < to; at++ {
			words = append(words, text(a.ListValues(), int(at)))
		}
		if len(words) == 0 {
			return ","
		}
		return strings.Join(words, ",")
	}
	return a.ValueStr(i)
}

func mustCompare(t *testing.T, before, after *Dataset, s Settings) made {
	t.Helper()
	m, err := compare(t, filepath.Join(t.TempDir(), "changes"), before, after, s)
	if err != nil {
		t.Fatal(err)
	}
	problems, err := Check(t.Context(), before, *after, reader(t, m.dir), m.Changes, t.TempDir())
	if err != nil || len(problems) > 0 {
		t.Errorf("the check finds %q, %v", problems, err)
	}
	return m
}

// lines are the columns of changes that a test names, a line for each row.
func (m made) lines(columns ...string) (text string) {
	for _, r := range m.rows {
		var cells []string
		for _, c := range columns {
			cells = append(cells, r[c])
		}
		text += fmt.Sprintln(strings.Join(cells, " "))
	}
	return text
}
