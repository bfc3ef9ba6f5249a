package suppression

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"

	"github.com/leadetl/leadetl/internal/digestset"
)

// Encode writes the digests, for each algorithm: their number, and then they in
// order, as big-endian numbers of 64 bits.
func (s *Set) Encode(w io.Writer) error {
	b := bufio.NewWriter(w) // keeps the first error for Flush
	add := func(n uint64) { b.Write(binary.BigEndian.AppendUint64(b.AvailableBuffer(), n)) }
	for _, set := range s.digests {
		add(uint64(set.Len()))
		for d := range set.All() {
			add(d)
		}
	}
	return b.Flush()
}

// errEncoded says that bytes do not encode a Set.
var errEncoded = errors.New("the kept suppression list is damaged; remove it to begin again")

// Added returns what s holds more than the Set that was encoded; nil if that
// holds anything that s lacks.
func (s *Set) Added(encoded io.Reader) (*Set, error) {
	added := &Set{rules: s.rules, given: s.given, domains: s.domains}
	in := decoder{in: bufio.NewReader(encoded)}
	for i, set := range s.digests {
		more, hasAll := in.missing(set)
		if in.err != nil {
			return nil, in.err
		}
		if !hasAll {
			return nil, nil
		}
		added.digests[i] = more
	}
	switch _, err := in.in.ReadByte(); {
	case err == nil:
		return nil, errEncoded
	case !errors.Is(err, io.EOF):
		return nil, err
	}
	added.fingerprint = fingerprintOf(added.digests)
	return added, nil
}

// decoder reads numbers. After an error they are 0.
type decoder struct {
	in  *bufio.Reader
	raw [8]byte
	err error
}

// missing returns the digests of a set that are not among the next encoded ones, and
// whether the set has all of those. Both are in order.
func (d *decoder) missing(set *digestset.Set) (more *digestset.Set, hasAll bool) {
	var b digestset.Builder
	left, before := d.number(), uint64(0)
	if left > 0 {
		before = d.number()
	}
	for digest := range set.All() {
		switch {
		case left == 0 || digest < before:
			b.Add(digest)
		case digest > before:
			return nil, false
		default:
			if left--; left > 0 {
				before = d.number()
			}
		}
	}
	return b.Set(), left == 0
}

func (d *decoder) number() uint64 {
	if d.err != nil {
		return 0
	}
	_, d.err = io.ReadFull(d.in, d.raw[:])
	if errors.Is(d.err, io.EOF) || errors.Is(d.err, io.ErrUnexpectedEOF) {
		d.err = errEncoded
	}
	if d.err != nil {
		return 0
	}
	return binary.BigEndian.Uint64(d.raw[:])
}
