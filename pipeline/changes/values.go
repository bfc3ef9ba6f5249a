package changes

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"

	"github.com/leadetl/leadetl/internal/atomicfile"
)

// appendValue appends a value of an array in a form that is the same for equal values only:
// 0 for null, else 1 and the bytes of the value, of which the length follows from what is read.
func appendValue(to []byte, a arrow.Array, i int) []byte {
	if a.IsNull(i) {
		return append(to, 0)
	}
	to = append(to, 1)
	switch a := a.(type) {
	case *array.String:
		to = binary.AppendUvarint(to, uint64(a.ValueLen(i)))
		return append(to, a.Value(i)...)
	case *array.Int32:
		return binary.LittleEndian.AppendUint64(to, uint64(a.Value(i)))
	case *array.Date32:
		return binary.LittleEndian.AppendUint64(to, uint64(a.Value(i)))
	case *array.Int64:
		return binary.LittleEndian.AppendUint64(to, uint64(a.Value(i)))
	case *array.Timestamp:
		return binary.LittleEndian.AppendUint64(to, uint64(a.Value(i)))
	case *array.Float64:
		return binary.LittleEndian.AppendUint64(to, math.Float64bits(a.Value(i)))
	case *array.Boolean:
		if a.Value(i) {
			return append(to, 1)
		}
		return append(to, 0)
	case *array.List:
		from, end := a.ValueOffsets(i)
		to = binary.AppendUvarint(to, uint64(end-from))
		for at := from; at < end; at++ {
			to = appendValue(to, a.ListValues(), int(at))
		}
		return to
	case *array.Struct:
		for m := range a.NumField() {
			to = appendValue(to, a.Field(m), i)
		}
		return to
	}
	panic(fmt.Sprintf("a column of type %s, which no dataset has", a.DataType()))
}

// buildValue appends a value in the form of appendValue to a builder, and returns what follows
// it.
func buildValue(b array.Builder, data []byte) []byte {
	if data[0] == 0 {
		b.AppendNull()
		return data[1:]
	}
	data = data[1:]
	number := func() uint64 { n := binary.LittleEndian.Uint64(data); data = data[8:]; return n }
	length := func() int { n, size := binary.Uvarint(data); data = data[size:]; return int(n) }
	switch b := b.(type) {
	case *array.StringBuilder:
		n := length()
		b.BinaryBuilder.Append(data[:n])
		return data[n:]
	case *array.Int32Builder:
		b.Append(int32(number()))
	case *array.Date32Builder:
		b.Append(arrow.Date32(number()))
	case *array.Int64Builder:
		b.Append(int64(number()))
	case *array.TimestampBuilder:
		b.Append(arrow.Timestamp(number()))
	case *array.Float64Builder:
		b.Append(math.Float64frombits(number()))
	case *array.BooleanBuilder:
		b.Append(data[0] == 1)
		return data[1:]
	case *array.ListBuilder:
		b.Append(true)
		for range length() {
			data = buildValue(b.ValueBuilder(), data)
		}
	case *array.StructBuilder:
		b.Append(true)
		for m := range b.NumField() {
			data = buildValue(b.FieldBuilder(m), data)
		}
	default:
		panic(fmt.Sprintf("a column of type %s, which no dataset has", b.Type()))
	}
	return data
}

// spool keeps values in a temporary file, one after another.
type spool struct {
	dir     string
	file    *os.File // nil until it is needed
	end     int64    // of the file
	pending []byte   // not in the file yet
}

// spoolBytes are written at a time.
const spoolBytes = 1 << 20

// add keeps what use appends, and returns where it is.
func (s *spool) add(use func([]byte) []byte) (offset int64, length int32, err error) {
	before := len(s.pending)
	s.pending = use(s.pending)
	offset, length = s.end+int64(before), int32(len(s.pending)-before)
	if len(s.pending) < spoolBytes {
		return offset, length, nil
	}
	return offset, length, s.flush()
}

func (s *spool) flush() (err error) {
	if len(s.pending) == 0 {
		return nil
	}
	if s.file == nil {
		if s.file, err = atomicfile.Nameless(s.dir); err != nil {
			return err
		}
	}
	n, err := s.file.WriteAt(s.pending, s.end)
	s.end += int64(n)
	s.pending = s.pending[:0]
	return err
}

// get reads what was added, after flush.
func (s *spool) get(offset int64, length int32, buffer []byte) ([]byte, error) {
	if cap(buffer) < int(length) {
		buffer = make([]byte, length)
	}
	buffer = buffer[:length]
	if length == 0 {
		return buffer, nil
	}
	_, err := s.file.ReadAt(buffer, offset)
	return buffer, err
}

func (s *spool) close() error {
	if s.file == nil {
		return nil
	}
	file := s.file
	s.file = nil
	return file.Close()
}
