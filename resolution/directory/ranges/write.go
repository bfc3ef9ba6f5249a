package ranges

import (
	"errors"
	"os"
	"slices"

	"github.com/leadetl/leadetl/internal/atomicfile"
	"github.com/leadetl/leadetl/internal/columnfile"
)

// write flattens the ranges and writes the file. It returns the number of ranges with an
// owner.
func (t *table) write(path string) (keys int64, err error) {
	f, err := os.Create(atomicfile.TempName(path))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	w := columnfile.NewWriter(f)
	t.index = nil
	segments := flatten(t.ranges)
	t.ranges = nil
	for _, s := range segments {
		if s.owner != 0 {
			keys++
		}
	}
	first6 := number{0, 1 << 32} // the first address after IPv4
	n, _ := slices.BinarySearchFunc(segments, first6, func(s segment, a number) int { return compare(s.from, a) })
	writeV4(w, segments[:n])
	v6 := segments[n:]
	if n > 0 && segments[n-1].owner != 0 && (len(v6) == 0 || v6[0].from != first6) {
		v6 = append([]segment{{first6, segments[n-1].owner}}, v6...) // its range continues after IPv4
	}
	writeV6(w, v6)
	t.writeOwners(w)
	return keys, w.Finish()
}

func writeV4(w *columnfile.Writer, segments []segment) {
	columnfile.Begin[uint32](w, "v4_first")
	i := 0
	for prefix := range uint64(1<<16 + 1) {
		for i < len(segments) && segments[i].from.low>>16 < prefix {
			i++
		}
		columnfile.Put(w, uint32(i))
	}
	columnfile.Begin[uint64](w, "v4")
	for _, s := range segments {
		columnfile.Put(w, s.from.low<<32|uint64(s.owner))
	}
}

func writeV6(w *columnfile.Writer, segments []segment) {
	columnfile.Begin[uint64](w, "v6_high")
	for _, s := range segments {
		columnfile.Put(w, s.from.high)
	}
	columnfile.Begin[uint64](w, "v6_low")
	for _, s := range segments {
		columnfile.Put(w, s.from.low)
	}
	columnfile.Begin[uint32](w, "v6")
	for _, s := range segments {
		columnfile.Put(w, s.owner)
	}
}

func (t *table) writeOwners(w *columnfile.Writer) {
	columnfile.Begin[uint8](w, "org_type")
	domains, names := columnfile.Texts{Offsets: []uint64{0}}, columnfile.Texts{Offsets: []uint64{0}}
	for _, o := range t.owners {
		columnfile.Put(w, uint8(slices.Index(orgTypes, o.orgType)))
		domains, names = domains.With([]byte(o.domain)), names.With([]byte(o.name))
	}
	columnfile.PutTexts(w, "domain", domains)
	columnfile.PutTexts(w, "name", names)
}
