// Package columnfile reads and writes files of named columns: read-only files
// that are built once, replaced as a whole, and read by mapping them into
// memory.
//
// The one thing to know before using it: the memory of an open File may be
// damaged or cut under the reader. Read it in functions that defer Guard.
package columnfile

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"unsafe"
)

// A file of sections holds named columns, each a run of numbers or of bytes
// as they are in memory, so that it is read by mapping it:
//
//	offset 0   sectionsMagic, 8 bytes
//	           sections, each at a multiple of sectionAlign
//	           the table of contents, JSON
//	size-32    offset and length of the table, byteOrder, sectionsMagic: 8 bytes each
//
// Numbers are in the byte order of the machine that wrote it, which byteOrder
// tells. (Arrow's IPC files would be the same and readable by others, but
// Arrow for Go, v17, copies every buffer of a file it reads.)
const (
	sectionsMagic   = "LEADCOL1"
	sectionAlign    = 64 // a cache line; any number is aligned there
	sectionsTrailer = 32
	byteOrder       = uint64(0x0102030405060708)
)

// section is one line of the table of contents.
type section struct {
	Name   string `json:"name"`
	Width  int    `json:"width"` // bytes of a number
	Offset int64  `json:"offset"`
	Count  int64  `json:"count"` // numbers
}

// Writer writes a file of sections from front to back. Its first error
// stays: Finish returns it.
type Writer struct {
	w     *bufio.Writer
	at    int64
	table []section
	err   error
}

// NewWriter starts a file at the beginning of f.
func NewWriter(f *os.File) *Writer {
	w := &Writer{w: bufio.NewWriterSize(f, 1<<20)}
	w.bytes([]byte(sectionsMagic))
	return w
}

func (w *Writer) bytes(b []byte) {
	if w.err == nil {
		_, w.err = w.w.Write(b)
		w.at += int64(len(b))
	}
}

// Begin starts a section. What Put writes from here on belongs to it.
func Begin[T Fixed](w *Writer, name string) {
	var padding [sectionAlign]byte
	w.bytes(padding[:(sectionAlign-w.at%sectionAlign)%sectionAlign])
	var one T
	w.table = append(w.table, section{Name: name, Width: int(unsafe.Sizeof(one)), Offset: w.at})
}

// Put writes values.
func Put[T Fixed](w *Writer, values ...T) {
	w.bytes(bytesOf(values))
	w.table[len(w.table)-1].Count += int64(len(values))
}

// Column writes a whole section.
func Column[T Fixed](w *Writer, name string, values []T) {
	Begin[T](w, name)
	Put(w, values...)
}

// Finish writes the table of contents. It does not close the file.
func (w *Writer) Finish() error {
	table, err := json.Marshal(w.table)
	if err != nil {
		return err
	}
	offset := w.at
	w.bytes(table)
	var trailer [sectionsTrailer]byte
	binary.NativeEndian.PutUint64(trailer[0:], uint64(offset))
	binary.NativeEndian.PutUint64(trailer[8:], uint64(len(table)))
	binary.NativeEndian.PutUint64(trailer[16:], byteOrder)
	copy(trailer[24:], sectionsMagic)
	w.bytes(trailer[:])
	if w.err == nil {
		w.err = w.w.Flush()
	}
	return w.err
}

// File is an open file, mapped into memory.
type File struct {
	data  []byte
	table map[string]section
}

// Open maps a file. It checks the table of contents and no values.
func Open(path string) (_ *File, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := mapFile(f)
	if err != nil {
		return nil, err
	}
	s := &File{data: data, table: map[string]section{}}
	if err := s.contents(); err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", path, err), s.Close())
	}
	return s, nil
}

func (s *File) contents() error {
	size := uint64(len(s.data))
	if size < sectionsTrailer || string(s.data[size-8:]) != sectionsMagic {
		return errors.New("it is no file of columns")
	}
	trailer := s.data[size-sectionsTrailer:]
	if binary.NativeEndian.Uint64(trailer[16:]) != byteOrder {
		return errors.New("it was written on a machine of another byte order")
	}
	offset, length := binary.NativeEndian.Uint64(trailer), binary.NativeEndian.Uint64(trailer[8:])
	if offset > size || length > size-offset {
		return errors.New("its table of contents is out of place")
	}
	var table []section
	if err := json.Unmarshal(s.data[offset:offset+length], &table); err != nil {
		return fmt.Errorf("its table of contents: %w", err)
	}
	for _, e := range table {
		if e.Width < 1 || e.Width > 16 || e.Offset < 0 || e.Offset%sectionAlign != 0 || uint64(e.Offset) > size ||
			e.Count < 0 || uint64(e.Count) > (size-uint64(e.Offset))/uint64(e.Width) || e.Count > math.MaxInt {
			return fmt.Errorf("its section %s is out of place", e.Name)
		}
		s.table[e.Name] = e
	}
	return nil
}

// Get returns a column, valid until s is closed. It must have count values, any
// number when count is negative.
func Get[T Fixed](s *File, name string, count int) ([]T, error) {
	e, ok := s.table[name]
	var one T
	if !ok || e.Width != int(unsafe.Sizeof(one)) || (count >= 0 && e.Count != int64(count)) {
		return nil, fmt.Errorf("section %s is not what it should be", name)
	}
	return view[T](s.data[e.Offset : e.Offset+e.Count*int64(e.Width)]), nil
}

// Offset is where a section begins in the file.
func (s *File) Offset(name string) int64 { return s.table[name].Offset }

// Size is the size of the file in bytes.
func (s *File) Size() int { return len(s.data) }

// Close unmaps the file.
func (s *File) Close() error {
	data := s.data
	s.data = nil
	return unmap(data)
}
