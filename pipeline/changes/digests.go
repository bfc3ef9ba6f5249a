package changes

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/bits"
	"runtime"
	"slices"
	"sync"

	"github.com/sourcegraph/conc/pool"
	"github.com/zeebo/xxh3"

	"github.com/leadetl/leadetl/internal/progress"
	"github.com/leadetl/leadetl/internal/spill"
	"github.com/leadetl/leadetl/sinks/typed"
)

// digest is a checksum of 128 bits. Rows with the same digest count as equal.
type digest = xxh3.Uint128

// entry is a row of a dataset: what it is found by, what is compared, and where it is.
type entry struct {
	key    digest
	values digest
	more   uint64 // digest of the values that do not tell the rows of a key apart
	place  uint64 // row of its dataset, what it is found by, and which dataset in the last bit
}

// The last bit of a place.
const (
	oldSide = iota
	newSide
)

// foundBy is what a row is found by.
type foundBy uint8

const (
	nothing foundBy = iota
	aColumn
	identifier // as it was written
)

func placeIn(row int64, by foundBy, side int) uint64 {
	return uint64(row)<<3 | uint64(by)<<1 | uint64(side)
}

func (e entry) row() int64 { return int64(e.place >> 3) }

func (e entry) foundBy() foundBy { return foundBy(e.place >> 1 & 3) }

func (e entry) side() int { return int(e.place & 1) }

// prefix keeps rows of one content in the order of the rows, however many they are: those of
// both datasets alternate.
func (e entry) prefix() spill.Prefix { return spill.Prefix{High: e.values.Hi, Low: e.place} }

func compareEntries(a, b entry) int {
	return cmp.Or(cmp.Compare(a.values.Hi, b.values.Hi), cmp.Compare(a.place, b.place))
}

// unmatched is a row whose content the other dataset does not have, or not as often.
type unmatched struct {
	entry
	nth int32 // of the rows with this content, from 1
}

// prefix keeps rows with one key in the order of the rows.
func (u unmatched) prefix() spill.Prefix { return spill.Prefix{High: u.key.Hi, Low: u.place} }

func compareUnmatched(a, b unmatched) int {
	return cmp.Or(cmp.Compare(a.key.Hi, b.key.Hi), cmp.Compare(a.place, b.place))
}

// keyDigest is the digest of what a row is found by.
func keyDigest(value []byte) digest { return xxh3.Hash128(value) }

// digesting reads datasets into entries.
type digesting struct {
	by         int
	identifier int // place of the column that rows without by are found by; -1 without one
	compared   []int
	more       []int
	key        func(value []byte) digest
	mu         sync.Mutex
	to         *spill.Sorter[entry]
}

// workers is how many row groups are read at a time.
func workers() int { return min(runtime.GOMAXPROCS(0), 8) }

// read adds an entry for each row of the sides but the suppressed ones.
func (d *digesting) read(ctx context.Context, sides []*side) error {
	work := pool.New().WithContext(ctx).WithCancelOnError().WithFirstError().WithMaxGoroutines(workers())
	watched := progress.Of(ctx)
	for number, s := range sides {
		watched.Expect(s.rows)
		for i := range s.groups {
			work.Go(func(ctx context.Context) error {
				if err := ctx.Err(); err != nil {
					return err
				}
				rows, err := d.group(s, &s.groups[i])
				if err != nil {
					return err
				}
				watched.Done(s.groups[i].rows)
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
		e := entry{key: rows.keys[i], values: rows.values[i], more: rows.more[i].Hi, place: placeIn(from+int64(i), rows.found[i], side)}
		if rows.found[i] == nothing {
			e.key = keyless(e.values)
		}
		if err := d.to.Add(e); err != nil {
			return fmt.Errorf("keep the digests of rows: %w; each row needs %d bytes there", err, 48)
		}
	}
	return nil
}

// keyless is the key of a row that has nothing to find it by: no other row has it.
func keyless(values digest) digest {
	return mix(digest{Hi: 0x6b65796c657373, Lo: 0x72656a6563746564}, values)
}

// identified is the key of a row that is found by its identifier as it was written.
func identified(value []byte) digest { return xxh3.Hash128Seed(value, 0x6964656e74696679) }

// digested are the rows of a row group.
type digested struct {
	keys, values, more []digest
	found              []foundBy
	left               []bool // suppressed
}

// group digests a row group, a column after the other.
func (d *digesting) group(s *side, g *rowGroup) (_ *digested, err error) {
	defer typed.Contain(&err)
	r := &digested{keys: make([]digest, g.rows), values: make([]digest, g.rows), more: make([]digest, g.rows), found: make([]foundBy, g.rows), left: make([]bool, g.rows)}
	if err := errors.Join(r.mixColumns(s, g, d.compared, r.values), r.mixColumns(s, g, d.more, r.more)); err != nil {
		return nil, err
	}
	if err := r.find(aColumn, s, g, d.by, d.key); err != nil {
		return nil, err
	}
	if d.identifier >= 0 && slices.Contains(r.found, nothing) {
		if err := r.find(identifier, s, g, d.identifier, identified); err != nil {
			return nil, err
		}
	}
	return r, g.column("outcome", func(row int, value []byte) { r.left[row] = string(value) == "suppressed" })
}

// find takes the keys of rows that have none yet from a column. White space is no key.
func (r *digested) find(by foundBy, s *side, g *rowGroup, place int, key func([]byte) digest) error {
	return g.column(s.shape.columns[place].Name, func(row int, value []byte) {
		if r.found[row] == nothing && len(bytes.TrimSpace(value)) > 0 {
			r.keys[row], r.found[row] = key(value), by
		}
	})
}

// mixColumns mixes the values of columns into the digests of the rows.
func (r *digested) mixColumns(s *side, g *rowGroup, places []int, into []digest) error {
	for _, place := range places {
		name := s.shape.columns[place].Name
		if value, inPath := g.file.InPath[name]; inPath {
			h := hashOf(seedOf(name), bytesOf(value))
			for i := range into {
				into[i] = mix(into[i], h)
			}
			continue
		}
		for _, leaf := range g.file.LeavesOf(name) {
			seed := seedOf(g.file.Leaves[leaf].Path)
			err := g.each(leaf, func(row int, at levels, value []byte) {
				h := hashOf(seed, value)
				if at.nested {
					h.Hi += uint64(at.definition)<<16 | uint64(at.repetition)
				}
				into[row] = mix(into[row], h)
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
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

// each calls do for every value of a leaf column of a row group; nil is null. The bytes of a
// number are those of its bits.
func (g *rowGroup) each(leaf int, do func(row int, at levels, value []byte)) error {
	chunk, err := g.file.Chunk(g.index, leaf)
	if err != nil {
		return err
	}
	at, row := levels{nested: g.file.Leaves[leaf].MaxRepetition > 0}, -1
	var number [8]byte
	for v := new(typed.Values); ; v.Reset() {
		n, err := chunk.Read(v, typed.BatchRows)
		if err != nil {
			return err
		}
		if n == 0 {
			break
		}
		next := 0
		for i := range n {
			if at.nested {
				at.definition, at.repetition = v.Definition[i], v.Repetition[i]
			}
			if at.repetition == 0 {
				row++
			}
			if v.IsNull(i) {
				do(row, at, nil)
				continue
			}
			do(row, at, v.Bytes(next, &number))
			next++
		}
	}
	if int64(row+1) != g.rows {
		return &typed.Error{File: g.file.Name, Group: g.index + 1, Column: g.file.Leaves[leaf].Path, Err: fmt.Errorf("it has %d rows; the row group has %d", row+1, g.rows)}
	}
	return nil
}

// column calls do for every value of a column without lists.
func (g *rowGroup) column(name string, do func(row int, value []byte)) error {
	if value, inPath := g.file.InPath[name]; inPath {
		for row := range g.rows {
			do(int(row), bytesOf(value))
		}
		return nil
	}
	return g.each(g.file.LeavesOf(name)[0], func(row int, _ levels, value []byte) { do(row, value) })
}

// bytesOf is a value in the path of a file; nil is null.
func bytesOf(value *string) []byte {
	if value == nil {
		return nil
	}
	return []byte(*value)
}
