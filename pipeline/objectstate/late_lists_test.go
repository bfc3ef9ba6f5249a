package objectstate

import (
	"testing"

	"github.com/leadetl/leadetl/internal/s3test"
	"github.com/leadetl/leadetl/pipeline/answers"
)

// TestTakeOverWithOldLists: a list that lacks the newest segment of the log, or the manifest that
// was just published, loses no call.
func TestTakeOverWithOldLists(t *testing.T) {
	lists := s3test.NewLate(t)
	open := func() *State { return lateState(t, lists, 0) }
	first := takeOver(t, t.Context(), open(), t.TempDir(), "night")
	for _, key := range []string{"a", "b"} {
		_, err := first.Answers.Intent(t.Context(), question(key), answers.Send{Run: "night", At: noon})
		must(t, err)
	}
	for _, lists.Lacks = range []string{segmentName(first.log.next - 1), manifestName(3)} {
		next := takeOver(t, t.Context(), open(), t.TempDir(), "night")
		for _, key := range []string{"a", "b"} {
			if f := next.find(t, t.Context(), key); f.Open != answers.Unknown {
				t.Errorf("without %s in lists the call of %s is %q", lists.Lacks, key, f.Open)
			}
		}
		must(t, next.Answers.Close())
	}
	must(t, first.Answers.Close())
}

// TestListLacksOlderSegment: what a number says must exist is read by its name, not by the list.
func TestListLacksOlderSegment(t *testing.T) {
	lists := s3test.NewLate(t)
	open := func() *State { return lateState(t, lists, 0) }
	first := takeOver(t, t.Context(), open(), t.TempDir(), "night")
	for _, key := range []string{"a", "b", "c"} {
		_, err := first.Answers.Intent(t.Context(), question(key), answers.Send{Run: "night", At: noon})
		must(t, err)
	}
	lists.Lacks = segmentName(first.log.next - 2)
	next := takeOver(t, t.Context(), open(), t.TempDir(), "night")
	for _, key := range []string{"a", "b", "c"} {
		if f := next.find(t, t.Context(), key); f.Open != answers.Unknown {
			t.Errorf("the call of %s is %q", key, f.Open)
		}
	}
	must(t, next.Answers.Close())
	must(t, first.Answers.Close())
}
