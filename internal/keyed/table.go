package keyed

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"math"
	"runtime/debug"
	"slices"

	"github.com/leadetl/leadetl/internal/spill"
)

// TableWriter makes Values of the columns of a table, in bounded memory: texts, and which of them
// are the same, are in temporary files. Row 0 has no values. A seeded hash of 88 bits identifies a
// value: even of a billion, two share so many with a probability below one in a hundred million.
type TableWriter struct {
	scratch string
	seeds   [2]maphash.Seed
	names   []string
	widths  []int
	texts   []*Spool[uint8]
	ends    []*Spool[uint64]
	sizes   []uint64
	cells   *spill.Sorter[cell]
	rows    uint32
}

// cell is a value that is not empty: 8 bits of the column, 88 of its hash, and 32 of its row. The row
// is in the prefix, because millions of rows may have one value.
type cell struct{ high, low uint64 }

func (c cell) prefix() spill.Prefix { return spill.Prefix{High: c.high, Low: c.low} }

func (c cell) row() uint32 { return uint32(c.low) }

func (c cell) column() int { return int(c.high >> 56) }

func (c cell) sameValue(d cell) bool { return c.high == d.high && c.low>>32 == d.low>>32 }

// NewTableWriter makes a writer of columns with temporary files in the folder scratch. widths are
// those of numbers, 0 for text.
func NewTableWriter(scratch string, names []string, widths []int) *TableWriter {
	w := &TableWriter{
		scratch: scratch, seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}, names: names, widths: widths,
		sizes: make([]uint64, len(names)), cells: spill.New(scratch, cell.prefix), rows: 1,
	}
	for range names {
		ends := NewSpool[uint64](scratch)
		_ = ends.Add(0, 0) // two values stay in memory
		w.texts, w.ends = append(w.texts, NewSpool[uint8](scratch)), append(w.ends, ends)
	}
	return w
}

// Close frees the temporary files. It may be called again.
func (w *TableWriter) Close() error {
	errs := []error{w.cells.Close()}
	for i := range w.texts {
		errs = append(errs, w.texts[i].Close(), w.ends[i].Close())
	}
	return errors.Join(errs...)
}

// Add adds a row, and returns it. It copies the values.
func (w *TableWriter) Add(values ...[]byte) (row uint32, err error) {
	if w.rows == math.MaxInt32 {
		return 0, ErrFull
	}
	row = w.rows
	w.rows++
	for i, value := range values {
		w.sizes[i] += uint64(len(value))
		if len(value) > 0 {
			c := cell{uint64(i)<<56 | maphash.Bytes(w.seeds[0], value)>>8, maphash.Bytes(w.seeds[1], value)<<32 | uint64(row)}
			if err := errors.Join(w.cells.Add(c), w.texts[i].Add(value...)); err != nil {
				return 0, err
			}
		}
		if err := w.ends[i].Add(w.sizes[i]); err != nil {
			return 0, err
		}
	}
	return row, nil
}

// Rows is the number of rows, with row 0.
func (w *TableWriter) Rows() int { return int(w.rows) }

// Write writes the sections of all columns.
func (w *TableWriter) Write(ctx context.Context, to *ColumnWriter) (err error) {
	defer Guard(&err, debug.SetPanicOnFault(true)) // the temporary files are mapped
	codes, free, err := scratchColumn(w.scratch, w.Rows())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, free()) }()
	column := 0
	writeUpTo := func(next int) error {
		for ; column < next; column++ {
			if err := w.write(to, column, codes); err != nil {
				return err
			}
			clear(codes)
		}
		return nil
	}
	var first cell // with the value
	if err := w.cells.Each(ctx, sortCells, func(cells []cell) (err error) {
		defer Guard(&err, debug.SetPanicOnFault(true))
		for _, c := range cells {
			if !c.sameValue(first) || first.row() == 0 {
				first = c
			}
			if err := writeUpTo(c.column()); err != nil {
				return err
			}
			codes[c.row()] = first.row()
		}
		return nil
	}); err != nil {
		return err
	}
	return writeUpTo(len(w.names))
}

func sortCells(cells, _ []cell) ([]cell, error) {
	slices.SortFunc(cells, func(a, b cell) int {
		if a.high != b.high {
			return cmp.Compare(a.high, b.high)
		}
		return cmp.Compare(a.low, b.low)
	})
	return cells, nil
}

// write writes a column. first has, for each row, the first one with its value, 0 without one. Values
// get codes in the order in which they occur first.
func (w *TableWriter) write(to *ColumnWriter, column int, first []uint32) error {
	name, n := w.names[column], uint32(1)
	PutEach(to, name+"_codes", len(first), func(row int) uint32 {
		switch at := first[row]; at {
		case 0:
		case uint32(row):
			first[row] = n
			n++
		default:
			first[row] = first[at]
		}
		return first[row]
	})
	text, errText := w.texts[column].Read()
	ends, errEnds := w.ends[column].Read()
	if err := errors.Join(errText, errEnds); err != nil {
		return err
	}
	of, row := Texts{ends, text}, uint32(0)
	next := func(code uint32) []byte {
		for row++; first[row] != code; row++ {
		}
		return of.At(row)
	}
	if w.widths[column] == 0 {
		end := uint64(0)
		PutEach(to, name+"_offsets", int(n)+1, func(i int) uint64 {
			if i > 1 {
				end += uint64(len(next(uint32(i - 1))))
			}
			return end
		})
	}
	row = 0
	begin[uint8](to, name)
	put(to, make([]byte, w.widths[column])...)
	for code := uint32(1); code < n; code++ {
		put(to, next(code)...)
	}
	return errors.Join(w.texts[column].Close(), w.ends[column].Close())
}

// PutNoValues writes the values of a column without any.
func PutNoValues(to *ColumnWriter, name string, width int) {
	if width == 0 {
		Column(to, name+"_offsets", []uint64{0, 0})
	}
	Column(to, name, make([]byte, width))
}

// Number is a number as a value of a column.
func Number[T int32 | int64](n T) []byte {
	if n64, is := any(n).(int64); is {
		return binary.NativeEndian.AppendUint64(nil, uint64(n64))
	}
	return binary.NativeEndian.AppendUint32(nil, uint32(n))
}

// Values is a column that has each distinct value once: the code of each row, and the values by
// their codes. Code 0 is no value. Pages are verified at the first read. Values that were checked may
// be read in the raw columns, as arrays of Arrow.
type Values struct {
	codes   Checked[uint32]
	offsets Checked[uint64] // of texts
	bytes   Checked[uint8]
	width   int // of numbers, 0 for texts
}

// ReadValues finds a column of TableWriter. It verifies that the last value is inside the file.
func ReadValues(r *ColumnReader, name string, width int) (v Values) {
	defer Guard(&r.Err, debug.SetPanicOnFault(true))
	v = ReadCodes(r, name).ofValues(r, name, width)
	if r.Err == nil && v.Len() < 1 {
		r.Err = fmt.Errorf("%w: section %s is empty", ErrDamaged, name)
	}
	return v
}

// ReadCodes is ReadValues for a column whose values are in another file; see With.
func ReadCodes(r *ColumnReader, name string) Values {
	return Values{codes: ReadChecked[uint32](r, name+"_codes", -1)}
}

// With is v with the values of another column, which its codes are of.
func (v Values) With(values Values) Values {
	values.codes = v.codes
	return values
}

func (v Values) ofValues(r *ColumnReader, name string, width int) Values {
	v.width, v.bytes = width, ReadChecked[uint8](r, name, -1)
	if width > 0 || r.Err != nil {
		return v
	}
	v.offsets = ReadChecked[uint64](r, name+"_offsets", -1)
	if n := v.offsets.Len(); r.Err == nil && (n == 0 || v.offsets.At(uint64(n-1)) != uint64(v.bytes.Len())) {
		r.Err = fmt.Errorf("%w: section %s_offsets is not what it should be", ErrDamaged, name)
	}
	return v
}

// Rows is the number of rows.
func (v *Values) Rows() int { return v.codes.Len() }

// Len is the number of values, with none.
func (v *Values) Len() int {
	if v.width > 0 {
		return v.bytes.Len() / v.width
	}
	return v.offsets.Len() - 1
}

// Width is that of numbers, 0 for texts.
func (v *Values) Width() int { return v.width }

// Code returns the code of a row. Call it under Guard.
func (v *Values) Code(row uint32) uint32 { return v.codes.At(uint64(row)) }

// At returns the value of a row, empty without one. It is valid until the file is closed. Call it
// under Guard.
func (v *Values) At(row uint32) []byte {
	code := uint64(v.Code(row))
	if v.width == 0 {
		ends := v.offsets.Slice(code, code+2)
		return v.bytes.Slice(ends[0], ends[1])
	}
	if number := v.bytes.Slice(code*uint64(v.width), (code+1)*uint64(v.width)); code > 0 {
		return number
	}
	return nil
}

// Raw are the columns in memory, which are not verified.
func (v *Values) Raw() (codes []uint32, offsets []uint64, bytes []byte) {
	return v.codes.All(), v.offsets.All(), v.bytes.All()
}

// Bytes is how many bytes CheckAll reads.
func (v *Values) Bytes() int { return 4*v.codes.Len() + 8*v.offsets.Len() + v.bytes.Len() }

// IsScattered reports whether a file of the column may not fit into memory.
func (v *Values) IsScattered() bool { return v.codes.file.scattered || v.bytes.file.scattered }

// CheckAll checks all pages, that the values are side by side, and that every row has one. Call it
// under Guard.
func (v *Values) CheckAll() error {
	codes, offsets := v.codes.Slice(0, uint64(v.codes.Len())), v.offsets.values
	v.bytes.Slice(0, uint64(v.bytes.Len()))
	if v.width == 0 {
		offsets = v.offsets.Slice(0, uint64(len(offsets)))
	}
	before := uint64(0)
	for i, end := range offsets {
		if end < before {
			return fmt.Errorf("%w: value %d is out of place", ErrDamaged, i)
		}
		before = end
	}
	for row, code := range codes {
		if int(code) >= v.Len() {
			return fmt.Errorf("%w: the value of row %d is out of place", ErrDamaged, row)
		}
	}
	return nil
}
