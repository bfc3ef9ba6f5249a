package changes

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"runtime"
	"sync"

	"github.com/apache/arrow/go/v17/parquet"
	"github.com/apache/arrow/go/v17/parquet/file"
	"github.com/sourcegraph/conc/pool"
	"github.com/zeebo/xxh3"

	"github.com/leadetl/leadetl/internal/spill"
)

// digest is a checksum of 128 bits. Rows with the same digest count as equal.
type digest = xxh3.Uint128

// entry is a row of a dataset: what it is found by, what is compared, and where it is.
type entry struct {
	key, values digest
	place       uint64 // row of its dataset, and which dataset in the last two bits
}

// The last two bits of a place.
const (
	oldSide = iota
	newSide
)

func (e entry) row() int64 { return int64(e.place >> 2) }

func (e entry) side() int { return int(e.place & 3) }

// prefix keeps rows with one key in the order of the rows, however many they are: those of
// both datasets alternate.
func (e entry) prefix() spill.Prefix { return spill.Prefix{High: e.key.Hi, Low: e.place} }

func compareEntries(a, b entry) int {
	return cmp.Or(cmp.Compare(a.key.Hi, b.key.Hi), cmp.Compare(a.place, b.place))
}

// keyDigest is the digest of what a row is found by.
func keyDigest(value []byte) digest { return xxh3.Hash128(value) }

// digesting reads datasets into entries.
type digesting struct {
	by       int
	compared []int
	key      func(value []byte) digest
	mu       sync.Mutex
	to       *spill.Sorter[entry]
}

// workers is how many row groups are read at a time.
func workers() int { return min(runtime.GOMAXPROCS(0), 8) }

// read adds an entry for each row of the sides but the suppressed ones.
func (d *digesting) read(ctx context.Context, sides []*side) error {
	work := pool.New().WithContext(ctx).WithCancelOnError().WithFirstError().WithMaxGoroutines(workers())
	for number, s := range sides {
		for i := range s.groups {
			work.Go(func(ctx context.Context) error {
				if err := ctx.Err(); err != nil {
					return err
				}
				rows, err := d.group(s, &s.groups[i])
				if err != nil {
					return err
				}
				return d.add(rows, s.groups[i].from, number)
			})
		}
	}
	return work.Wait()
}

// add adds the rows of a row group, of which from is the first.
func (d *digesting) add(rows *digested, from int64, side int) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range rows.values {
		if rows.left[i] {
			continue
		}
		e := entry{key: rows.keys[i], values: rows.values[i], place: uint64(from+int64(i))<<2 | uint64(side)}
		if !rows.keyed[i] {
			e.key = keyless(e.values)
		}
		if err := d.to.Add(e); err != nil {
			return fmt.Errorf("keep the digests of rows: %w; each row needs %d bytes there", err, 40)
		}
	}
	return nil
}

// keyless is what a row without a key is found by: its values.
func keyless(values digest) digest {
	return mix(digest{Hi: 0x6b65796c657373, Lo: 0x72656a6563746564}, values)
}

// digested are the rows of a row group.
type digested struct {
	keys, values []digest
	keyed        []bool
	left         []bool // suppressed
}

// group digests a row group, a column after the other.
func (d *digesting) group(s *side, g *rowGroup) (_ *digested, err error) {
	defer contain(g, &err)
	r := &digested{keys: make([]digest, g.rows), values: make([]digest, g.rows), keyed: make([]bool, g.rows), left: make([]bool, g.rows)}
	for _, place := range d.compared {
		name := s.shape.columns[place].Name
		if name == s.partition {
			r.mixAll(hashOf(seedOf(name), g.value))
			continue
		}
		for _, leaf := range g.file.leaves[name] {
			if err := g.each(leaf, r.mixing(leaf.seed)); err != nil {
				return nil, err
			}
		}
	}
	if by := s.shape.columns[d.by].Name; by == s.partition {
		for i := range r.keys {
			if r.keyed[i] = g.value != nil; r.keyed[i] {
				r.keys[i] = d.key(g.value)
			}
		}
	} else if err := g.each(g.file.leaves[by][0], func(row int, _ levels, value []byte) {
		if r.keyed[row] = value != nil; value != nil {
			r.keys[row] = d.key(value)
		}
	}); err != nil {
		return nil, err
	}
	return r, g.each(g.file.leaves["outcome"][0], func(row int, _ levels, value []byte) { r.left[row] = string(value) == "suppressed" })
}

// mixing returns what mixes the values of a leaf column into the digests of the rows.
func (r *digested) mixing(seed uint64) func(row int, at levels, value []byte) {
	return func(row int, at levels, value []byte) {
		h := hashOf(seed, value)
		if at.nested {
			h.Hi += uint64(at.definition)<<16 | uint64(at.repetition)
		}
		r.values[row] = mix(r.values[row], h)
	}
}

func (r *digested) mixAll(h digest) {
	for i := range r.values {
		r.values[i] = mix(r.values[i], h)
	}
}

func seedOf(column string) uint64 { return xxh3.HashString(column) }

// hashOf is the digest of a value; nil is null.
func hashOf(seed uint64, value []byte) digest {
	if value == nil {
		return digest{Hi: bits.Reverse64(seed), Lo: ^seed}
	}
	return xxh3.Hash128Seed(value, seed)
}

// mix puts the digest of another value into that of a row. Its constants are the primes of
// XXH64.
func mix(sum, h digest) digest {
	return digest{
		Hi: bits.RotateLeft64(sum.Hi^h.Hi, 27)*0x9E3779B185EBCA87 + 1,
		Lo: bits.RotateLeft64(sum.Lo^h.Lo, 31)*0xC2B2AE3D27D4EB4F + 1,
	}
}

// levels say where in a list a value is.
type levels struct {
	definition, repetition int16
	nested                 bool
}

// maxBatch is how many values and nulls are read at a time.
const maxBatch = 8192

// each calls do for every value of a leaf column of a row group; nil is null. The bytes of a
// number are those of its bits.
func (g *rowGroup) each(leaf leafColumn, do func(row int, at levels, value []byte)) error {
	column, err := g.file.reader.RowGroup(g.index).Column(leaf.index)
	if err != nil {
		return err
	}
	number := make([]byte, 8)
	bitsOf := func(n uint64) []byte { binary.LittleEndian.PutUint64(number, n); return number }
	e := eacher{leaf: leaf, do: do, row: -1, batch: min(g.rows, maxBatch)}
	switch c := column.(type) {
	case *file.ByteArrayColumnChunkReader:
		err = eachOf(&e, c, func(v parquet.ByteArray) []byte {
			if v == nil {
				return []byte{}
			}
			return v
		})
	case *file.Int64ColumnChunkReader:
		err = eachOf(&e, c, func(v int64) []byte { return bitsOf(uint64(v)) })
	case *file.Int32ColumnChunkReader:
		err = eachOf(&e, c, func(v int32) []byte { return bitsOf(uint64(v)) })
	case *file.Float64ColumnChunkReader:
		err = eachOf(&e, c, func(v float64) []byte { return bitsOf(math.Float64bits(v)) })
	case *file.BooleanColumnChunkReader:
		err = eachOf(&e, c, func(v bool) []byte {
			if v {
				return bitsOf(1)
			}
			return bitsOf(0)
		})
	default:
		return fmt.Errorf("values of type %s, which no dataset has", column.Type())
	}
	if err == nil && int64(e.row+1) != g.rows {
		err = fmt.Errorf("%s has a column of %d rows; the row group has %d", g.file.name, e.row+1, g.rows)
	}
	return err
}

// eacher is one call of each.
type eacher struct {
	leaf  leafColumn
	do    func(row int, at levels, value []byte)
	row   int
	batch int64 // values and nulls that are read at a time
}

// chunkReader reads the values of a column chunk.
type chunkReader[T any] interface {
	ReadBatch(batch int64, values []T, definition, repetition []int16) (levels int64, n int, err error)
	HasNext() bool
	Err() error
}

// eachOf reads the values of a column chunk.
func eachOf[T any](e *eacher, from chunkReader[T], bytes func(T) []byte) error {
	values := make([]T, e.batch)
	var definition, repetition []int16
	if e.leaf.definition > 0 {
		definition = make([]int16, e.batch)
	}
	if e.leaf.repetition > 0 {
		repetition = make([]int16, e.batch)
	}
	at := levels{nested: e.leaf.repetition > 0}
	for from.HasNext() {
		n, _, err := from.ReadBatch(e.batch, values, definition, repetition)
		if err != nil {
			return err
		}
		if n == 0 {
			break
		}
		next := 0
		for i := range int(n) {
			if at.nested {
				at.definition, at.repetition = definition[i], repetition[i]
			}
			if at.repetition == 0 {
				e.row++
			}
			if definition != nil && definition[i] < e.leaf.definition {
				e.do(e.row, at, nil)
				continue
			}
			e.do(e.row, at, bytes(values[next]))
			next++
		}
	}
	return from.Err()
}
