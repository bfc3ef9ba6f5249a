package keyed

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"runtime/debug"
	"slices"
	"unsafe"

	"github.com/leadetl/leadetl/internal/disk"
)

// File is an open file of records. It is safe from many goroutines.
type File struct {
	columns      *Columns
	fields       int
	heap         Checked[uint8]
	offsets      Checked[uint64] // of the records in heap, and the end of the last
	dictionaries []Dictionary    // by field; empty without one
	keys         Index
}

// None is the row of an unknown key.
const None = ^uint32(0)

// Open opens a file of records with so many fields.
func Open(in disk.Folder, name string, fields int) (*File, error) {
	c, err := OpenColumns(in, name)
	if err != nil {
		return nil, err
	}
	return openFile(c, fields)
}

func openFile(c *Columns, fields int) (*File, error) {
	f := &File{columns: c, fields: fields}
	if err := f.open(); err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", c.path, err), c.Close())
	}
	return f, nil
}

func (f *File) open() (err error) {
	defer Guard(&err, debug.SetPanicOnFault(true))
	r := ColumnReader{Columns: f.columns}
	f.heap = ReadChecked[uint8](&r, "records", -1)
	f.offsets = ReadChecked[uint64](&r, "record_offsets", -1)
	sizes := ReadChecked[uint32](&r, "dictionary_sizes", f.fields)
	offsets := ReadChecked[uint64](&r, "dictionary_offsets", -1)
	texts := ReadChecked[uint8](&r, "dictionary", -1)
	f.keys = ReadIndex(&r, "keys")
	if r.Err != nil {
		return r.Err
	}
	if f.offsets.Len() == 0 || offsets.Len() == 0 {
		return fmt.Errorf("%w: no offsets", ErrDamaged)
	}
	all := slices.Clone(texts.Slice(0, uint64(texts.Len())))
	places := offsets.Slice(0, uint64(offsets.Len()))
	f.dictionaries = make([]Dictionary, f.fields)
	for i, n := range sizes.Slice(0, uint64(f.fields)) {
		ends := places[:int(n)+1]
		t := Dictionary{Data: all[ends[0]:ends[n]], Offsets: make([]int32, n+1)}
		for code, end := range ends {
			if t.Offsets[code] = int32(end - ends[0]); end < ends[max(code, 1)-1] || end-ends[0] > math.MaxInt32 {
				return fmt.Errorf("%w: the texts of a dictionary are out of place", ErrDamaged)
			}
		}
		f.dictionaries[i], places = t, places[n:]
	}
	return nil
}

// Empty is a file without records, whose records have so many fields.
func Empty(fields int) *File {
	return &File{fields: fields, dictionaries: make([]Dictionary, fields)}
}

// Dictionary is that of a field; empty for a field without one.
func (f *File) Dictionary(field int) *Dictionary { return &f.dictionaries[field] }

// Memory has the texts of Fields that have no code, until the file is closed.
func (f *File) Memory() []byte { return f.heap.All() }

// Close closes the file.
func (f *File) Close() error { return f.columns.Close() }

// Columns returns a reader of the columns beside those of the records.
func (f *File) Columns() *ColumnReader { return &ColumnReader{Columns: f.columns} }

// Size is the number of bytes of the file.
func (f *File) Size() int64 { return int64(f.columns.Size()) }

// Checksum is that of Columns.
func (f *File) Checksum() uint32 { return f.columns.Checksum() }

// Rows is the number of records, with replaced ones.
func (f *File) Rows() int { return f.offsets.Len() - 1 }

// Keys is the number of distinct keys.
func (f *File) Keys() int { return f.keys.Len() }

// Find returns the row of a key, None without one. Call it under
// Guard.
func (f *File) Find(key string) uint32 {
	h := HashOf(key)
	for row := range f.keys.Rows(h) {
		if f.hasKey(row, key) {
			return row
		}
	}
	return None
}

// hasKey compares the first field, which has no dictionary.
func (f *File) hasKey(row uint32, key string) bool {
	record := f.record(row)
	head, n := binary.Uvarint(record)
	return head == uint64(len(key))<<1 && string(record[n:n+len(key)]) == key
}

func (f *File) record(row uint32) []byte {
	ends := f.offsets.Slice(uint64(row), uint64(row)+2)
	return f.heap.Slice(ends[0], ends[1])
}

// Read fills fields with the texts of a row, in one piece of the arena. Call it under
// Guard.
func (f *File) Read(row uint32, arena *Arena, fields []string) {
	r := Fields{record: arena.Copy(f.record(row)), file: f}
	for i := range f.fields {
		code, text := r.Next()
		if code >= 0 {
			text = f.dictionaries[i].At(code)
		}
		fields[i] = unsafe.String(unsafe.SliceData(text), len(text))
	}
}

// Fields reads the fields of a record one after another, where they are in the file.
type Fields struct {
	record []byte
	file   *File
	next   int
}

// Fields begins to read a row. Call it, and Next, under Guard.
func (f *File) Fields(row uint32) Fields { return Fields{record: f.record(row), file: f} }

// Len is the number of bytes that are not read yet.
func (r *Fields) Len() int { return len(r.record) }

// Next returns the code of the next field in its dictionary or, if code is -1, its text.
func (r *Fields) Next() (code int32, text []byte) {
	head, n := headOf(r.record)
	field := r.next
	r.next++
	if head&1 == 1 {
		if head>>1 >= uint64(r.file.dictionaries[field].Len()) {
			panic(errRecord)
		}
		r.record = r.record[n:]
		return int32(head >> 1), nil
	}
	end := uint64(n) + head>>1
	text, r.record = r.record[n:end:end], r.record[end:]
	return -1, text
}

// headOf reads what a field begins with: twice its code and 1, or twice the length of its text.
func headOf(record []byte) (head uint64, n int) {
	if record[0] < 0x80 {
		return uint64(record[0]), 1
	}
	if head, n = binary.Uvarint(record); n <= 0 {
		panic(errRecord)
	}
	return head, n
}

// Skip reads n fields without their values.
func (r *Fields) Skip(n int) {
	record := r.record
	for range n {
		head, k := headOf(record)
		end := uint64(k)
		if head&1 == 0 {
			end += head >> 1
		}
		record = record[end:]
	}
	r.record = record
	r.next += n
}

// errRecord is a runtime.Error, so that Guard makes it ErrDamaged.
var errRecord error = recordError{}

type recordError struct{}

func (recordError) Error() string { return "a record is cut short" }
func (recordError) RuntimeError() {}

// CheckAll checks the checksums that were not checked yet.
func (f *File) CheckAll() error { return f.columns.CheckAll() }

// Verify checks all checksums, that every key is found, and that every record can be read. It
// returns the numbers of keys and rows.
func (f *File) Verify(ctx context.Context) (keys, rows int64, err error) {
	if err := f.columns.Verify(); err != nil {
		return 0, 0, err
	}
	defer func() {
		if errors.Is(err, ErrDamaged) {
			err = fmt.Errorf("%s: %w", f.columns.path, err)
		}
	}()
	defer Guard(&err, debug.SetPanicOnFault(true))
	found := 0
	var arena Arena
	fields := make([]string, f.fields)
	for row := range uint32(f.Rows()) {
		if row%4096 == 0 && ctx.Err() != nil {
			return 0, 0, ctx.Err()
		}
		arena.Reset()
		f.Read(row, &arena, fields)
		switch at := f.Find(fields[0]); {
		case at == row:
			found++
		case at == None || at < row:
			return 0, 0, fmt.Errorf("%w: record %d is not found by its key", ErrDamaged, row)
		}
	}
	if found != f.Keys() {
		return 0, 0, fmt.Errorf("%w: %d keys, the index has %d", ErrDamaged, found, f.Keys())
	}
	return int64(found), int64(f.Rows()), nil
}

// together is how many keys are looked up at a time. Each step of a look-up is done for all of
// them before the next, so that the processor loads the memory of many at once.
const together = 64

// FindAll sets rows to the row of each key, None without one. It skips empty keys. Call it
// under Guard.
func (f *File) FindAll(keys []string, rows []uint32) {
	var hashes [together]Hash
	for from := 0; from < len(keys); from += together {
		part := keys[from:min(from+together, len(keys))]
		for i, key := range part {
			hashes[i] = HashOf(key)
		}
		f.findAll(part, hashes[:len(part)], rows[from:])
	}
}

// findAll is FindAll of at most together keys with their hashes.
func (f *File) findAll(keys []string, hashes []Hash, rows []uint32) {
	rows = rows[:len(keys)]
	f.keys.FirstRows(hashes, rows)
	f.Touch(rows, 0, keyLines)
	for i, key := range keys {
		switch row := rows[i]; {
		case key == "":
			rows[i] = None
		case row != None && !f.hasKey(row, key):
			rows[i] = f.Find(key) // another key with the same 32 bits of hash
		}
	}
}

const cacheLine = 64

// keyLines is how many lines of cache a key takes, wherever its record begins.
const keyLines = 2

// Touch loads some lines of cache of the records of rows: from line first, which is 0 for the
// one in which a record begins, to before line end. Call it under Guard.
func (f *File) Touch(rows []uint32, first, end uint64) {
	var places, starts [together]uint64
	for len(rows) > 0 {
		some := rows[:min(together, len(rows))]
		rows = rows[len(some):]
		n := 0
		for _, row := range some {
			if row != None {
				places[n] = uint64(row)
				n++
			}
		}
		if n == 0 {
			continue // an empty file has no memory
		}
		f.offsets.Expect(places[:n])
		f.offsets.Load(places[:n], starts[:])
		touch(&f.heap, starts[:n], first*cacheLine, end*cacheLine, cacheLine)
	}
}
