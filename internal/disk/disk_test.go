package disk_test

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"testing"

	"github.com/leadetl/leadetl/internal/disk"
	"github.com/leadetl/leadetl/internal/worldtest"
)

// TestFolder: a folder of the file system and a simulated one do the same.
func TestFolder(t *testing.T) {
	w := worldtest.New(1, nil)
	w.Begin(t.Context(), 0)
	simulated := worldtest.NewDisk(w)
	simulated.Name, simulated.Missing = "folder", true
	for name, in := range map[string]disk.Folder{"Dir": disk.Dir(filepath.Join(t.TempDir(), "made", "folder")), "Disk": simulated} {
		t.Run(name, func(t *testing.T) { testFolder(t, in) })
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
		if got, err := in.Names(); err != nil || !slices.Equal(got, want) {
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
	_, err := in.Names()
	missing("list a folder that is not there", err)
	_, err = in.Create("a", 0o600)
	missing("create in it", err)
	missing("sync it", in.Sync())
	must(in.RemoveAll(), in.Make(), in.Make(), in.Sync())
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
	f, err = in.Open("b")
	write(f, err, "s", 4)
	content("b", "texts")
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
	write(f, err, "cut off", 0)
	f, err = in.Open("c")
	must(err, f.Truncate(3), f.Close())
	content("c", "cut")
	must(in.Remove("c"))
	names("b")
	must(in.RemoveAll())
	_, err = in.Names()
	missing("list it after it was removed", err)
}
