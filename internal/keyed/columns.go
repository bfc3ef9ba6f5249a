package keyed

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/leadetl/leadetl/internal/checksum"
	"github.com/leadetl/leadetl/internal/disk"
)

// Columns is an open file of columns. It is safe from many goroutines.
type Columns struct {
	path   string // for messages
	data   []byte
	mapped bool
	bits   PageBits
	body   int64 // bytes before the checksums
	table  []section
	sums   []uint32
	// checked has a bit for each page with a verified checksum.
	checked []atomic.Uint64
	// scattered says that the file may not fit into memory.
	scattered bool
	remote    *remote // nil for a file of this machine
}

// OpenColumns opens a file of a folder. It checks the table of contents, but no values.
func OpenColumns(in disk.Folder, name string) (*Columns, error) {
	data, mapped, err := load(in, name)
	if err != nil {
		return nil, err
	}
	f := &Columns{path: in.Path(name), data: data, mapped: mapped}
	if err := f.contents(); err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w: %w", f.path, ErrDamaged, err), f.Close())
	}
	f.scatter(freeMemory())
	return f, nil
}

func (f *Columns) contents() (err error) {
	defer Guard(&err, setPanicOnFault())
	size := uint64(len(f.data))
	if size >= trailerBytes {
		for bits, magic := range magics {
			if string(f.data[size-8:]) == magic {
				f.bits = bits
			}
		}
	}
	if f.bits == 0 {
		return errors.New("it is not a column file")
	}
	trailer := f.data[size-trailerBytes:]
	if binary.NativeEndian.Uint64(trailer[32:]) != byteOrder {
		return errors.New("it was written on a machine with another byte order")
	}
	body, offset, length := binary.NativeEndian.Uint64(trailer), binary.NativeEndian.Uint64(trailer[8:]), binary.NativeEndian.Uint64(trailer[16:])
	pages := (body + 1<<f.bits - 1) >> f.bits
	if body > size || body%sectionAlign != 0 || offset != body+4*pages || offset > size || length > size-offset {
		return errors.New("its table of contents is out of place")
	}
	if crc := checksum.Of(f.data[body : offset+length]); uint64(crc) != binary.NativeEndian.Uint64(trailer[24:]) {
		return errors.New("its table of contents has a wrong checksum")
	}
	if err := json.Unmarshal(f.data[offset:offset+length], &f.table); err != nil {
		return fmt.Errorf("its table of contents: %w", err)
	}
	for _, e := range f.table {
		if e.Width < 1 || e.Width > sectionAlign || e.Offset < 0 || e.Offset%sectionAlign != 0 || uint64(e.Offset) > body ||
			e.Count < 0 || uint64(e.Count) > (body-uint64(e.Offset))/uint64(e.Width) || e.Count > math.MaxInt {
			return fmt.Errorf("its section %s is out of place", e.Name)
		}
	}
	f.body = int64(body)
	f.sums = view[uint32](f.data[body:offset])
	f.checked = make([]atomic.Uint64, (pages+63)/64)
	return nil
}

func (f *Columns) section(name string) (section, bool) {
	for _, e := range f.table {
		if e.Name == name {
			return e, true
		}
	}
	return section{}, false
}

// Offset returns where a section begins in the file.
func (f *Columns) Offset(name string) int64 {
	e, _ := f.section(name)
	return e.Offset
}

// Size is the size of the file in bytes.
func (f *Columns) Size() int { return len(f.data) }

// Checksum is that of ColumnWriter: it tells files apart. What is read is checked against it.
func (f *Columns) Checksum() uint32 {
	return uint32(binary.NativeEndian.Uint64(f.data[len(f.data)-trailerBytes+24:]))
}

// Close frees the memory of the file. Nothing of it may be used afterwards.
func (f *Columns) Close() error {
	data := f.data
	if f.data = nil; !f.mapped {
		return nil
	}
	err := unmap(data)
	if f.remote != nil {
		err = errors.Join(err, f.remote.close())
	}
	return err
}

// check verifies the pages of a range of the body that are not verified yet. It
// panics for a damaged page; Guard turns that into ErrDamaged.
func (f *Columns) check(from, to int64) {
	for page := from >> f.bits; page<<f.bits < to; page++ {
		if !f.isChecked(page) {
			f.checkPage(page)
		}
	}
}

func (f *Columns) checkPage(page int64) {
	from, to := f.page(page)
	switch {
	case f.remote != nil:
		f.remote.need(page)
	case f.scattered:
		f.advise(from, to, unix.MADV_WILLNEED)
	}
	if checksum.Of(f.data[from:to]) != f.sums[page] {
		panic(damage{f.path, f.sectionsIn(from, to), from, to})
	}
	f.checked[page/64].Or(1 << (page % 64))
}

// page returns where a page begins and ends.
func (f *Columns) page(i int64) (from, to int64) { return i << f.bits, min((i+1)<<f.bits, f.body) }

// isChecked reports whether a page was verified.
func (f *Columns) isChecked(page int64) bool { return f.checked[page/64].Load()>>(page%64)&1 == 1 }

// sectionsIn returns the names of the sections in a range.
func (f *Columns) sectionsIn(from, to int64) (names []string) {
	for _, e := range f.table {
		if e.Offset < to && e.end() > from {
			names = append(names, e.Name)
		}
	}
	return names
}

// CheckAll verifies the pages that are not verified yet. It returns ErrDamaged
// for a damaged page.
func (f *Columns) CheckAll() (err error) {
	defer Guard(&err, setPanicOnFault())
	defer f.inOrder()()
	f.check(0, f.body)
	return nil
}

// Verify verifies every page again. It returns ErrDamaged with at most ten damaged places.
func (f *Columns) Verify() error {
	defer f.inOrder()()
	var errs []error
	for i := range f.checked {
		f.checked[i].Store(0)
	}
	for page := range int64(len(f.sums)) {
		err := func() (err error) {
			defer Guard(&err, setPanicOnFault())
			f.checkPage(page)
			return nil
		}()
		if _, sum := errors.AsType[damage](err); err != nil && !sum { // the disk cannot read it
			from, to := f.page(page)
			err = fmt.Errorf("bytes %d to %d of %s: %w", from, to, f.path, err)
		}
		if err != nil {
			errs = append(errs, err)
		}
		if len(errs) == maxDamages {
			break
		}
	}
	return errors.Join(errs...)
}

const maxDamages = 10

// Place is a byte of a file, with what it belongs to.
type Place struct {
	Of     string
	Offset int64
}

// Places lists bytes of all parts of a file, for tests that damage it: start, middle and
// end of every section, both ends of the table of contents, the checksums of pages, and the
// words of the trailer.
func (f *Columns) Places() (all []Place) {
	add := func(of string, offset int64) { all = append(all, Place{of, offset}) }
	for _, e := range f.table {
		if e.Count > 0 {
			add("the start of "+e.Name, e.Offset)
			add("the middle of "+e.Name, (e.Offset+e.end())/2)
			add("the end of "+e.Name, e.end()-1)
		}
	}
	for page := 0; page < len(f.sums); page += 1 + len(f.sums)/32 {
		add(fmt.Sprint("the checksum of page ", page), f.body+4*int64(page))
	}
	trailer := int64(len(f.data)) - trailerBytes
	add("the start of the table of contents", f.body+4*int64(len(f.sums)))
	add("the end of the table of contents", trailer-1)
	for at := trailer; at < int64(len(f.data)); at += 8 {
		add(fmt.Sprint("word ", (at-trailer)/8, " of the trailer"), at)
	}
	return all
}
