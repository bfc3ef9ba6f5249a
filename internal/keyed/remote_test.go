package keyed_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/leadetl/leadetl/internal/disk"
	"github.com/leadetl/leadetl/internal/keyed"
)

// elsewhere is a file that counts its reads, and may fail.
type elsewhere struct {
	*os.File
	reads, bytes atomic.Int64
	failing      atomic.Bool
}

var errAway = errors.New("the store is away")

func (e *elsewhere) ReadAt(p []byte, off int64) (int, error) {
	e.reads.Add(1)
	e.bytes.Add(int64(len(p)))
	if e.failing.Load() {
		return 0, errAway
	}
	return e.File.ReadAt(p, off)
}

// openElsewhere opens a file as one that is kept elsewhere.
func openElsewhere(t *testing.T, path string) (*keyed.File, *elsewhere, error) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	info, err := file.Stat()
	if err != nil {
		t.Fatal(err)
	}
	e := &elsewhere{File: file}
	f, err := keyed.OpenRemote(keyed.Remote{ReaderAt: e, Closer: e, Path: path, Size: info.Size()}, t.TempDir(), len(repeated))
	if err == nil {
		t.Cleanup(func() { f.Close() })
	}
	return f, e, err
}

// places looks up keys, and returns an error if one cannot be read.
func places(f *keyed.File, keys []string) (rows []uint32, err error) {
	defer keyed.Guard(&err, debug.SetPanicOnFault(true))
	rows = make([]uint32, len(keys))
	f.FindAll(keys, rows)
	return rows, nil
}

func keysOf(n int) (keys []string) {
	for i := range n {
		keys = append(keys, fmt.Sprintf("%08d", i*7))
	}
	return keys
}

// TestRemote: a file that is kept elsewhere has the same records, and few requests bring them.
func TestRemote(t *testing.T) {
	for _, c := range []struct {
		name      string
		records   int
		look      []string // keys
		most      int64    // reads, with those of its opening
		mostBytes int64
	}{
		{"a short file is read at once", 1000, keysOf(1000), 1, 1 << 20},
		{"a long file is opened by its ends", 60_000, nil, 4, 256 << 10},
		{"one key", 60_000, []string{"00000070"}, 8, 1 << 20},
		{"one unknown key", 60_000, []string{"none"}, 5, 512 << 10},
		{"many unknown keys", 60_000, []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"}, 6, 2 << 20},
		{"all keys", 60_000, keysOf(60_000), 200, 20 << 20},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			var records [][]string
			for i, key := range keysOf(c.records) {
				records = append(records, record(key, byte(i), byte(i%251)))
			}
			local := commit(t, disk.Dir(dir), "file", records)
			remote, e, err := openElsewhere(t, filepath.Join(dir, "file"))
			if err != nil {
				t.Fatal(err)
			}
			got, err := places(remote, c.look)
			want, other := places(local, c.look)
			if err := errors.Join(err, other); err != nil || !slices.Equal(got, want) {
				t.Fatalf("other rows; %v", err)
			}
			if reads, bytes := e.reads.Load(), e.bytes.Load(); reads > c.most || bytes > c.mostBytes {
				t.Errorf("%d reads of %d bytes, want at most %d and %d", reads, bytes, c.most, c.mostBytes)
			}
			before := e.reads.Load()
			if _, err := places(remote, c.look); err != nil || e.reads.Load() != before {
				t.Errorf("what was read is read again; %v", err)
			}
			if err := remote.CheckAll(); err != nil {
				t.Error(err)
			}
			if reads := e.reads.Load() - before; c.look == nil && reads > 12 {
				t.Errorf("%d reads from front to back", reads)
			}
		})
	}
}

// TestRemoteFaults: an error of who keeps the file is no damage, and the next read may succeed; damage is.
func TestRemoteFaults(t *testing.T) {
	dir := t.TempDir()
	var records [][]string
	for i, key := range keysOf(60_000) {
		records = append(records, record(key, byte(i), 100))
	}
	commit(t, disk.Dir(dir), "file", records)
	path := filepath.Join(dir, "file")
	remote, e, err := openElsewhere(t, path)
	if err != nil {
		t.Fatal(err)
	}
	e.failing.Store(true)
	if _, err := places(remote, []string{"00000070"}); !errors.Is(err, errAway) || errors.Is(err, keyed.ErrDamaged) {
		t.Errorf("a failed read: %v", err)
	}
	e.failing.Store(false)
	if rows, err := places(remote, []string{"00000070"}); err != nil || rows[0] != 10 {
		t.Errorf("the read after it: rows %d, %v", rows, err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		hurt func(text []byte) []byte
	}{
		{"a flipped byte", func(text []byte) []byte { text[len(text)/2]++; return text }},
		{"cut off", func(text []byte) []byte { return text[:len(text)/2] }},
		{"its end is damaged", func(text []byte) []byte { text[len(text)-40]++; return text }},
		{"empty", func([]byte) []byte { return nil }},
	} {
		t.Run(c.name, func(t *testing.T) {
			hurt := filepath.Join(dir, "hurt")
			if err := os.WriteFile(hurt, c.hurt(slices.Clone(text)), 0o600); err != nil {
				t.Fatal(err)
			}
			f, _, err := openElsewhere(t, hurt)
			if err == nil {
				err = f.CheckAll()
			}
			if !errors.Is(err, keyed.ErrDamaged) {
				t.Errorf("got %v, want ErrDamaged", err)
			}
		})
	}
	e.failing.Store(true)
	if _, err := keyed.OpenRemote(keyed.Remote{ReaderAt: e, Closer: io.NopCloser(nil), Path: path, Size: int64(len(text))}, t.TempDir(), len(repeated)); !errors.Is(err, errAway) {
		t.Errorf("opened without a read: %v", err)
	}
}
