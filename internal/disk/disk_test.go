package disk_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/leadetl/leadetl/internal/atomicfile"
	"github.com/leadetl/leadetl/internal/disk"
	"github.com/leadetl/leadetl/internal/filelock"
	"github.com/leadetl/leadetl/internal/testkit/worldtest"
)

// TestFolder: a folder of the file system and a simulated one do the same.
func TestFolder(t *testing.T) {
	w := worldtest.New(1, nil)
	w.Begin(t.Context(), 0)
	for name, in := range map[string]disk.Folder{"Dir": disk.Dir(t.TempDir()), "Disk": worldtest.NewDisk(w)} {
		t.Run(name, func(t *testing.T) { testFolder(t, in.In("made/folder")) })
		t.Run(name+", folders", func(t *testing.T) { testFolders(t, in) })
	}
}

func testFolder(t *testing.T, in disk.Folder) {
	missing := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v, want fs.ErrNotExist", what, err)
		}
	}
	must := func(errs ...error) {
		t.Helper()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
	}
	names := func(want ...string) {
		t.Helper()
		if got, err := disk.Names(in); err != nil || !slices.Equal(got, want) {
			t.Errorf("there are %q, want %q; %v", got, want, err)
		}
	}
	content := func(name, want string) {
		t.Helper()
		if got, err := in.ReadFile(name); err != nil || string(got) != want {
			t.Errorf("%s has %q, want %q; %v", name, got, want, err)
		}
	}
	write := func(f disk.File, err error, text string, at int64) {
		t.Helper()
		must(err)
		_, err = f.WriteAt([]byte(text), at)
		must(err, f.Sync(), f.Close())
	}
	_, err := disk.Names(in)
	missing("list a folder that is not there", err)
	_, err = in.Create("a", 0o600)
	missing("create in it", err)
	missing("sync it", in.Sync())
	must(in.RemoveAll())
	for _, n := range []int{2, 0} {
		if made, err := in.Make(0o700); err != nil || len(made) != n {
			t.Errorf("it made %d folders, want %d; %v", len(made), n, err)
		}
	}
	must(in.Sync())
	names()
	_, err = in.ReadFile("a")
	missing("read", err)
	_, err = in.Open("a")
	missing("open", err)
	missing("rename", in.Rename("a", "b"))
	missing("remove", in.Remove("a"))
	f, err := in.Create("b", 0o600)
	write(f, err, "long text", 0)
	f, err = in.Create("b", 0o600)
	write(f, err, "text", 0)
	content("b", "text")
	f, err = in.Create("a", 0o600)
	must(err)
	write(f, f.Truncate(0), "other", 2)
	content("a", "\x00\x00other")
	names("a", "b")
	must(in.Rename("a", "b"))
	names("b")
	content("b", "\x00\x00other")
	if path := in.Path("b"); filepath.Base(filepath.Dir(path)) != "folder" || filepath.Base(path) != "b" {
		t.Errorf("its path is %s", path)
	}
	f, err = in.Create("c", 0o600)
	must(err)
	_, err = f.WriteAt([]byte("cut off"), 0)
	must(err, f.Truncate(3), f.Close())
	content("c", "cut")
	must(in.Remove("c"))
	names("b")
	must(in.RemoveAll())
	_, err = disk.Names(in)
	missing("list it after it was removed", err)
}

// testFolders uses folders in a folder that is empty, but for made.
func testFolders(t *testing.T, in disk.Folder) {
	did := func(what string, err, want error) {
		t.Helper()
		if !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", what, err, want)
		}
	}
	a, b := in.In("a"), in.In("a").In("b")
	_, err := b.Lock()
	did("lock a folder that is not there", err, fs.ErrNotExist)
	made, err := b.Make(0o755)
	did("make", err, nil)
	for _, name := range []string{"a/b/file", "a/b.txt", "a/other"} {
		did("write", atomicfile.WriteIn(in.In(path.Dir(name)), path.Base(name), []byte(name)), nil)
	}
	_, err = in.In("a/other/c").Make(0o755)
	did("make a folder in a file", err, syscall.ENOTDIR)
	_, err = in.Stat("a/other/c")
	did("look for a file in a file", err, syscall.ENOTDIR)
	_, err = in.Create("a/b", 0o644)
	did("create a file over a folder", err, syscall.EISDIR)
	testListing(t, in)
	testReading(t, a)

	lock, err := b.Lock()
	did("lock", err, nil)
	_, err = b.Lock()
	did("lock again", err, filelock.ErrLocked)
	did("release", lock.Release(), nil)
	if lock, err = b.Lock(); err == nil {
		err = lock.Release()
	}
	did("lock after it was released", err, nil)

	above, err := b.Above()
	did("go up", err, nil)
	if names, err := disk.Names(above); err != nil || !slices.Equal(names, []string{"b", "b.txt", "other"}) {
		t.Errorf("above %s are %q, %v", b.Path("."), names, err)
	}
	for above != nil && err == nil {
		above, err = above.Above()
	}
	did("go up to the root", err, nil)
	_, err = in.In("missing").Above()
	did("go up from a folder that is not there", err, fs.ErrNotExist)

	did("remove a folder with a file", in.Remove("a/b"), syscall.ENOTEMPTY)
	made.RemoveEmpty()
	did("remove its file", in.Remove("a/b/file"), nil)
	made.RemoveEmpty()
	_, err = b.Stat(".")
	did("look for the empty folder", err, fs.ErrNotExist)
	_, err = a.Stat("other")
	did("look for a file beside it", err, nil)
	did("make it again", second(b.In("c").Make(0o755)), nil)
	did("remove all", errors.Join(a.RemoveAll(), a.RemoveAll()), nil)
	_, err = in.Stat("a")
	did("look for all", err, fs.ErrNotExist)
}

func second[T any](_ T, err error) error { return err }

// tree is a folder as an fs.FS.
type tree struct{ disk.Folder }

func (t tree) Open(name string) (fs.File, error) { return t.Folder.Open(name) }

func testListing(t *testing.T, in disk.Folder) {
	var walked []string
	err := fs.WalkDir(tree{in}, "a", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		text := fmt.Sprint(name, " ", d.IsDir(), " ", d.Type().IsRegular())
		if !d.IsDir() {
			text += fmt.Sprint(" ", info.Size())
		}
		walked = append(walked, text)
		return err
	})
	if want := []string{"a true false", "a/b true false", "a/b/file false true 8", "a/b.txt false true 7", "a/other false true 7"}; err != nil || !slices.Equal(walked, want) {
		t.Errorf("walked to %q, want %q; %v", walked, want, err)
	}
	if _, err := in.ReadDir("a/other"); !errors.Is(err, syscall.ENOTDIR) {
		t.Errorf("a file is listed: %v", err)
	}
}

func testReading(t *testing.T, in disk.Folder) {
	f, err := in.Open("other")
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(f)
	if err != nil || string(text) != "a/other" {
		t.Errorf("read %q, %v", text, err)
	}
	some := make([]byte, 8)
	if n, err := f.ReadAt(some, 2); err != io.EOF || string(some[:n]) != "other" {
		t.Errorf("read %q, %v", some[:n], err)
	}
	before, err := f.Stat()
	if err != nil || before.Size() != 7 || before.Name() != "other" || time.Since(before.ModTime()).Abs() > time.Hour {
		t.Errorf("it is %v, %v", before, err)
	}
	if err := errors.Join(f.Close(), atomicfile.WriteIn(in, "other", []byte("b/other"))); err != nil {
		t.Fatal(err)
	}
	if after, err := in.Stat("other"); err != nil || after.ModTime().Before(before.ModTime()) {
		t.Errorf("it was written at %v, and then at %v; %v", before.ModTime(), after, err)
	}
}
