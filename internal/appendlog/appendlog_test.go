package appendlog_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/leadetl/leadetl/internal/appendlog"
	"github.com/leadetl/leadetl/internal/disk"
)

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// create makes an empty log.
func create(path string) (*appendlog.Log, error) {
	f, err := disk.Dir(filepath.Dir(path)).Create(filepath.Base(path), 0o600)
	return appendlog.New(f), err
}

func read(t *testing.T, path string) (records []string) {
	t.Helper()
	err := appendlog.Read(disk.Dir(filepath.Dir(path)), filepath.Base(path), func(r []byte) error {
		records = append(records, string(r))
		return nil
	})
	if !errors.Is(err, appendlog.ErrDamaged) {
		must(t, err)
	}
	return records
}

func TestReadBack(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	l, err := create(path)
	must(t, err)
	want := []string{"one", "", string(bytes.Repeat([]byte{0}, 3<<20)), "four"}
	for _, r := range want {
		must(t, l.Append([]byte(r)))
	}
	info, err := os.Stat(path)
	must(t, err, l.Close())
	if info.Size() < l.Size() || info.Mode().Perm() != 0o600 {
		t.Errorf("%d bytes, %v; want %d at least, and 0600", info.Size(), info.Mode(), l.Size())
	}
	if got := read(t, path); !slices.Equal(got, want) {
		t.Errorf("%d records read, or others than were written", len(got))
	}
	stop := errors.New("stop")
	if err := appendlog.Read(disk.Dir(filepath.Dir(path)), filepath.Base(path), func([]byte) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("the reader's own error became %v", err)
	}
}

// A log that ends anywhere is read up to there. One of which a byte is another
// is damaged, unless that may be what a crash left of the last record.
func TestCut(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	l, err := create(path)
	must(t, err)
	const headed = 8 + len("record 0")
	var want []string
	var ends []int64
	for i := range 4 {
		want = append(want, fmt.Sprint("record ", i))
		must(t, l.Append([]byte(want[i])))
		ends = append(ends, l.Size())
	}
	must(t, l.Close())
	whole, err := os.ReadFile(path)
	must(t, err)
	whole = whole[:l.Size()]
	check := func(what string, at int, text []byte) {
		must(t, os.WriteFile(path, text, 0o600))
		n := 0
		for n < len(ends) && ends[n] <= int64(at) {
			n++
		}
		var got []string
		err := appendlog.Read(disk.Dir(filepath.Dir(path)), filepath.Base(path), func(r []byte) error { got = append(got, string(r)); return nil })
		last := n == len(ends)-1
		damage := what == "another byte" && !last
		sure := at%headed >= 4 // where the record ends can be told
		if !slices.Equal(got, want[:n]) || err != nil && !errors.Is(err, appendlog.ErrDamaged) || err != nil && !damage || err == nil && damage && sure {
			t.Fatalf("%s at %d: %q, %v; want %q", what, at, got, err, want[:n])
		}
	}

	for at := range whole {
		check("cut", at, whole[:at])
		check("zeros from", at, append(bytes.Clone(whole[:at]), make([]byte, 100)...))
		other := bytes.Clone(whole)
		other[at] ^= 0x10
		check("another byte", at, other)
	}
}

// small is a file on a disk with so much space.
type small struct {
	disk.File
	space int64
	dead  bool // takes nothing off either
}

func (s *small) WriteAt(p []byte, at int64) (int, error) {
	if at+int64(len(p)) > s.space {
		n, err := s.File.WriteAt(p[:max(s.space-at, 0)], at)
		return n, errors.Join(err, syscall.ENOSPC)
	}
	return s.File.WriteAt(p, at)
}

func (s *small) Truncate(size int64) error {
	if s.dead {
		return syscall.EIO
	}
	return s.File.Truncate(size)
}

func TestFull(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	f, err := disk.Dir(filepath.Dir(path)).Create("log", 0o600)
	must(t, err)
	small := &small{File: f, space: 1_100_000}
	l := appendlog.New(small)
	must(t, l.Append([]byte("first")))
	for _, dead := range []bool{false, true, true} {
		small.dead = dead
		if err := l.Append(bytes.Repeat([]byte("x"), 1_100_000)); !errors.Is(err, syscall.ENOSPC) && !errors.Is(err, syscall.EIO) {
			t.Errorf("got %v", err)
		}
	}
	small.dead, small.space = false, 10_000_000
	must(t, l.Append([]byte("second")), l.Close())
	if got := read(t, path); !slices.Equal(got, []string{"first", "second"}) {
		t.Errorf("%q", got)
	}
}

func FuzzRead(f *testing.F) {
	path := filepath.Join(f.TempDir(), "log")
	l, err := create(path)
	if err == nil {
		err = errors.Join(l.Append([]byte("one")), l.Append([]byte("two")), l.Close())
	}
	if err != nil {
		f.Fatal(err)
	}
	text, _ := os.ReadFile(path)
	f.Add(text)
	f.Fuzz(func(t *testing.T, text []byte) {
		dir := t.TempDir()
		path, again := filepath.Join(dir, "log"), filepath.Join(dir, "again")
		must(t, os.WriteFile(path, text, 0o600))
		records := read(t, path)
		l, err := create(again)
		must(t, err)
		for _, r := range records {
			must(t, l.Append([]byte(r)))
		}
		must(t, l.Close())
		written, err := os.ReadFile(again)
		must(t, err)
		written = written[:l.Size()]
		if !bytes.HasPrefix(text, written) {
			t.Errorf("%d records written again are no beginning of what was read", len(records))
		}
	})
}
