package appendlog_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/leadetl/leadetl/internal/appendlog"
	"github.com/leadetl/leadetl/internal/checksum"
	"github.com/leadetl/leadetl/internal/disk"
	"github.com/leadetl/leadetl/internal/format"
)

func must(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// write makes a log of groups and returns its file and where each group ends.
func write(t testing.TB, in disk.Folder, name string, from appendlog.Position, groups ...string) (text []byte, ends []int64) {
	t.Helper()
	l, err := appendlog.Create(in, name, from)
	must(t, err)
	for _, g := range groups {
		must(t, l.Append([]byte(g)))
		ends = append(ends, l.Size())
	}
	must(t, l.Close())
	text, err = in.ReadFile(name)
	must(t, err)
	return text, ends
}

func read(in disk.Folder, name string, from appendlog.Position) (groups []string, err error) {
	_, err = appendlog.Read(in, name, from, true, func(g []byte) error {
		groups = append(groups, string(g))
		return nil
	})
	return groups, err
}

func TestReadBack(t *testing.T) {
	in := disk.Dir(t.TempDir())
	from := appendlog.Position{Number: 7, Before: 11}
	want := []string{"one", string(bytes.Repeat([]byte{0}, 3<<20)), "three"}
	text, ends := write(t, in, "log", from, want...)
	info, err := os.Stat(in.Path("log"))
	must(t, err)
	if int64(len(text)) < ends[2] || info.Mode().Perm() != 0o600 {
		t.Errorf("%d bytes, %v; want %d at least, and 0600", len(text), info.Mode(), ends[2])
	}
	if got, err := read(in, "log", from); err != nil || !slices.Equal(got, want) {
		t.Errorf("%d groups read, or others than were written: %v", len(got), err)
	}
	stop := errors.New("stop")
	if _, err := appendlog.Read(in, "log", from, true, func([]byte) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("the reader's own error became %v", err)
	}
	for _, other := range []appendlog.Position{{Number: 6, Before: 11}, {Number: 8, Before: 11}, {Number: 7, Before: 12}} {
		if got, err := read(in, "log", other); !errors.Is(err, appendlog.ErrDamaged) || got != nil {
			t.Errorf("read as if it began at %v: %q, %v", other, got, err)
		}
	}
}

// A log that goes on in another file says so, and the record that says it does not count.
func TestEnd(t *testing.T) {
	in := disk.Dir(t.TempDir())
	l, err := appendlog.Create(in, "log", appendlog.First)
	must(t, err, l.Append([]byte("one")))
	next := l.Position()
	must(t, l.End([]byte("again")), l.Close())
	c, err := appendlog.Read(in, "log", appendlog.First, true, func([]byte) error { return nil })
	if err != nil || !c.Ended || c.Next != next || next.Number != 2 {
		t.Errorf("%+v, %v, want the end, and %+v", c, err, next)
	}
}

// A crash leaves of the last record any of its sectors, and of those before all.
func TestCrash(t *testing.T) {
	in := disk.Dir(t.TempDir())
	want := []string{"first", "second", string(bytes.Repeat([]byte("x"), 2000))}
	text, ends := write(t, in, "log", appendlog.First, want...)
	for lost := range 1 << 4 { // of the last record's sectors
		torn := bytes.Clone(text)
		for s := range int64(4) {
			if lost>>s&1 == 1 {
				clear(torn[ends[1]+512*s : ends[1]+512*(s+1)])
			}
		}
		must(t, os.WriteFile(in.Path("log"), torn, 0o600))
		n := 2
		if lost == 0 {
			n = 3
		}
		if got, err := read(in, "log", appendlog.First); err != nil || !slices.Equal(got, want[:n]) {
			t.Fatalf("without the sectors %b: %d groups, %v, want %d", lost, len(got), err, n)
		}
	}
}

// Whatever happens to one place of a log, its groups are read, or the error says where the damage is.
// Only the last one may be lost without.
func TestDamage(t *testing.T) {
	in := disk.Dir(t.TempDir())
	r := rand.New(rand.NewPCG(1, 2))
	var want []string
	for i := range 60 {
		want = append(want, fmt.Sprint("group ", i, string(bytes.Repeat([]byte{byte(i)}, r.IntN(3000)))))
	}
	text, ends := write(t, in, "log", appendlog.First, want...)
	size := ends[len(ends)-1]
	other, _ := write(t, in, "other", appendlog.First, want[30:]...)
	kinds := []struct {
		what   string
		damage func(at int64) []byte
	}{
		{"another bit", func(at int64) []byte {
			other := bytes.Clone(text)
			other[at] ^= 1 << r.IntN(8)
			return other
		}},
		{"a wrong length", func(at int64) []byte {
			other := bytes.Clone(text)
			i, _ := slices.BinarySearch(ends, at)
			begin := int64(0)
			if i > 0 {
				begin = ends[i-1]
			}
			other[begin+4+r.Int64N(4)] ^= 1 << r.IntN(8)
			return other
		}},
		{"a sector of zeros", func(at int64) []byte {
			other := bytes.Clone(text)
			clear(other[at/512*512:][:512])
			return other
		}},
		{"a sector of another log", func(at int64) []byte {
			changed := bytes.Clone(text)
			copy(changed[at/512*512:][:512], other[at%int64(len(other))/512*512:])
			return changed
		}},
		{"cut", func(at int64) []byte { return text[:at] }},
		{"a record twice", func(at int64) []byte { return slices.Concat(text[:at/512*512], text) }},
		{"a piece missing", func(at int64) []byte {
			at = at / 512 * 512
			return slices.Concat(text[:at], text[min(at+512*(1+r.Int64N(4)), size):])
		}},
	}
	tries := 400
	if testing.Short() {
		tries = 100
	}
	for _, kind := range kinds {
		for range tries {
			at := r.Int64N(size)
			must(t, os.WriteFile(in.Path("log"), kind.damage(at), 0o600))
			got, err := read(in, "log", appendlog.First)
			if !slices.Equal(got, want[:len(got)]) {
				t.Fatalf("%s at %d: other groups", kind.what, at)
			}
			damage, told := errors.AsType[*appendlog.Damage](err)
			if !told && len(got) < len(want)-1 || told && (damage.File != in.Path("log") || damage.Offset > at+512) {
				t.Fatalf("%s at %d: %d of %d groups, %v", kind.what, at, len(got), len(want), err)
			}
			checkSalvage(t, in, kind.what, want, err != nil)
		}
	}
}

// checkSalvage compares what can be read of a damaged log with what was written.
func checkSalvage(t *testing.T, in disk.Folder, what string, want []string, damaged bool) {
	t.Helper()
	last, n := int64(0), 0
	_, damages, err := appendlog.Salvage(in, "log", appendlog.First, true, func(number int64, g []byte) error {
		if number <= last {
			return fmt.Errorf("record %d after %d", number, last)
		}
		i := slices.Index(want, string(g))
		if i < 0 || int64(i) < last-20 {
			return fmt.Errorf("record %d is none that was written, or of another place", number)
		}
		last, n = number, n+1
		return nil
	})
	if err != nil || damaged != (len(damages) > 0) || what != "cut" && n < len(want)-6 {
		t.Fatalf("%s: %d of %d groups, damages %v, %v", what, n, len(want), damages, err)
	}
}

// A file that Create had not made yet may have any length.
func TestBegun(t *testing.T) {
	in := disk.Dir(t.TempDir())
	must(t, os.WriteFile(in.Path("log"), make([]byte, 100), 0o600))
	none := func([]byte) error { return errors.New("a group") }
	if c, err := appendlog.Read(in, "log", appendlog.First, false, none); err != nil || c.Next != appendlog.First {
		t.Errorf("%+v, %v", c, err)
	}
	if _, err := appendlog.Read(in, "log", appendlog.First, true, none); !errors.Is(err, appendlog.ErrDamaged) {
		t.Error(err)
	}
}

func TestSeal(t *testing.T) {
	sealed, err := appendlog.Seal("a", []byte("content"))
	must(t, err)
	if got, err := appendlog.Unseal("a", sealed); err != nil || string(got) != "content" {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := appendlog.Unseal("b", sealed); !errors.Is(err, appendlog.ErrDamaged) {
		t.Errorf("under another name: %v", err)
	}
	for at := range sealed {
		other := bytes.Clone(sealed)
		other[at] ^= 0x20
		for _, damaged := range [][]byte{other, sealed[:at], append(bytes.Clone(sealed), 0)} {
			if got, err := appendlog.Unseal("a", damaged); !errors.Is(err, appendlog.ErrDamaged) {
				t.Fatalf("%d: %q, %v", at, got, err)
			}
		}
	}
}

// TestOtherForm: a record of another form is refused, and is neither damage nor the end of the log.
func TestOtherForm(t *testing.T) {
	in := disk.Dir(t.TempDir())
	text, ends := write(t, in, "log", appendlog.First, "one", "two")
	for _, at := range append([]int64{0}, ends[:1]...) {
		other := bytes.Clone(text)
		other[at+3]++
		binary.LittleEndian.PutUint32(other[at+36:], checksum.Of(other[at:at+36], other[at+40:at+43]))
		must(t, os.WriteFile(in.Path("log"), other, 0o600))
		_, err := read(in, "log", appendlog.First)
		_, _, salvage := appendlog.Salvage(in, "log", appendlog.First, true, func(int64, []byte) error { return nil })
		for _, err := range []error{err, salvage} {
			if e, is := errors.AsType[*format.Error](err); !is || e.Found != 3 || errors.Is(err, appendlog.ErrDamaged) {
				t.Errorf("at byte %d: %v", at, err)
			}
		}
	}
}

// small is a folder on a disk with so much space.
type small struct {
	disk.Folder
	space int64
	dead  bool // takes nothing back either
}

type smallFile struct {
	disk.File
	on *small
}

func (s *small) Create(name string, perm os.FileMode) (disk.File, error) {
	f, err := s.Folder.Create(name, perm)
	return smallFile{f, s}, err
}

func (f smallFile) WriteAt(p []byte, at int64) (int, error) {
	if f.on.dead {
		return 0, syscall.EIO
	}
	if at+int64(len(p)) > f.on.space {
		n, err := f.File.WriteAt(p[:max(f.on.space-at, 0)], at)
		return n, errors.Join(err, syscall.ENOSPC)
	}
	return f.File.WriteAt(p, at)
}

func TestFull(t *testing.T) {
	in := &small{Folder: disk.Dir(t.TempDir()), space: 1_100_000}
	l, err := appendlog.Create(in, "log", appendlog.First)
	must(t, err, l.Append([]byte("first")))
	for _, in.dead = range []bool{false, true, true} {
		if err := l.Append(bytes.Repeat([]byte("x"), 1_100_000)); !errors.Is(err, syscall.ENOSPC) && !errors.Is(err, syscall.EIO) {
			t.Errorf("got %v", err)
		}
	}
	in.dead, in.space = false, 10_000_000
	must(t, l.Append([]byte("second")), l.Close())
	if got, err := read(in, "log", appendlog.First); err != nil || !slices.Equal(got, []string{"first", "second"}) {
		t.Errorf("%q, %v", got, err)
	}
}

// syncs is a folder whose files fail to sync once, with what they wrote on the disk.
type syncs struct {
	disk.Folder
	fail bool
}

type syncsFile struct {
	disk.File
	of *syncs
}

func (s *syncs) Create(name string, perm os.FileMode) (disk.File, error) {
	f, err := s.Folder.Create(name, perm)
	return syncsFile{f, s}, err
}

func (f syncsFile) Sync() error {
	if f.of.fail {
		f.of.fail = false
		return syscall.EIO
	}
	return f.File.Sync()
}

// A group whose sync failed is not in the log.
func TestFailedSync(t *testing.T) {
	in := &syncs{Folder: disk.Dir(t.TempDir())}
	l, err := appendlog.Create(in, "log", appendlog.First)
	must(t, err, l.Append([]byte("one")))
	in.fail = true
	if err := l.Append(bytes.Repeat([]byte("two"), 400)); !errors.Is(err, syscall.EIO) {
		t.Error(err)
	}
	must(t, l.Append([]byte("three")), l.Close())
	if got, err := read(in, "log", appendlog.First); err != nil || !slices.Equal(got, []string{"one", "three"}) {
		t.Errorf("%q, %v", got, err)
	}
}

func FuzzRead(f *testing.F) {
	text, _ := write(f, disk.Dir(f.TempDir()), "log", appendlog.First, "one", "two")
	f.Add(text)
	f.Add(text[:2000])
	f.Fuzz(func(t *testing.T, text []byte) {
		in := disk.Dir(t.TempDir())
		must(t, os.WriteFile(filepath.Join(string(in), "log"), text, 0o600))
		groups, err := read(in, "log", appendlog.First)
		n := 0
		_, damages, other := appendlog.Salvage(in, "log", appendlog.First, true, func(int64, []byte) error { n++; return nil })
		if other != nil || n < len(groups) || (err == nil) != (len(damages) == 0) {
			t.Errorf("%d groups, %v; of the damaged log %d, %v, %v", len(groups), err, n, damages, other)
		}
	})
}
