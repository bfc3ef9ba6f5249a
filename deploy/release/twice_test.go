package main

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// TestTwice makes the release in two clones, the second time for somebody else: with an
// empty cache, in another time zone, with another umask, from files of another day.
// The checksums are the same. LEADETL_PLATFORMS are the platforms.
func TestTwice(t *testing.T) {
	platforms := os.Getenv("LEADETL_PLATFORMS")
	if platforms == "" {
		t.Skip("NOT RUN: it is part of make test-long")
	}
	needs(t, "git", "make", "go")
	folder := t.TempDir()
	makeIn := func(clone string, environment ...string) string {
		t.Helper()
		root := filepath.Join(folder, clone)
		run(t, folder, "git", "clone", "--quiet", repositoryPath(t), root)
		age(t, root, time.Duration(len(clone))*24*time.Hour)
		c := exec.Command("sh", "-c", `umask $MASK; exec make --no-print-directory release "PLATFORMS=$PLATFORMS" VERSION=v0.9.0`)
		c.Dir = root
		c.Env = append(append(os.Environ(), "PLATFORMS="+platforms), environment...)
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("make release: %v\n%s", err, out)
		}
		sums, err := os.ReadFile(filepath.Join(root, "dist", sumsName))
		if err != nil {
			t.Fatal(err)
		}
		return string(sums)
	}
	first := makeIn("one", "MASK=022", "TZ=UTC")
	second := makeIn("another/deeper", "MASK=077", "TZ=Pacific/Auckland", "LC_ALL=C", "GOCACHE="+t.TempDir())
	if first != second {
		t.Errorf("the first time\n%sthe second time\n%s", first, second)
	}
	t.Logf("the same twice:\n%s", first)
}

func repositoryPath(t *testing.T) string {
	path, err := filepath.Abs(repository)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// age makes the files of a folder older.
func age(t *testing.T, folder string, by time.Duration) {
	then := time.Now().Add(-by)
	if err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			err = os.Chtimes(path, then, then)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
}
