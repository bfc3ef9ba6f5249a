package ranges

import (
	"context"
	"errors"
	"runtime/debug"
	"slices"

	"github.com/leadetl/leadetl/internal/keyed"
	"github.com/leadetl/leadetl/internal/spill"
	"github.com/leadetl/leadetl/resolution/directory/imports"
	"github.com/leadetl/leadetl/transforms/orgtype"
)

// first6 is the first address after IPv4.
var first6 = number{0, 1 << 32}

// segments are flattened ranges as columns. They are in temporary files, because sections of
// a file are written one after another.
type segments struct {
	v4            *keyed.Spool[uint64] // start, then owner, 32 bits each
	v6High, v6Low *keyed.Spool[uint64]
	v6            *keyed.Spool[uint32] // owners

	owned int64 // segments with an owner
	// The last segment of IPv4.
	from  uint64
	owner uint32
}

func newSegments(scratch string) *segments {
	return &segments{
		v4:     keyed.NewSpool[uint64](scratch),
		v6High: keyed.NewSpool[uint64](scratch), v6Low: keyed.NewSpool[uint64](scratch),
		v6: keyed.NewSpool[uint32](scratch),
	}
}

// close frees disk and memory.
func (s *segments) close() error {
	return errors.Join(s.v4.Close(), s.v6High.Close(), s.v6Low.Close(), s.v6.Close())
}

// add adds the next segment.
func (s *segments) add(next segment) error {
	if next.owner != 0 {
		s.owned++
	}
	if next.from.less(first6) {
		return errors.Join(s.continue4(next.from.low), s.add4(next.from.low, next.owner))
	}
	return errors.Join(s.finish4(next.from), s.add6(next))
}

func (s *segments) add4(from uint64, owner uint32) error {
	s.from, s.owner = from, owner
	return s.v4.Add(from<<32 | uint64(owner))
}

func (s *segments) add6(next segment) error {
	return errors.Join(s.v6High.Add(next.from.high), s.v6Low.Add(next.from.low), s.v6.Add(next.owner))
}

// continue4 begins the last range of IPv4 again in each /16 that begins in it, and before an
// address.
func (s *segments) continue4(before uint64) (err error) {
	for from := s.from>>16<<16 + 1<<16; s.owner != 0 && from < before; from += 1 << 16 {
		err = errors.Join(err, s.add4(from, s.owner))
	}
	return err
}

// finish4 continues the last range of IPv4 up to a segment of IPv6. It has no effect after
// others.
func (s *segments) finish4(before number) error {
	if s.v6.Len() > 0 {
		return nil
	}
	err := s.continue4(first6.low)
	if s.owner == 0 || before == first6 {
		return err
	}
	return errors.Join(err, s.add6(segment{first6, s.owner}))
}

// finish ends the last range.
func (s *segments) finish() error { return s.finish4(number{}) }

// write flattens the ranges and writes the file. It returns the number of ranges with an
// owner.
func (t *table) write(ctx context.Context) (keys int64, err error) {
	s := newSegments(t.to.Scratch)
	defer func() { err = errors.Join(err, s.close()) }()
	flat := flattener{emit: s.add}
	if err := t.ranges.Each(ctx, spill.Sorted(compareRanges), flat.addAll); err != nil {
		return 0, err
	}
	if err := errors.Join(flat.finish(), s.finish()); err != nil {
		return 0, err
	}
	defer keyed.Guard(&err, debug.SetPanicOnFault(true)) // the segments and owners are mapped files
	w := keyed.NewColumnWriter(t.to, keyed.MappedPages)
	if err := errors.Join(s.write(w), t.writeOwners(w)); err != nil {
		return 0, err
	}
	return s.owned, w.Finish()
}

func (s *segments) write(w *keyed.ColumnWriter) error {
	v4, err := s.v4.Read()
	if err != nil {
		return err
	}
	first := 0
	keyed.PutEach(w, "v4_first", 1<<16+1, func(prefix int) uint32 {
		for first < len(v4) && v4[first]>>48 < uint64(prefix) {
			first++
		}
		return uint32(first)
	})
	keyed.PutEach(w, "v4_low", len(v4), func(i int) uint16 { return uint16(v4[i] >> 32) })
	keyed.PutEach(w, "v4", len(v4), func(i int) uint32 { return uint32(v4[i]) })
	high, errHigh := s.v6High.Read()
	low, errLow := s.v6Low.Read()
	v6, err := s.v6.Read()
	keyed.Column(w, "v6_high", high)
	keyed.Column(w, "v6_low", low)
	keyed.Column(w, "v6", v6)
	return errors.Join(errHigh, errLow, err)
}

func (t *table) writeOwners(w *keyed.ColumnWriter) error {
	owners, err := t.owners.Read()
	if err != nil {
		return err
	}
	cell := func(i, place int) []byte {
		cell, rest := imports.NextCell(owners.At(uint32(i)))
		for range place {
			cell, rest = imports.NextCell(rest)
		}
		return cell
	}
	orgTypes := slices.Clone(orgtype.Kinds)
	for _, w := range t.words.List() {
		orgTypes = append(orgTypes, w.Word)
	}
	keyed.PutEach(w, "org_type", owners.Len(), func(i int) uint8 {
		code := slices.Index(orgTypes, string(cell(i, 2)))
		if code < 0 { // one of too many words
			code = len(orgtype.Kinds)
		}
		return uint8(code)
	})
	keyed.PutEachText(w, "domain", owners.Len(), func(i int) []byte { return cell(i, 0) })
	keyed.PutEachText(w, "name", owners.Len(), func(i int) []byte { return cell(i, 1) })
	words := orgTypes[len(orgtype.Kinds):]
	keyed.PutEachText(w, "word", len(words), func(i int) []byte { return []byte(words[i]) })
	return nil
}
