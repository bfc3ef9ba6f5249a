package parquet

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"

	"github.com/leadetl/leadetl/internal/keyed"
	"github.com/leadetl/leadetl/sinks/schema"
)

// TestTextsInCutFile: texts in a mapped file that was cut are an error, however many rows a
// record has.
func TestTextsInCutFile(t *testing.T) {
	for _, rows := range []int{1, rowsTogether} {
		path := filepath.Join(t.TempDir(), "texts")
		if err := os.WriteFile(path, []byte(strings.Repeat("text", 1<<10)), 0o644); err != nil {
			t.Fatal(err)
		}
		file, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		mapped, err := syscall.Mmap(int(file.Fd()), 0, 4<<10, syscall.PROT_READ, syscall.MAP_SHARED)
		if err := errors.Join(err, file.Close(), os.Truncate(path, 0)); err != nil {
			t.Fatal(err)
		}
		var v arrow.ViewHeader
		v.SetString(strings.Repeat("text", 9))
		views := array.NewStringViewData(array.NewData(arrow.BinaryTypes.StringView, 1,
			[]*memory.Buffer{nil, memory.NewBufferBytes(arrow.ViewHeaderTraits.CastToBytes([]arrow.ViewHeader{v})), memory.NewBufferBytes(mapped)}, nil, 0, 0))
		codes := array.NewInt32Data(array.NewData(arrow.PrimitiveTypes.Int32, rows, []*memory.Buffer{nil, memory.NewBufferBytes(make([]byte, 4*rows))}, nil, 0, 0))
		kind := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int32, ValueType: arrow.BinaryTypes.StringView}
		columns := []schema.Column{schema.New("a", arrow.BinaryTypes.String, true)}
		columns[0].Repeats = true
		e, err := NewEncoder(io.Discard, Table{Columns: columns, Compression: Snappy}, &PagePool{})
		if err != nil {
			t.Fatal(err)
		}
		rec := array.NewRecord(arrow.NewSchema([]arrow.Field{{Name: "a", Type: kind}}, nil), []arrow.Array{array.NewDictionaryArray(kind, codes, views)}, int64(rows))
		if err := e.Add(rec, func() error { return nil }); !errors.Is(err, keyed.ErrDamaged) {
			t.Errorf("%d rows: %v, want ErrDamaged", rows, err)
		}
		if err := syscall.Munmap(mapped); err != nil {
			t.Fatal(err)
		}
	}
}
