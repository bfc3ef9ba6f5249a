package rows

import (
	"sync"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/bitutil"
	"github.com/apache/arrow/go/v17/arrow/memory"
)

// FullBytes is the size of values after which a batch ends early, so that
// memory stays bounded however wide rows are. The row that passes it is still
// in the batch.
const FullBytes = 8 << 20

// FullRejects is the number of rejects after which a batch ends early: a file
// of nothing but malformed lines must not become one batch.
const FullRejects = 8192

// keepBytes is the largest column buffer that is worth keeping for reuse.
const keepBytes = 2 * FullBytes

// Builder fills the columns of one batch. Values are copied once, straight
// into the buffers the Arrow arrays are made over.
//
// A row is written by one Add or AddNull per column and one Commit; Rollback
// forgets what was added since the last Commit.
type Builder struct {
	columns []column
	rows    []int64
	shifts  []lineShift
	rejects []Reject
	size    int // bytes of values and raw lines
}

// column is one string column in Arrow's layout. offsets[0:n+1] is valid for
// n committed rows; offsets[n+1] belongs to the row being written.
type column struct {
	values  []byte
	offsets []int32
	valid   []byte // bitmap, nil as long as there is no null
	nulls   int
}

var pool = sync.Pool{New: func() any { return new(Builder) }}

// NewBuilder returns an empty Builder of that many columns, with the buffers
// of a released batch where there are some.
func NewBuilder(columns, maxRows int) *Builder {
	b := pool.Get().(*Builder)
	b.reset(columns, maxRows)
	return b
}

func (b *Builder) reset(columns, maxRows int) {
	if cap(b.columns) < columns {
		b.columns = append(b.columns[:cap(b.columns)], make([]column, columns-cap(b.columns))...)
	}
	b.columns = b.columns[:columns]
	for i := range b.columns {
		c := &b.columns[i]
		if cap(c.offsets) < maxRows+1 {
			c.offsets = make([]int32, maxRows+1)
		}
		c.offsets = c.offsets[:maxRows+1]
		c.offsets[0] = 0
		c.values, c.valid, c.nulls = c.values[:0], c.valid[:0], 0
	}
	if cap(b.rows) < maxRows {
		b.rows = make([]int64, 0, maxRows)
	}
	b.rows, b.shifts, b.rejects, b.size = b.rows[:0], b.shifts[:0], nil, 0
}

// Discard frees the buffers for reuse. Call it on a Builder that makes no batch.
// For the others, Release does it.
func (b *Builder) Discard() {
	for i := range b.columns {
		if cap(b.columns[i].values) > keepBytes {
			b.columns[i].values = nil
		}
	}
	b.rejects = nil
	pool.Put(b)
}

// Len is the number of committed rows.
func (b *Builder) Len() int { return len(b.rows) }

// Rejects is the number of rejects so far.
func (b *Builder) Rejects() int { return len(b.rejects) }

// Empty reports whether there are neither rows nor rejects.
func (b *Builder) Empty() bool { return len(b.rows) == 0 && len(b.rejects) == 0 }

// Full reports whether the batch should end here, whatever its row count.
func (b *Builder) Full() bool { return b.size >= FullBytes || len(b.rejects) >= FullRejects }

// Add writes the row's value in a column: a copy of v.
func (b *Builder) Add(col int, v []byte) {
	c := &b.columns[col]
	c.values = append(c.values, v...)
	c.offsets[len(b.rows)+1] = int32(len(c.values))
	b.size += len(v)
}

// Slot returns a column's buffer, to append the row's value to it. Pass the
// result to SetSlot. Use it for values that are computed rather than copied.
func (b *Builder) Slot(col int) []byte { return b.columns[col].values }

// SetSlot ends the value begun with Slot.
func (b *Builder) SetSlot(col int, values []byte) {
	c := &b.columns[col]
	b.size += len(values) - len(c.values)
	c.values = values
	c.offsets[len(b.rows)+1] = int32(len(values))
}

// AddNull writes a null in a column.
func (b *Builder) AddNull(col int) {
	c := &b.columns[col]
	n := len(b.rows)
	c.offsets[n+1] = int32(len(c.values))
	if c.nulls == 0 {
		// All rows are valid unless cleared here, both earlier and later ones.
		need := int(bitutil.BytesForBits(int64(len(c.offsets))))
		if cap(c.valid) < need {
			c.valid = make([]byte, need)
		}
		c.valid = c.valid[:need]
		for i := range c.valid {
			c.valid[i] = 0xff
		}
	}
	bitutil.ClearBit(c.valid, n)
	c.nulls++
}

// Commit ends the row with its record number and the line it begins on.
func (b *Builder) Commit(row, line int64) {
	if n := len(b.shifts); n == 0 || b.shifts[n-1].by != line-row {
		b.shifts = append(b.shifts, lineShift{len(b.rows), line - row})
	}
	b.rows = append(b.rows, row)
}

// Rollback forgets the values added since the last Commit.
func (b *Builder) Rollback() {
	n := len(b.rows)
	for i := range b.columns {
		c := &b.columns[i]
		end := int(c.offsets[n])
		if len(c.values) > end {
			b.size -= len(c.values) - end
			c.values = c.values[:end]
		}
		if c.nulls > 0 && !bitutil.BitIsSet(c.valid, n) {
			bitutil.SetBit(c.valid, n)
			c.nulls--
		}
	}
}

// Reject records a malformed record; raw is copied and cut at MaxRaw.
func (b *Builder) Reject(r Reject, raw []byte) {
	r.Raw = append([]byte(nil), raw[:min(len(raw), MaxRaw)]...)
	b.size += len(r.Raw)
	b.rejects = append(b.rejects, r)
}

// Batch makes a batch of the committed rows. order has the column to put at each
// place; a column may be named more than once. The batch owns the Builder
// afterwards.
func (b *Builder) Batch(source string, order []int) *Batch {
	batch := &Batch{Source: source, Rows: b.rows, Rejects: b.rejects, shifts: b.shifts, builder: b}
	batch.Columns = make([]*array.String, len(order))
	for i, c := range order {
		batch.Columns[i] = b.columns[c].array(len(b.rows))
	}
	return batch
}

func (c *column) array(n int) *array.String {
	offsets := arrow.Int32Traits.CastToBytes(c.offsets[:n+1])
	buffers := []*memory.Buffer{nil, memory.NewBufferBytes(offsets), memory.NewBufferBytes(c.values)}
	if c.nulls > 0 {
		buffers[0] = memory.NewBufferBytes(c.valid)
	}
	data := array.NewData(arrow.BinaryTypes.String, n, buffers, nil, c.nulls, 0)
	defer data.Release()
	return array.NewStringData(data)
}
