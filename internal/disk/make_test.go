package disk

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestRemoveEmptyLeavesWhatWasThereOrIsUsed(t *testing.T) {
	for _, c := range []struct {
		name   string
		before string // folder that is there before
		during string // file that comes afterwards
		stays  string
		goes   string
	}{
		{"unused", "", "", ".", "a"},
		{"the last folder made", "a", "", "a", "a/b"},
		{"there before", "a/b/c", "", "a/b/c", ""},
		{"used", "", "a/b/c/file", "a/b/c/file", ""},
		{"a folder above used by another", "", "a/other", "a/other", "a/b"},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := t.TempDir()
			if err := os.MkdirAll(filepath.Join(root, c.before), 0o755); err != nil {
				t.Fatal(err)
			}
			made, err := Dir(filepath.Join(root, "a/b/c")).Make(0o755)
			if err != nil {
				t.Fatal(err)
			}
			if c.during != "" {
				if err := os.WriteFile(filepath.Join(root, c.during), nil, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			made.RemoveEmpty()
			if _, err := os.Stat(filepath.Join(root, c.stays)); err != nil {
				t.Errorf("%s should be there: %v", c.stays, err)
			}
			if _, err := os.Stat(filepath.Join(root, c.goes)); c.goes != "" && err == nil {
				t.Errorf("%s should be gone", c.goes)
			}
		})
	}
}

func TestMakeThatFailsLeavesNothing(t *testing.T) {
	root := t.TempDir()
	file := filepath.Join(root, "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Dir(filepath.Join(file, "a")).Make(0o755); err == nil {
		t.Error("a folder was made in a file")
	}
	if _, err := os.Stat(file); err != nil {
		t.Error(err)
	}
}

// A folder's entry lies in its parent: that is what must reach the disk.
func TestMakeSyncsTheParents(t *testing.T) {
	broken := errors.New("broken disk")
	for _, c := range []struct {
		name   string
		before string // folder that is there before
		fails  string // folder whose sync fails
		want   []string
		goes   string
	}{
		{"all of them", "", "", []string{".", "a", "a/b"}, ""},
		{"some of them", "a", "", []string{".", "a", "a/b"}, ""},
		{"none of them", "a/b/c", "", []string{"a/b"}, ""},
		{"failing", "", "a", []string{".", "a"}, "a"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			if err := os.MkdirAll(filepath.Join(".", c.before), 0o755); err != nil {
				t.Fatal(err)
			}
			var synced []string
			_, err := Dir("a/b/c").make(0o755, func(dir Dir) error {
				synced = append(synced, string(dir))
				if string(dir) == c.fails {
					return broken
				}
				return nil
			})
			if !slices.Equal(synced, c.want) || errors.Is(err, broken) != (c.fails != "") {
				t.Errorf("synced %q, want %q; %v", synced, c.want, err)
			}
			if _, err := os.Stat(c.goes); c.goes != "" && err == nil {
				t.Errorf("%s should be gone", c.goes)
			}
		})
	}
	if made, err := Dir(filepath.Join(t.TempDir(), "a/b")).Make(0o755); err != nil || len(made) != 2 {
		t.Errorf("on a real disk: %q, %v", made, err)
	}
}
