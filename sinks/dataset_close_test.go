package sinks

import (
	"os"
	"path/filepath"
	"testing"
)

func TestCloseRemovesTheFolderOpenMadeUnlessItWasUsed(t *testing.T) {
	for _, used := range []bool{false, true} {
		root := t.TempDir()
		d, err := Open(t.Context(), filepath.Join(root, "a/out"), Options{})
		if err != nil {
			t.Fatal(err)
		}
		if used {
			if err := os.WriteFile(filepath.Join(root, "a/out/part-00000.parquet"), nil, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(filepath.Join(root, "a")); (err == nil) != used {
			t.Errorf("used %v: after Close, %v", used, err)
		}
	}
}
