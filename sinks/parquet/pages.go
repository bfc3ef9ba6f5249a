package parquet

import (
	"encoding/binary"
	"sync"
)

const (
	// pageBytes is where a page ends. The value that exceeds it is still in the
	// page, and mostly fits the spare capacity.
	pageBytes = 256 << 10
	pageSlack = 4 << 10
	// pageNulls ends a page that has few values but many nulls.
	pageNulls = 1 << 20
	// levelRoom is kept free before a page's values for the definition levels of
	// a page with only values or only nulls: a length, a run length and the
	// level.
	levelRoom = 4 + binary.MaxVarintLen32 + 1
)

// page is a data page (V1) under construction: PLAIN values, each behind its
// length as 32 little-endian bits, and which of them are there.
// Source: Apache Parquet format, "Plain" and "RLE / Bit-Packing Hybrid".
type page struct {
	data   []byte // levelRoom bytes, then the values
	n      int    // values and nulls
	nulls  int
	levels []byte // of a nested column
	valid  []byte // bitmap, kept from the first null or value that differs from those before
	plain  int    // bytes before compression, once data is what the file has
	full   int    // what the page took before it was packed, if that was before its row group ended
}

// held is how many bytes the page takes, or took until it was packed.
func (p *page) held() int {
	if p.full > 0 {
		return p.full
	}
	return len(p.data) + len(p.valid) + len(p.levels)
}

// pageLimit is where a page ends, whichever comes first.
type pageLimit struct {
	bytes  int // of values
	values int // nulls included
}

func (l pageLimit) reached(p *page) bool { return len(p.data) >= l.bytes || p.n >= l.values }

func (p *page) mixed() bool { return p.nulls > 0 && p.nulls < p.n }

// mark records a run of values or of nulls.
func (p *page) mark(count int, valid bool) {
	before := p.n
	p.n += count
	if !valid {
		p.nulls += count
	}
	if !p.mixed() {
		return
	}
	if before > 0 && len(p.valid) == 0 {
		p.setBits(0, before, !valid) // all earlier values were the opposite
	}
	p.setBits(before, p.n, valid)
}

// markRows records the rows of an empty page, given by the number of each value + 1, 0 for
// null. It returns the numbers of the values, in the memory of the rows.
func (p *page) markRows(rows []uint32) (numbers []uint32) {
	there := 0
	for at := 0; at < len(rows); at += 8 {
		var bits byte
		for i, row := range rows[at:min(at+8, len(rows))] {
			valid := byte(0)
			if row > 0 {
				valid = 1 // without a branch: nulls come at random
			}
			rows[there] = row - 1
			there += int(valid)
			bits |= valid << i
		}
		p.valid = append(p.valid, bits)
	}
	p.n, p.nulls = len(rows), len(rows)-there
	return rows[:there]
}

func (p *page) setBits(from, to int, valid bool) {
	for len(p.valid)*8 < to {
		p.valid = append(p.valid, 0)
	}
	if !valid {
		return
	}
	for i := from; i < to; i++ {
		p.valid[i/8] |= 1 << (i % 8)
	}
}

// encoded is the page's bytes before compression, in its own memory or in m.
func (p *page) encoded(nullable bool, m *pageMemory) []byte {
	if !nullable {
		return p.data[levelRoom:]
	}
	var room [levelRoom]byte
	levels := room[:4]
	if p.mixed() {
		groups := (p.n + 7) / 8
		scratch := append(m.scratch[:0], levels...)
		scratch = binary.AppendUvarint(scratch, uint64(groups)<<1|1)
		scratch = append(scratch, p.valid[:groups]...)
		binary.LittleEndian.PutUint32(scratch, uint32(len(scratch)-4))
		m.scratch = append(scratch, p.data[levelRoom:]...)
		return m.scratch
	}
	levels = binary.AppendUvarint(levels, uint64(p.n)<<1)
	level := byte(1)
	if p.nulls > 0 {
		level = 0
	}
	levels = append(levels, level)
	binary.LittleEndian.PutUint32(levels, uint32(len(levels)-4))
	start := levelRoom - len(levels)
	copy(p.data[start:], levels)
	return p.data[start:]
}

// PagePool lends memory to the writers of a dataset, so that each part reuses that of the
// previous one. It is safe for concurrent use.
type PagePool struct {
	pages    free[*page]
	columns  free[rowGroupMemory]
	encoding free[*pageMemory] // one a column that is being encoded
	// Growing pages start small and grow with their values. They are for many
	// open files, whose pages are rarely full. No memory is reused then.
	Growing bool
}

// free is memory of one kind that is unused.
type free[T any] struct {
	mu  sync.Mutex
	all []T
}

func (f *free[T]) take() (one T, there bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if n := len(f.all); n > 0 {
		one, f.all = f.all[n-1], f.all[:n-1]
		return one, true
	}
	return one, false
}

// keep keeps one more, unless there are enough.
func (f *free[T]) keep(one T, enough int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.all) < enough {
		f.all = append(f.all, one)
	}
}

const (
	// poolPages bounds the pages kept: a row group of full pages.
	poolPages = RowGroupBytes / pageBytes
	// poolMemory bounds the rest: the columns of the two widest parts.
	poolMemory = 64
)

// get returns an empty page for so many bytes.
func (p *PagePool) get(bytes int) *page {
	if p.Growing {
		return &page{data: make([]byte, levelRoom, 512)}
	}
	if one, there := p.pages.take(); there {
		return one
	}
	return &page{data: make([]byte, levelRoom, bytes+pageSlack)}
}

func (p *PagePool) put(used *page) {
	if p.Growing || cap(used.data) > 2*pageBytes {
		return
	}
	*used = page{data: used.data[:levelRoom], valid: used.valid[:0], levels: used.levels[:0]}
	p.pages.keep(used, poolPages)
}

func (p *PagePool) getPageMemory() *pageMemory {
	if m, there := p.encoding.take(); there {
		return m
	}
	return &pageMemory{}
}

// putPageMemory takes back the memory of a page, unless a value was so large that it would be
// kept for nothing.
func (p *PagePool) putPageMemory(m *pageMemory) {
	if !p.Growing && cap(m.scratch)+cap(m.packed) <= 8*pageBytes {
		p.encoding.keep(m, poolMemory)
	}
}
