package journal_test

import (
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
