package typed

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/apache/arrow/go/v17/arrow/memory"
	"github.com/apache/arrow/go/v17/parquet"
	"github.com/apache/arrow/go/v17/parquet/file"
	"github.com/apache/arrow/go/v17/parquet/schema"
)

// onePage is a chunk of one page.
type onePage struct {
	file.PageReader
	page file.Page
	next bool
}

func (p *onePage) Page() file.Page { return p.page }
func (p *onePage) Err() error      { return nil }
func (p *onePage) Next() bool {
	p.next = !p.next
	return p.next
}

// readPage reads the levels of a page of optional numbers, whose runs may end early.
func readPage(runs []byte, values int32) (levels []int16, err error) {
	data := append(binary.LittleEndian.AppendUint32(nil, uint32(len(runs))), runs...)
	page := file.NewDataPageV1(memory.NewBufferBytes(data), values, parquet.Encodings.Plain, parquet.Encodings.RLE, parquet.Encodings.RLE, int32(len(data)))
	column := schema.NewColumn(schema.NewInt64Node("n", parquet.Repetitions.Optional, -1), 1, 0)
	pages := &levelPages{PageReader: &onePage{page: page}, leaf: &Leaf{MaxDefinition: 1}}
	room := &sync.Pool{New: func() any { return memory.NewResizableBuffer(memory.DefaultAllocator) }}
	r := file.NewColumnReader(column, pages, memory.DefaultAllocator, room).(*file.Int64ColumnChunkReader)
	levels = make([]int16, values+1)
	n, _, err := r.ReadBatch(int64(len(levels)), make([]int64, len(levels)), levels, nil)
	if err == nil {
		err = r.Err()
	}
	return levels[:n], err
}

// TestPagesWithTooFewLevels: a page with fewer levels than it says is an error, not an endless loop.
func TestPagesWithTooFewLevels(t *testing.T) {
	for _, c := range []struct {
		what   string
		runs   []byte
		values int32
		want   int // levels; -1 is an error
	}{
		{"a run of nulls", []byte{3 << 1, 0}, 3, 3},
		{"two runs", []byte{2 << 1, 0, 1 << 1, 0}, 3, 3},
		{"eight levels in a byte", []byte{1<<1 | 1, 0}, 8, 8},
		{"a byte is longer than the levels", []byte{1<<1 | 1, 0}, 3, 3},
		{"a run is longer than the levels", []byte{9 << 1, 0}, 3, 3},
		{"no levels", nil, 0, 0},
		{"no run", nil, 3, -1},
		{"a run too short", []byte{2 << 1, 0}, 3, -1},
		{"a run of none", []byte{0, 0, 3 << 1, 0}, 3, -1},
		{"a run without its level", []byte{3 << 1}, 3, -1},
		{"a byte too few", []byte{2<<1 | 1, 0}, 9, -1},
		{"a length without end", slices.Repeat([]byte{0x80}, 11), 3, -1},
	} {
		levels, err := readPage(c.runs, c.values)
		if (err != nil) != (c.want < 0) || err == nil && len(levels) != c.want {
			t.Errorf("%s: %d levels, %v; want %d", c.what, len(levels), err, c.want)
		}
	}
}

// TestRandomLevels: what is taken for a page with all levels has them for the implementation, too. It
// would never end otherwise.
func TestRandomLevels(t *testing.T) {
	random, whole := rand.New(rand.NewPCG(1, 1)), 0
	for range 200_000 {
		runs := make([]byte, random.IntN(7))
		for i := range runs {
			runs[i] = byte(random.IntN([]int{4, 20, 256}[random.IntN(3)])) &^ byte(random.IntN(2)) // more nulls than values, of which there are none
		}
		values := int32(random.IntN(40))
		levels, err := readPage(runs, values)
		if err == nil && len(levels) != int(values) {
			t.Fatalf("% x: %d of %d levels", runs, len(levels), values)
		}
		if err == nil {
			whole++
		}
	}
	if whole < 1000 {
		t.Errorf("%d pages alone had all levels", whole)
	}
}

// TestFlippedBits: reading a file ends, whatever bit is wrong.
func TestFlippedBits(t *testing.T) {
	const rows = 44
	good, _ := written(t, 2, rows)
	random := rand.New(rand.NewPCG(2, 9))
	for n := range 500 {
		at, bit := random.IntN(len(good)), random.IntN(8)
		if n == 0 { // the encoding of the repetition levels of a second page
			at, bit = 6800, 3
		}
		data := slices.Clone(good)
		data[at] ^= 1 << bit
		if err := readAll(data, 2*rows); n == 0 && err == nil {
			t.Error("an encoding that levels cannot have is taken")
		}
	}
}
