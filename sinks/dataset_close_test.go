package sinks

import (
	"os"
	"path/filepath"
	"testing"
)

func TestCloseRemovesOnlyWhatOpenMadeAndNobodyUsed(t *testing.T) {
	write := func(t *testing.T, path string) {
		t.Helper()
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name          string
		before        string // folder that is there before Open
		during        string // file that comes while the dataset is open
		remains, gone []string
	}{
		{"made and unused", "", "", nil, []string{"a"}},
		{"the last folder made", "a", "", []string{"a"}, []string{"a/b"}},
		{"there before", "a/b/out", "", []string{"a/b/out"}, nil},
		{"written to", "", "a/b/out/part-00000.parquet", []string{"a/b/out/part-00000.parquet"}, nil},
		{"a folder above used by another", "", "a/other", []string{"a/other"}, []string{"a/b"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := t.TempDir()
			if c.before != "" {
				if err := os.MkdirAll(filepath.Join(root, c.before), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			d, err := Open(filepath.Join(root, "a/b/out"))
			if err != nil {
				t.Fatal(err)
			}
			if c.during != "" {
				write(t, filepath.Join(root, c.during))
			}
			if err := d.Close(); err != nil {
				t.Fatal(err)
			}
			for _, name := range c.remains {
				if _, err := os.Stat(filepath.Join(root, name)); err != nil {
					t.Errorf("%s should be there: %v", name, err)
				}
			}
			for _, name := range c.gone {
				if _, err := os.Stat(filepath.Join(root, name)); err == nil {
					t.Errorf("%s should be gone", name)
				}
			}
		})
	}
}
