package keyed

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"io"
	"unsafe"

	"github.com/leadetl/leadetl/internal/checksum"
)

// A file has named sections of numbers or bytes in the form that they have in memory:
//
//	offset 0   magic, 8 bytes, which says how long pages are
//	           sections, each at a multiple of sectionAlign
//	           the checksum of every page before it, 4 bytes each
//	           the table of contents, JSON
//	size-48    offset of the checksums, offset and length of the table of
//	           contents, checksum of both, byteOrder, magic: 8 bytes each
//
// Checksums are CRC-32C. Numbers are in the byte order of the machine that wrote them, as
// byteOrder says. (IPC files of Arrow would be enough, but Arrow for Go, v17, copies every
// buffer of a file that it reads.)
const (
	sectionAlign = 64 // a cache line; any number is aligned there
	trailerBytes = 48
	byteOrder    = uint64(0x0102030405060708)

	// hugePage is how much is written at once. A system that has large pages for files (ext4
	// since Linux 6.16) then keeps 2 MiB as one, and a look-up at random places waits less for
	// the addresses of pages: of network_to_phone through 5 M people it saved 7% of the processor time.
	hugePage = 2 << 20
)

// PageBits is the length of the pages of a file, which have a checksum each, as the exponent of a power of two.
type PageBits uint8

const (
	// MappedPages are those of a file that is read where it is mapped. Look-ups are at random places, and each first one
	// in a page reads it all: with pages of 64 KiB, a run of 10,000 rows computed checksums for a fifth of its time.
	MappedPages PageBits = 12
	// RemotePages are those of a file that may be kept elsewhere, where a page is a request.
	RemotePages PageBits = 16
)

// magics are the first and last bytes of a file by its pages.
var magics = map[PageBits]string{MappedPages: "LEADCOL3", RemotePages: "LEADCOL2"}

// section is an entry of the table of contents.
type section struct {
	Name   string `json:"name"`
	Width  int    `json:"width"` // bytes of a number
	Offset int64  `json:"offset"`
	Count  int64  `json:"count"` // numbers
}

func (s section) end() int64 { return s.Offset + s.Count*int64(s.Width) }

// ColumnWriter writes a file from front to back. Finish returns the first error.
type ColumnWriter struct {
	w     *bufio.Writer
	bits  PageBits
	at    int64
	table []section
	page  uint32   // checksum of the current page
	pages []uint32 // checksums of the pages before it
	sum   uint32   // of the checksums and the table of contents, after Finish
	err   error
}

// NewColumnWriter starts a file at the beginning of f.
func NewColumnWriter(f io.Writer, bits PageBits) *ColumnWriter {
	w := &ColumnWriter{w: bufio.NewWriterSize(f, hugePage), bits: bits}
	w.bytes([]byte(magics[bits]))
	return w
}

func (w *ColumnWriter) bytes(b []byte) {
	if w.err != nil {
		return
	}
	page := int64(1) << w.bits
	for len(b) > 0 {
		n := min(len(b), int(page-w.at%page)) // never so much that it goes past the buffer
		if _, w.err = w.w.Write(b[:n]); w.err != nil {
			return
		}
		w.page = checksum.Extend(w.page, b[:n])
		w.at += int64(n)
		b = b[n:]
		if w.at%page == 0 {
			w.endPage()
		}
	}
}

func (w *ColumnWriter) endPage() {
	w.pages = append(w.pages, w.page)
	w.page = 0
}

// begin starts a section, for the next values of put.
func begin[T Fixed](w *ColumnWriter, name string) {
	w.align()
	var one T
	w.table = append(w.table, section{Name: name, Width: int(unsafe.Sizeof(one)), Offset: w.at})
}

func (w *ColumnWriter) align() {
	var padding [sectionAlign]byte
	w.bytes(padding[:(sectionAlign-w.at%sectionAlign)%sectionAlign])
}

// put writes values.
func put[T Fixed](w *ColumnWriter, values ...T) {
	w.bytes(bytesOf(values))
	w.table[len(w.table)-1].Count += int64(len(values))
}

// Column writes a whole section.
func Column[T Fixed](w *ColumnWriter, name string, values []T) {
	begin[T](w, name)
	put(w, values...)
}

// PutEach writes a section of n values, which are made in order.
func PutEach[T Fixed](w *ColumnWriter, name string, n int, value func(i int) T) {
	begin[T](w, name)
	var some [256]T
	for at := 0; at < n; at += len(some) {
		k := min(len(some), n-at)
		for i := range k {
			some[i] = value(at + i)
		}
		put(w, some[:k]...)
	}
}

// Finish writes checksums and the table of contents. It does not close the
// file.
func (w *ColumnWriter) Finish() error {
	w.align()
	if w.at%(1<<w.bits) != 0 {
		w.endPage()
	}
	table, err := json.Marshal(w.table)
	if err != nil {
		return err
	}
	sums := bytesOf(w.pages)
	var trailer [trailerBytes]byte
	binary.NativeEndian.PutUint64(trailer[0:], uint64(w.at))
	binary.NativeEndian.PutUint64(trailer[8:], uint64(w.at)+uint64(len(sums)))
	binary.NativeEndian.PutUint64(trailer[16:], uint64(len(table)))
	w.sum = checksum.Of(sums, table)
	binary.NativeEndian.PutUint64(trailer[24:], uint64(w.sum))
	binary.NativeEndian.PutUint64(trailer[32:], byteOrder)
	copy(trailer[40:], magics[w.bits])
	for _, b := range [][]byte{sums, table, trailer[:]} {
		w.bytes(b)
	}
	if w.err == nil {
		w.err = w.w.Flush()
	}
	return w.err
}

// Size is the number of bytes that were written.
func (w *ColumnWriter) Size() int64 { return w.at }

// Checksum is that of the file, after Finish: it depends on every byte.
func (w *ColumnWriter) Checksum() uint32 { return w.sum }
