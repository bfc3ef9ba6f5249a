// Package rows has the batches that every source returns: text columns, the numbers of
// their rows, and malformed lines.
//
// A batch owns its memory: after Release, nothing of it may be used.
package rows

import (
	"sort"

	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"
)

// Batch has consecutive rows of a file.
type Batch struct {
	// Source is the file's name as Open listed it.
	Source string
	// Columns has the requested columns in that order, with Len() values each. CSV
	// columns have no nulls: an empty cell is "".
	Columns []*array.String
	// Rows has the number of each row in its file, from 1. Malformed lines count;
	// the header and blank lines do not.
	Rows []int64
	// Rejects are the malformed records before, between and after the rows.
	Rejects []Reject
	// Weight is what a look-ahead counts the batch as.
	Weight int64

	shifts  []lineShift
	builder *Builder // gets its buffers back in Release
}

// Len is the number of rows; 0 if there are only rejects.
func (b *Batch) Len() int { return len(b.Rows) }

// lineShift is the difference between the line and the number of each row, from
// a row of the batch on. It seldom changes within a file.
type lineShift struct {
	from int
	by   int64
}

// Line is the line on which row i begins, from 1, counting the header and blank lines; in
// Parquet, which has no lines, the number of the row.
func (b *Batch) Line(i int) int64 {
	if len(b.shifts) == 1 {
		return b.Rows[i] + b.shifts[0].by
	}
	n := sort.Search(len(b.shifts), func(n int) bool { return b.shifts[n].from > i })
	return b.Rows[i] + b.shifts[n-1].by
}

// Keep drops the rows for which keep returns false, and returns how many.
func (b *Batch) Keep(keep func(i int) bool) (dropped int) {
	var kept []int
	for i := range b.Len() {
		if keep(i) {
			kept = append(kept, i)
		}
	}
	if dropped = b.Len() - len(kept); dropped == 0 {
		return 0
	}
	rows, shifts := make([]int64, len(kept)), []lineShift(nil)
	for at, i := range kept {
		rows[at] = b.Rows[i]
		if by := b.Line(i) - b.Rows[i]; len(shifts) == 0 || shifts[len(shifts)-1].by != by {
			shifts = append(shifts, lineShift{at, by})
		}
	}
	columns := make([]*array.String, len(b.Columns))
	for c, column := range b.Columns {
		columns[c] = Pick(column, kept)
		column.Release()
	}
	b.Rows, b.shifts, b.Columns = rows, shifts, columns
	return dropped
}

// Pick returns a copy of some cells of a column, in the given order.
func Pick(c *array.String, rows []int) *array.String {
	cells := array.NewStringBuilder(memory.DefaultAllocator)
	defer cells.Release()
	cells.Reserve(len(rows))
	for _, i := range rows {
		if c.IsNull(i) {
			cells.AppendNull()
		} else {
			cells.Append(c.Value(i))
		}
	}
	return cells.NewStringArray()
}

// Release frees the buffers of the batch for reuse. Afterwards, nothing of the
// batch may be used, not even its rejects. It is safe from any goroutine, once.
func (b *Batch) Release() {
	for _, c := range b.Columns {
		c.Release()
	}
	builder := b.builder
	*b = Batch{}
	if builder != nil {
		builder.Discard()
	}
}

// The reasons of a Reject.
const (
	RaggedRow     = "ragged_row"       // more or fewer fields than the header
	StrayQuote    = "stray_quote"      // text after a closing quote
	UnclosedQuote = "unclosed_quote"   // a quoted field that never ends
	NULByte       = "nul_byte"         // a zero byte
	InvalidUTF8   = "invalid_utf8"     // bytes that are not UTF-8
	BadJSON       = "bad_json"         // a line that is no JSON object
	TooLarge      = "record_too_large" // a line beyond the record limit
)

// MaxRaw bounds the kept bytes of a malformed record.
const MaxRaw = 64 << 10

// Reject is a malformed record.
type Reject struct {
	Source string
	// Line is the line on which the record begins, from 1, counting the header and
	// blank lines; in Parquet, which has no lines, the number of the row.
	Line int64
	// Row is the number of the record, as in Batch.Rows.
	Row int64
	// Reason is one of the constants above, for the reason column of a dataset.
	Reason string
	// Raw is the record without its line end, cut at MaxRaw bytes. It may be invalid
	// UTF-8. Empty for Parquet.
	Raw []byte
}
