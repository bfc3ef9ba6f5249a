package keyed_test

import (
	"bytes"
	"errors"
	"path/filepath"
	"runtime/debug"
	"testing"

	"pgregory.net/rapid"

	"github.com/leadetl/leadetl/internal/atomicfile"
	"github.com/leadetl/leadetl/internal/disk"
	"github.com/leadetl/leadetl/internal/keyed"
)

// TestTable: each row has its values again, and no value is there twice.
func TestTable(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		widths := []int{0, 8, 0}
		text := rapid.SampledFrom([]string{"", "a", "b", "ab", "company", "another company", string(bytes.Repeat([]byte("x"), 300))})
		number := rapid.SampledFrom([]int64{-1, 0, 1, 1 << 40})
		rows := [][][]byte{{nil, nil, nil}}
		for range rapid.IntRange(0, 400).Draw(rt, "rows") {
			row := [][]byte{[]byte(text.Draw(rt, "text")), nil, []byte(text.Draw(rt, "other"))}
			if rapid.Bool().Draw(rt, "known") {
				row[1] = keyed.Number(number.Draw(rt, "number"))
			}
			rows = append(rows, row)
		}
		f, err := atomicfile.Create(filepath.Join(dir, "x.cols"), 0o600)
		if err != nil {
			rt.Fatal(err)
		}
		to, w := keyed.NewColumnWriter(f, keyed.MappedPages), keyed.NewTableWriter(dir, []string{"a", "b", "c"}, widths)
		for i, row := range rows[1:] {
			if at, err := w.Add(row...); err != nil || at != uint32(i+1) {
				rt.Fatal(at, err)
			}
		}
		if err := errors.Join(w.Write(t.Context(), to), to.Finish(), f.Commit(), w.Close()); err != nil {
			rt.Fatal(err)
		}
		c, err := keyed.OpenColumns(disk.Dir(dir), "x.cols")
		if err != nil {
			rt.Fatal(err)
		}
		defer c.Close()
		r := &keyed.ColumnReader{Columns: c}
		for column, name := range []string{"a", "b", "c"} {
			v := keyed.ReadValues(r, name, widths[column])
			if r.Err != nil || v.Rows() != len(rows) {
				rt.Fatal(name, r.Err, v.Rows(), len(rows))
			}
			checkValues(rt, name, &v, rows, column)
		}
	})
}

func checkValues(t *rapid.T, name string, v *keyed.Values, rows [][][]byte, column int) {
	codes := map[string]uint32{}
	err := func() (err error) {
		defer keyed.Guard(&err, debug.SetPanicOnFault(true))
		for i, row := range rows {
			code := v.Code(uint32(i))
			if known, there := codes[string(row[column])]; there && known != code || (code == 0) != (len(row[column]) == 0) {
				t.Fatalf("%s: row %d has code %d, its value had %d", name, i, code, known)
			}
			if codes[string(row[column])] = code; !bytes.Equal(v.At(uint32(i)), row[column]) {
				t.Fatalf("%s: row %d is %q, want %q", name, i, v.At(uint32(i)), row[column])
			}
		}
		return v.CheckAll()
	}()
	delete(codes, "")
	if err != nil || v.Len() != len(codes)+1 {
		t.Fatalf("%s: %d values, want %d and none; %v", name, v.Len(), len(codes), err)
	}
}
