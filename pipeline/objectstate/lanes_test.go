package objectstate

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leadetl/leadetl/internal/objects"
	"github.com/leadetl/leadetl/pipeline/answers"
)

// withLanes is a bench with the state of testdata/lanes, which an earlier version has
// left: of its two lanes, one was killed with an answer and an open call in its log,
// and the other has an answer in a file.
func withLanes(t *testing.T) (bench, *State) {
	t.Helper()
	b, from := newBench(t), "testdata/lanes"
	must(t, filepath.WalkDir(from, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		must(t, err)
		name, err := filepath.Rel(from, path)
		must(t, err)
		_, err = b.store.Put(t.Context(), objects.Location{Bucket: bucket, Key: "state/" + filepath.ToSlash(name)}, objects.ContentOf(data, ""))
		return err
	}))
	past := time.Now().Add(-time.Hour)
	leases, err := filepath.Glob(filepath.Join(b.server.Dir, bucket, "state/lease/*"))
	must(t, err)
	for _, lease := range leases {
		must(t, os.Chtimes(lease, past, past))
	}
	return b, b.state(t, "state")
}

// TestLanes: what open lanes have is seen by who only looks, and is in the scope after
// the next session, once. Nothing of them is left but fences.
func TestLanes(t *testing.T) {
	b, s := withLanes(t)
	before := contentOf(t, t.Context(), s, people)
	for range 2 {
		x, err := b.state(t, "state").Write(t.Context(), people, t.TempDir())
		must(t, err)
		must(t, x.Answers.Load(t.Context(), nil))
		a := &attempt{Session: x}
		for key, want := range map[string]answers.Found{
			"a": {Stored: true}, "b": {Stored: true}, "c": {Stored: true}, "z": {Stored: true},
			"d": {Open: answers.Unknown}, "e": {Open: answers.Unknown}, "y": {Open: answers.Unknown},
		} {
			if got := a.find(t, t.Context(), key); got.Stored != want.Stored || got.Open != want.Open {
				t.Errorf("%s: found %+v, want %+v", key, got, want)
			}
		}
		spent, _, err := x.Answers.SumSpent(t.Context(), "night")
		if want := (answers.Spending{Answers: 2, Credits: 4}); err != nil || spent != want || unknownOf(t, x, "night") != 3 {
			t.Errorf("spent %+v, %v, want %+v", spent, err, want)
		}
		must(t, x.Close(t.Context()))
		after := contentOf(t, t.Context(), s, people)
		if len(before.Items) != 4 || len(before.Calls) != 3 || len(after.Items) != 4 || len(after.Calls) != 3 {
			t.Errorf("%d answers and %d open calls with open lanes, %d and %d after, want 4 and 3", len(before.Items), len(before.Calls), len(after.Items), len(after.Calls))
		}
		if m, err := s.latest(t.Context(), people); err != nil || m.Lanes != nil || m.Format != formatWithoutLanes {
			t.Errorf("the manifest is %+v, %v", m, err)
		}
	}
	must(t, filepath.WalkDir(filepath.Join(b.folder(s, people), "lanes"), func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			data, err := os.ReadFile(path)
			must(t, err)
			if !strings.Contains(string(data), `"fence":true`) {
				t.Errorf("%s is left", path)
			}
		}
		return err
	}))
}
