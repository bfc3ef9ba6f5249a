package changes

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"

	"github.com/leadetl/leadetl/internal/spill"
	"github.com/leadetl/leadetl/sinks"
	"github.com/leadetl/leadetl/sinks/schema"
	"github.com/leadetl/leadetl/sinks/typed"
)

// keepOldValues reads the old rows that changed, in their order, and keeps their values for
// the new rows, which may be in another one.
func (c *comparison) keepOldValues(ctx context.Context) error {
	places := c.kept()
	old := newCursor(c.old, places)
	var value []byte
	picked := picking{from: old, row: func(d difference) int64 { return d.old }, do: func(some []difference, arrays []arrow.Array) error {
		for i, d := range some {
			var err error
			d.offset, d.length, err = c.values.add(func(to []byte) []byte {
				for _, place := range places {
					value = appendValue(value[:0], arrays[place], i)
					to = append(binary.AppendUvarint(to, uint64(len(value))), value...)
				}
				return to
			})
			if err != nil {
				return err
			}
			if err := c.differences.Add(d); err != nil {
				return err
			}
		}
		return nil
	}}
	byRow := spill.Sorted(func(a, b difference) int { return cmp.Compare(a.old, b.old) })
	err := c.changed.Each(ctx, byRow, func(sorted []difference) error { return picked.add(ctx, sorted) })
	if err == nil {
		err = picked.flush(ctx)
	}
	return errors.Join(err, c.values.flush())
}

// kept are the columns whose old values are kept: first those that are compared.
func (c *comparison) kept() []int { return union(slices.Concat(c.compared, c.more), c.was) }

// union is the places of two lists, each once.
func union(a, b []int) []int {
	all := slices.Clone(a)
	for _, place := range b {
		if !slices.Contains(all, place) {
			all = append(all, place)
		}
	}
	return all
}

// writer writes the differences.
type writer struct {
	*comparison
	to     Target
	table  sinks.Table
	schema *arrow.Schema
	file   *sinks.Writer
	rows   int64 // of the file

	batch  []difference
	picked []arrow.Array // of the rows of batch, by place of the column
}

func newWriter(c *comparison, to Target) *writer {
	w := &writer{comparison: c, to: to}
	s := Settings{By: c.result.By, Compare: c.result.Compare, Was: c.result.Was}
	w.table = sinks.Table{Columns: c.shape.Columns(s), Compression: to.Compression, Metadata: map[string]string{
		"leadetl.operation":     c.shape.operation,
		"leadetl.rules_version": fmt.Sprint(c.shape.rules),
	}}
	w.schema = schema.Arrow(w.table.Columns)
	return w
}

func (w *writer) abort() error {
	if w.file == nil {
		return nil
	}
	return w.file.Abort()
}

// write writes the rows of the new dataset that differ, in their order, and then those that are
// gone, in the order of the old one.
func (w *writer) write(ctx context.Context) error {
	every := make([]int, len(w.shape.columns))
	for i := range every {
		every[i] = i
	}
	gone := every
	if w.shape.leavesOut {
		gone = []int{w.by}
	}
	fresh, old := newCursor(w.new, every), newCursor(w.old, gone)
	place := func(d difference) int64 {
		if d.new >= 0 {
			return d.new
		}
		return w.new.rows + d.old
	}
	byPlace := spill.Sorted(func(a, b difference) int { return cmp.Compare(place(a), place(b)) })
	stay := picking{from: fresh, row: func(d difference) int64 { return d.new }, do: w.add}
	leave := picking{from: old, row: func(d difference) int64 { return d.old }, do: w.add}
	err := w.differences.Each(ctx, byPlace, func(sorted []difference) error {
		isGone := slices.IndexFunc(sorted, func(d difference) bool { return d.new < 0 })
		if isGone < 0 {
			return stay.add(ctx, sorted)
		}
		if err := errors.Join(stay.add(ctx, sorted[:isGone]), stay.flush(ctx)); err != nil {
			return err
		}
		return leave.add(ctx, sorted[isGone:])
	})
	if err == nil {
		err = errors.Join(stay.flush(ctx), leave.flush(ctx))
	}
	if err != nil {
		return err
	}
	if w.file == nil && len(w.result.Files) == 0 { // without differences there is an empty file
		if err := w.begin(); err != nil {
			return err
		}
	}
	return w.end()
}

// add writes rows that are all removed, or none of them.
func (w *writer) add(batch []difference, picked []arrow.Array) error {
	w.batch, w.picked = batch, picked
	var arrays []arrow.Array
	defer func() { typed.Release(arrays) }()
	for place, column := range w.shape.columns {
		if w.shape.leavesOut && batch[0].new < 0 {
			arrays = append(arrays, array.MakeArrayOfNull(memory.DefaultAllocator, column.Arrow, len(batch)))
		} else {
			picked[place].Retain()
			arrays = append(arrays, picked[place])
		}
	}
	more, err := w.about()
	if err != nil {
		return err
	}
	arrays = append(arrays, more...)
	rec := array.NewRecord(w.schema, arrays, int64(len(batch)))
	defer rec.Release()
	return w.put(rec)
}

// about builds the columns that say what changed.
func (w *writer) about() ([]arrow.Array, error) {
	columns := w.table.Columns[len(w.shape.columns):]
	builders := make([]array.Builder, len(columns))
	for i, c := range columns {
		builders[i] = array.NewBuilder(memory.DefaultAllocator, c.Arrow)
		defer builders[i].Release()
	}
	places := w.kept()
	was := builders[2 : 2+len(w.was)]
	var kept, now []byte
	differ := make([]bool, len(w.shape.columns))
	for i, d := range w.batch {
		names := builders[1].(*array.ListBuilder)
		if d.old < 0 || d.new < 0 {
			names.AppendNull()
			for _, b := range was {
				b.AppendNull()
			}
			continue
		}
		var err error
		if kept, err = w.values.get(d.offset, d.length, kept); err != nil {
			return nil, err
		}
		names.Append(true)
		for n, rest := 0, kept; n < len(places); n++ {
			length, size := binary.Uvarint(rest)
			before := rest[size : size+int(length)]
			rest = rest[size+int(length):]
			now = appendValue(now[:0], w.picked[places[n]], i)
			differ[places[n]] = n < len(w.compared)+len(w.more) && !bytes.Equal(before, now)
			for j, b := range was {
				if w.was[j] == places[n] {
					buildValue(b, before)
				}
			}
		}
		for place := range w.shape.columns {
			if differ[place] && !w.isUnknown(place, i) {
				names.ValueBuilder().(*array.StringBuilder).Append(w.shape.columns[place].Name)
			}
		}
	}
	w.aboutEach(builders[0], builders[len(builders)-4:])
	arrays := make([]arrow.Array, len(builders))
	for i, b := range builders {
		arrays[i] = b.NewArray()
	}
	return arrays, nil
}

// isUnknown reports whether a column of a new row says nothing, because the row has no answer to
// it: it failed, or was skipped.
func (w *writer) isUnknown(place, row int) bool {
	if !w.shape.IsAnswer(place) || !w.picked[place].IsNull(row) {
		return false
	}
	outcome := w.picked[w.shape.place("outcome")].(*array.String).Value(row)
	return outcome == "failed" || outcome == "skipped"
}

// aboutEach builds change, since, key_hash, row_hash and was_row_hash.
func (w *writer) aboutEach(change array.Builder, last []array.Builder) {
	text := func(b array.Builder, value string, isThere bool) {
		if isThere {
			b.(*array.StringBuilder).Append(value)
		} else {
			b.AppendNull()
		}
	}
	by := w.picked[w.by].(*array.String)
	for i, d := range w.batch {
		text(change, d.what(), true)
		text(last[0], w.result.Since, w.result.Since != "")
		hides := d.what() == removed && w.shape.leavesOut && !by.IsNull(i) && strings.TrimSpace(by.Value(i)) != ""
		hash := ""
		if hides {
			hash = KeyHash(w.result.Since, by.Value(i))
		}
		text(last[1], hash, hides)
		text(last[2], d.newHash.String(), d.new >= 0)
		text(last[3], d.oldHash.String(), d.old >= 0)
	}
}

// KeyHash stands for the key of a row that is gone and may be a suppressed person. It is no
// plain hash of an email: that is the HEM of somebody who opted out.
func KeyHash(since, key string) string {
	sum := sha256.Sum256([]byte(since + ":" + key))
	return hex.EncodeToString(sum[:])
}

// put writes a record, and begins a new file where the last one is full.
func (w *writer) put(rec arrow.Record) error {
	for from := int64(0); from < rec.NumRows(); {
		if w.file == nil {
			if err := w.begin(); err != nil {
				return err
			}
		}
		to := min(rec.NumRows(), from+rowsPerFile-w.rows)
		some := rec.NewSlice(from, to)
		err := w.file.Write(some)
		some.Release()
		if err != nil {
			return err
		}
		w.rows += to - from
		if from = to; w.rows == rowsPerFile {
			if err := w.end(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *writer) begin() (err error) {
	w.rows = 0
	w.file, err = w.to.Create(len(w.result.Files), w.table)
	return err
}

// end publishes the open file.
func (w *writer) end() error {
	if w.file == nil {
		return nil
	}
	f, err := w.file.Commit()
	if err != nil {
		return err
	}
	w.result.Files = append(w.result.Files, f)
	w.file = nil
	return nil
}
