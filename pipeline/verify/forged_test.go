package verify

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/leadetl/leadetl/internal/store"
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
	return &sinks.OpenFile{ReaderAt: bytes.NewReader(data), Closer: io.NopCloser(nil), Info: store.Info{Size: int64(len(data))}}
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
	return inMemory{sinks.ManifestName: data, sinks.SuccessName: fmt.Appendf(nil, "sha256 %x %s\n", sha256.Sum256(data), sinks.ManifestName), m.Parts[0].Name: part}
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
