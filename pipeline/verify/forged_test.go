package verify

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v17/parquet"
	"github.com/xitongsys/parquet-go/layout"

	"github.com/leadetl/leadetl/sinks"
)

// inMemory is a dataset in memory.
type inMemory map[string][]byte

func (m inMemory) List(context.Context) ([]string, error) { return slices.Sorted(maps.Keys(m)), nil }

func (m inMemory) ReadFile(name string) ([]byte, error) {
	data, there := m[name]
	if !there {
		return nil, fs.ErrNotExist
	}
	return data, nil
}

func (m inMemory) Open(name string) (*sinks.OpenFile, error) {
	data, err := m.ReadFile(name)
	if err != nil {
		return nil, err
	}
	return inMemoryFile(data), nil
}

func inMemoryFile(data []byte) *sinks.OpenFile {
	return &sinks.OpenFile{ReaderAt: bytes.NewReader(data), Closer: io.NopCloser(nil), Size: int64(len(data))}
}

// forged is the dataset in dir with another part 0, whose checksum fits.
func forged(t testing.TB, dir string, part []byte) inMemory {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, sinks.ManifestName))
	if err != nil {
		t.Fatal(err)
	}
	var m sinks.Manifest
	if err := json.Unmarshal(data, &m); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(part)
	m.Parts[0].SHA256, m.Parts[0].Bytes = hexOf(sum[:]), int64(len(part))
	if data, err = json.Marshal(m); err != nil {
		t.Fatal(err)
	}
	return inMemory{sinks.ManifestName: data, sinks.SuccessName: nil, m.Parts[0].Name: part}
}

// FuzzForged looks at files whose checksums fit and whose bytes are anything:
// what readers make of them is a failure or nothing, never a panic.
func FuzzForged(f *testing.F) {
	dir := write(f, []map[string]any{row(1), row(2), row(3)})
	good, err := os.ReadFile(filepath.Join(dir, "part-00000.parquet"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(0, []byte{})
	for at := 4; at < len(good); at += 97 {
		f.Add(at, []byte{0xff})
		f.Add(at, []byte{0, 0, 0, 0})
		f.Add(at, []byte{0x7f, 0xff, 0xff, 0xff, 0xff, 0x0f})
	}
	f.Fuzz(func(t *testing.T, at int, with []byte) {
		part := slices.Clone(good)
		if at < 0 || at > len(part) || len(with) > 64 {
			t.Skip()
		}
		copy(part[at:], with)
		r, err := Check(t.Context(), forged(t, dir, part), testRules(false))
		if err != nil {
			t.Fatal(err)
		}
		for _, failure := range r.Failures {
			if strings.Contains(failure.String(), "@x.example") {
				t.Errorf("a value is in %q", failure)
			}
		}
	})
}

// TestComparison gives the two implementations different things to say.
func TestComparison(t *testing.T) {
	values := func(words ...string) (all []parquet.ByteArray) {
		for _, w := range words {
			all = append(all, parquet.ByteArray(w))
		}
		return all
	}
	flat := func() *leaf {
		return &leaf{maxDefinition: 1, count: 3, definition: []int16{1, 0, 1}, texts: values("a", "b")}
	}
	list := func() *leaf { // ["a", "b"], []
		return &leaf{maxDefinition: 3, maxRepetition: 1, count: 3, definition: []int16{3, 3, 1}, repetition: []int16{0, 1, 0}, texts: values("a", "b")}
	}
	numbers := func() *leaf { return &leaf{count: 2, numbers: []int64{1, 2}} }
	for _, c := range []struct {
		name string
		leaf *leaf
		page layout.Table
		want string
		row  int64
	}{
		{"the same", flat(), layout.Table{Values: []any{"a", nil, "b"}, DefinitionLevels: []int32{1, 0, 1}, RepetitionLevels: []int32{0, 0, 0}}, "", 0},
		{"another value", flat(), layout.Table{Values: []any{"a", nil, "c"}, DefinitionLevels: []int32{1, 0, 1}, RepetitionLevels: []int32{0, 0, 0}}, "different values", 3},
		{"another type", flat(), layout.Table{Values: []any{int64(1), nil, "b"}, DefinitionLevels: []int32{1, 0, 1}, RepetitionLevels: []int32{0, 0, 0}}, "different values", 1},
		{"a null less", flat(), layout.Table{Values: []any{"a", "x", "b"}, DefinitionLevels: []int32{1, 1, 1}, RepetitionLevels: []int32{0, 0, 0}}, "what is null", 2},
		{"a null with a value", flat(), layout.Table{Values: []any{"a", "x", "b"}, DefinitionLevels: []int32{1, 0, 1}, RepetitionLevels: []int32{0, 0, 0}}, "a value where Arrow's finds a null", 2},
		{"a value more", flat(), layout.Table{Values: []any{"a", nil, "b", "c"}, DefinitionLevels: []int32{1, 0, 1, 1}, RepetitionLevels: []int32{0, 0, 0, 0}}, "more values", 0},
		{"levels missing", flat(), layout.Table{Values: []any{"a", nil, "b"}, DefinitionLevels: []int32{1, 0}, RepetitionLevels: []int32{0, 0, 0}}, "levels and values of a page differ", 0},
		{"the same list", list(), layout.Table{Values: []any{"a", "b", nil}, DefinitionLevels: []int32{3, 3, 1}, RepetitionLevels: []int32{0, 1, 0}}, "", 0},
		{"a list cut in two", list(), layout.Table{Values: []any{"a", "b", nil}, DefinitionLevels: []int32{3, 3, 1}, RepetitionLevels: []int32{0, 0, 0}}, "where a list ends", 1},
		{"a null for an empty list", list(), layout.Table{Values: []any{"a", "b", nil}, DefinitionLevels: []int32{3, 3, 0}, RepetitionLevels: []int32{0, 1, 0}}, "what is null", 2},
		{"the same numbers", numbers(), layout.Table{Values: []any{int32(1), int64(2)}, DefinitionLevels: []int32{0, 0}, RepetitionLevels: []int32{0, 0}}, "", 0},
		{"another number", numbers(), layout.Table{Values: []any{int64(1), int64(3)}, DefinitionLevels: []int32{0, 0}, RepetitionLevels: []int32{0, 0}}, "different values", 2},
	} {
		compared := &comparison{leaf: c.leaf}
		err := compared.page(&c.page)
		found, row := "", int64(0)
		if err != nil {
			found = err.Error()
		}
		if differs, ok := err.(*differError); ok {
			row = differs.row
		}
		if (c.want == "") != (err == nil) || !strings.Contains(found, c.want) || row != c.row {
			t.Errorf("%s: %q in row %d, want %q in row %d", c.name, found, row, c.want, c.row)
		}
	}
}
