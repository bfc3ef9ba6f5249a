// Package rows is what every source hands out: batches of text columns with
// the row numbers they came from, and the lines that are no row.
//
// A batch lends its memory: after Release nothing of it may be used.
package rows

import (
	"sort"

	"github.com/apache/arrow/go/v17/arrow/array"
)

// Batch is a run of consecutive rows of one file.
type Batch struct {
	// Source is the file's name as Open listed it.
	Source string
	// Columns holds the columns that were asked for, in that order, each
	// Len() long. CSV columns have no nulls: an empty cell is "".
	Columns []*array.String
	// Rows is each row's 1-based data record number in its file: header and
	// blank lines are not counted, malformed lines are.
	Rows []int64
	// Rejects are the malformed records before, between and after the rows.
	Rejects []Reject

	shifts  []lineShift
	builder *Builder // gets its buffers back on Release
}

// Len is the number of rows, possibly 0 when there are only rejects.
func (b *Batch) Len() int { return len(b.Rows) }

// lineShift says by how much the lines of rows differ from their record
// numbers, from a row of the batch on. It seldom changes within a file.
type lineShift struct {
	from int
	by   int64
}

// Line is the 1-based physical line that row i of the batch begins on, header
// and blank lines counted; in Parquet, which has no lines, the row's number.
func (b *Batch) Line(i int) int64 {
	n := sort.Search(len(b.shifts), func(n int) bool { return b.shifts[n].from > i })
	return b.Rows[i] + b.shifts[n-1].by
}

// Release gives the batch's buffers back for reuse. Nothing of the batch,
// rejects included, may be used afterwards. Safe from any goroutine, once.
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
	InvalidUTF8   = "invalid_utf8"     // bytes that are no UTF-8
	TooLarge      = "record_too_large" // a line beyond the record limit
)

// MaxRaw is how many bytes of a malformed record are kept.
const MaxRaw = 64 << 10

// Reject is a record that is no row.
type Reject struct {
	Source string
	// Line is the 1-based physical line the record begins on, header and
	// blank lines counted; in Parquet, which has no lines, the row's number.
	Line int64
	// Row is the record's 1-based number as in Batch.Rows.
	Row int64
	// Reason is one of the constants above, for the dataset's reason column.
	Reason string
	// Raw is the record as it stands in the file, without its line end, cut
	// at MaxRaw bytes; it may be invalid UTF-8. Empty for Parquet.
	Raw []byte
}
