// Package ranges keeps the IP ranges of a directory and their organizations.
//
// An import flattens ranges into sorted starts, each with the owner of the addresses up to
// the next start. Those of IPv4 are by the first 16 bits of the address. A range of several
// /16 has a start in each, so a look-up searches only the few starts of one, 2 bytes each.
package ranges

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"runtime/debug"
	"slices"
	"sort"

	"github.com/leadetl/leadetl/internal/disk"
	"github.com/leadetl/leadetl/internal/keyed"
	"github.com/leadetl/leadetl/transforms/orgtype"
)

// File has the ranges of an import. It is safe from many goroutines.
type File struct {
	file *keyed.Columns

	v4First keyed.Checked[uint32] // by /16: its first start in v4Low; one more at the end
	v4Low   keyed.Checked[uint16] // the last 16 bits of the starts
	v4      keyed.Checked[uint32] // owners
	v6High  keyed.Checked[uint64] // of the starts
	v6Low   keyed.Checked[uint64]
	v6      keyed.Checked[uint32] // owners

	// Owners have numbers from 1; 0 means none.
	orgTypes keyed.Checked[uint8] // codes in words
	words    []string             // orgtype.Kinds, then the words that are none
	domains  keyed.CheckedTexts
	names    keyed.CheckedTexts
}

// Open opens a file of Import.
func Open(in disk.Folder, name string) (*File, error) {
	c, err := keyed.OpenColumns(in, name)
	if err != nil {
		return nil, err
	}
	r := keyed.ColumnReader{Columns: c}
	f := &File{
		file:     c,
		v4First:  keyed.ReadChecked[uint32](&r, "v4_first", 1<<16+1),
		v4Low:    keyed.ReadChecked[uint16](&r, "v4_low", -1),
		v6High:   keyed.ReadChecked[uint64](&r, "v6_high", -1),
		orgTypes: keyed.ReadChecked[uint8](&r, "org_type", -1),
	}
	f.v4 = keyed.ReadChecked[uint32](&r, "v4", f.v4Low.Len())
	f.v6Low = keyed.ReadChecked[uint64](&r, "v6_low", f.v6High.Len())
	f.v6 = keyed.ReadChecked[uint32](&r, "v6", f.v6High.Len())
	f.domains = keyed.ReadCheckedTexts(&r, "domain", f.orgTypes.Len())
	f.names = keyed.ReadCheckedTexts(&r, "name", f.orgTypes.Len())
	err = r.Err
	if err == nil {
		err = f.readWords(&r)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", in.Path(name), err), c.Close())
	}
	return f, nil
}

// readWords reads the words that are no kind.
func (f *File) readWords(r *keyed.ColumnReader) (err error) {
	defer keyed.Guard(&err, debug.SetPanicOnFault(true))
	offsets := keyed.ReadChecked[uint64](r, "word_offsets", -1)
	n := offsets.Len() - 1
	words := keyed.ReadCheckedTexts(r, "word", n)
	if r.Err != nil {
		return r.Err
	}
	f.words = slices.Clone(orgtype.Kinds)
	for i := range n {
		f.words = append(f.words, string(words.At(uint32(i))))
	}
	return nil
}

// Close closes the file.
func (f *File) Close() error { return f.file.Close() }

// Networks is the number of flattened ranges with an owner.
func (f *File) Networks() (n int64, err error) {
	defer keyed.Guard(&err, debug.SetPanicOnFault(true))
	before := uint32(0)
	for i := range uint64(f.v4.Len()) {
		owner := f.v4.At(i)
		if owner != 0 && owner != before { // a range has a start in each of its /16
			n++
		}
		before = owner
	}
	for i := range uint64(f.v6.Len()) {
		owner := f.v6.At(i)
		// A range over the end of IPv4 has a start after it too. Neighbours differ, so no
		// other one begins there with the same owner.
		continued := i == 0 && owner == before && f.start6(0) == first6
		if owner != 0 && !continued {
			n++
		}
	}
	return n, nil
}

// start6 is a start of IPv6.
func (f *File) start6(i uint64) number { return number{f.v6High.At(i), f.v6Low.At(i)} }

func (f *File) owner6(a number) uint32 {
	n := sort.Search(f.v6.Len(), func(i int) bool { return a.less(f.start6(uint64(i))) })
	if n == 0 {
		return 0
	}
	return f.v6.At(uint64(n - 1))
}

// number is an IPv6 address. If ranges of both kinds are compared, IPv4 addresses are the
// numbers below 2^32.
type number struct{ high, low uint64 }

func (a number) less(b number) bool { return a.high < b.high || a.high == b.high && a.low < b.low }

func (a number) next() (b number, ok bool) {
	b = number{a.high, a.low + 1}
	if b.low == 0 {
		b.high++
	}
	return b, b != number{}
}

func (a number) minus(b number) number {
	d := number{a.high - b.high, a.low - b.low}
	if a.low < b.low {
		d.high--
	}
	return d
}

func numberOf(a netip.Addr) number {
	raw := a.As16()
	n := number{be64(raw[:8]), be64(raw[8:])}
	if a.Is4() {
		n = number{0, n.low & (1<<32 - 1)}
	}
	return n
}

func be64(b []byte) (n uint64) {
	for _, c := range b {
		n = n<<8 | uint64(c)
	}
	return n
}

// CheckAll checks the checksums that were not checked yet.
func (f *File) CheckAll() error { return f.file.CheckAll() }

// Verify checks the checksums, and that the columns match each other. Its keys are the networks;
// the file does not keep the rows.
func (f *File) Verify(context.Context) (keys, rows int64, err error) {
	if err := f.file.Verify(); err != nil {
		return 0, 0, err
	}
	if err := f.verify(); err != nil {
		return 0, 0, err
	}
	keys, err = f.Networks()
	return keys, -1, err
}

func (f *File) verify() (err error) {
	defer keyed.Guard(&err, debug.SetPanicOnFault(true))
	damaged := func(what string, i uint64) error {
		return fmt.Errorf("%w: %s %d is out of place", keyed.ErrDamaged, what, i)
	}
	owners := uint32(f.orgTypes.Len())
	if f.v4First.At(0) != 0 || int(f.v4First.At(1<<16)) != f.v4.Len() {
		return damaged("IPv4 table entry", 0)
	}
	for prefix := range uint64(1 << 16) {
		first, end := uint64(f.v4First.At(prefix)), uint64(f.v4First.At(prefix+1))
		if first > end || end > uint64(f.v4.Len()) {
			return damaged("IPv4 table entry", prefix)
		}
		for i := first; i < end; i++ {
			if i > first && f.v4Low.At(i-1) >= f.v4Low.At(i) || f.v4.At(i) > owners {
				return damaged("IPv4 range", i)
			}
		}
	}
	for i := range uint64(f.v6.Len()) {
		if i > 0 && !f.start6(i-1).less(f.start6(i)) || f.v6.At(i) > owners {
			return damaged("IPv6 range", i)
		}
	}
	for i := range owners {
		if int(f.orgTypes.At(uint64(i))) >= len(f.words) {
			return damaged("owner", uint64(i))
		}
		f.domains.At(i)
		f.names.At(i)
	}
	return nil
}
