package sources

import (
	"cmp"
	"container/heap"
	"context"
	"io"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/leadetl/leadetl/internal/rows"
)

// MaxSample is the maximum of Options.Sample: the lines are held in memory.
const MaxSample = 100_000

// sample chooses some of the lines of all files, including malformed ones.
//
// Each line has a pseudorandom number that depends only on its position. The
// lines with the smallest numbers are the sample. So the same input gives the
// same sample, the lines are spread over the whole input, and most of them stay
// in the sample when lines are added.
type sample struct {
	size   int
	chosen sampled // a heap while lines are read, sorted afterwards
	isRead bool

	total, handed atomic.Int64 // lines of the sample, and those already returned
}

// sampledLine is a row or a malformed line.
type sampledLine struct {
	random    uint64
	file      int // index of its input
	row, line int64
	cells     []string
	null      []bool
	reject    *Reject // nil for a row
}

// sampled is a heap with the largest random number on top.
type sampled []sampledLine

func (s sampled) Len() int           { return len(s) }
func (s sampled) Less(i, j int) bool { return s[i].random > s[j].random }
func (s sampled) Swap(i, j int)      { s[i], s[j] = s[j], s[i] }
func (s *sampled) Push(line any)     { *s = append(*s, line.(sampledLine)) }
func (s *sampled) Pop() any {
	last := (*s)[len(*s)-1]
	*s = (*s)[:len(*s)-1]
	return last
}

// nextSampled is Next for a sample: it reads all files before the first batch.
func (r *Reader) nextSampled(ctx context.Context, maxRows int) (*Batch, error) {
	s := r.sample
	for !s.isRead {
		b, err := r.batch(ctx, 0)
		if err != nil && err != io.EOF {
			return nil, err
		}
		if s.isRead = err == io.EOF; s.isRead {
			slices.SortFunc(s.chosen, func(a, b sampledLine) int { return cmp.Or(cmp.Compare(a.file, b.file), cmp.Compare(a.row, b.row)) })
			s.total.Store(int64(len(s.chosen)))
			break
		}
		s.add(b, r.next-1)
		b.Release()
	}
	if maxRows <= 0 || maxRows > r.maxRows {
		maxRows = r.maxRows
	}
	return s.batch(r.inputs, len(r.columns), maxRows)
}

// add offers the lines of a batch to the sample.
func (s *sample) add(b *Batch, file int) {
	for i := range b.Len() {
		s.offer(file, b.Rows[i], func(l *sampledLine) {
			l.line = b.Line(i)
			for _, c := range b.Columns {
				l.cells = append(l.cells, strings.Clone(c.Value(i)))
				l.null = append(l.null, c.IsNull(i))
			}
		})
	}
	for _, reject := range b.Rejects {
		s.offer(file, reject.Row, func(l *sampledLine) { l.reject = &reject })
	}
}

// offer keeps a line if its random number is small enough.
func (s *sample) offer(file int, row int64, fill func(*sampledLine)) {
	random := mix(uint64(file)<<48 ^ uint64(row))
	full := len(s.chosen) == s.size
	if full && random >= s.chosen[0].random {
		return
	}
	l := sampledLine{random: random, file: file, row: row}
	fill(&l)
	if full {
		s.chosen[0] = l
		heap.Fix(&s.chosen, 0)
		return
	}
	heap.Push(&s.chosen, l)
}

// mix makes a pseudorandom number from a position: the finalizer of SplitMix64.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// batch returns the next lines, all from one file.
func (s *sample) batch(inputs []*input, columns, maxRows int) (*Batch, error) {
	if len(s.chosen) == 0 {
		return nil, io.EOF
	}
	file := s.chosen[0].file
	b := rows.NewBuilder(columns, maxRows)
	for len(s.chosen) > 0 && s.chosen[0].file == file && b.Len() < maxRows && !b.Full() {
		l := s.chosen[0]
		s.chosen = s.chosen[1:]
		s.handed.Add(1)
		if l.reject != nil {
			b.Reject(*l.reject, l.reject.Raw)
			continue
		}
		for i, cell := range l.cells {
			if l.null[i] {
				b.AddNull(i)
			} else {
				b.SetSlot(i, append(b.Slot(i), cell...))
			}
		}
		b.Commit(l.row, l.line)
	}
	order := make([]int, columns)
	for i := range order {
		order[i] = i
	}
	return b.Batch(inputs[file].URI, order), nil
}

// share returns the part of total that corresponds to the lines returned so
// far.
func (s *sample) share(total int64) int64 {
	if all := s.total.Load(); all > 0 {
		return int64(float64(total) * float64(s.handed.Load()) / float64(all))
	}
	return 0
}
