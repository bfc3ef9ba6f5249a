package objectstate

import (
	"errors"
	"io/fs"
	"strings"
	"testing"

	"github.com/leadetl/leadetl/internal/objects"
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

// TestOldListsOfRuns: no object of a journal is overlooked for lists that lack it, and no nights are begun anew.
func TestOldListsOfRuns(t *testing.T) {
	for _, lacks := range []string{"/journal/", "/journal/0000000002", "/journal/0000000001", "/nights/", "/runs/"} {
		store := s3test.NewLate(t)
		leaveLate(t, lateState(t, store, 0))
		store.Lacks = lacks
		s := lateState(t, store, 0)
		p, err := s.Progress(t.Context(), "s3://leads/out/", false)
		must(t, err)
		if lines, err := p.Read(); err != nil || string(lines) != "{}\n{}\n{}\n" {
			t.Errorf("without %s in lists: %q, %v", lacks, lines, err)
		}
		must(t, errors.Join(p.Begin([]byte("again\n")), p.Release()))
		nights := s.Nights(t.Context(), "nights/job")
		must(t, nights.Update(func(data []byte) ([]byte, error) { return append(data, "[]"...), nil }))
		if data, err := nights.Get(); err != nil || string(data) != "[][]" {
			t.Errorf("without %s in lists: nights %q, %v", lacks, data, err)
		}
	}
}

// TestUnseen: what neither a read nor a list shows is not begun anew, and the run ends, to be repeated.
func TestUnseen(t *testing.T) {
	store := s3test.NewLate(t)
	leaveLate(t, lateState(t, store, 0))
	for what, begin := range map[string]func(*State) error{
		"/journal/": func(s *State) error {
			p, err := s.Progress(t.Context(), "s3://leads/out/", false)
			must(t, err)
			if _, err := p.Read(); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("read with %v", err)
			}
			return errors.Join(p.Begin([]byte("new\n")), p.Release())
		},
		"/nights/job": func(s *State) error {
			return s.Nights(t.Context(), "nights/job").Update(func([]byte) ([]byte, error) { return []byte("new"), nil })
		},
	} {
		store.Lacks, store.Hides = what, what
		if err := begin(lateState(t, store, 0)); !errors.Is(err, objects.ErrLate) || errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v, want %v", what, err, objects.ErrLate)
		}
	}
	store.Lacks, store.Hides = "", ""
	p, err := lateState(t, store, 0).Progress(t.Context(), "s3://leads/out/", true)
	must(t, err)
	if lines, err := p.Read(); err != nil || string(lines) != "{}\n{}\n{}\n" {
		t.Errorf("afterwards: %q, %v", lines, err)
	}
}
