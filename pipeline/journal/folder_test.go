package journal_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/leadetl/leadetl/pipeline/journal"
	"github.com/leadetl/leadetl/pipeline/journal/journaltest"
)

func TestFolder(t *testing.T) {
	f, err := journal.NewFolder(t.TempDir(), "out")
	if err != nil {
		t.Fatal(err)
	}
	journaltest.Lists(t, f)
}

func TestDatasetName(t *testing.T) {
	t.Chdir(t.TempDir())
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for out, want := range map[string]string{"s3://bucket/out": "s3://bucket/out", "out": filepath.Join(here, "out")} {
		if name, err := journal.DatasetName(out); name != want || err != nil {
			t.Errorf("%s: %s, %v; want %s", out, name, err, want)
		}
	}
}

// TestUnreadableJournal: a journal that is there and cannot be read is no missing one.
func TestUnreadableJournal(t *testing.T) {
	f, err := journal.NewFolder(t.TempDir(), "out")
	if err != nil {
		t.Fatal(err)
	}
	if _, parts, err := journal.New(f).Read(); parts != nil || err != nil {
		t.Errorf("a missing one: %v, %v", parts, err)
	}
	if err := os.MkdirAll(f.String(), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, _, err := journal.New(f).Read(); err == nil {
		t.Error("a folder was read")
	}
}
