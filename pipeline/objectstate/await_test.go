package objectstate

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leadetl/leadetl/internal/objects"
	"github.com/leadetl/leadetl/internal/s3test"
	"github.com/leadetl/leadetl/pipeline/answers"
)

// TestLateObjects: whatever must exist is awaited for a minute, or as long as a store is. Then a
// run ends, to be repeated, and the next one that ends on the same object says that it is damage.
func TestLateObjects(t *testing.T) {
	leaveLate(t, lateState(t, s3test.NewLate(t), time.Minute)) // codecs have goroutines, which are no bubble's
	for kind, hides := range map[string]string{
		"a segment": "/log/000000000002.seg", "a file of answers": "/f/", "open calls": "/c/", "the manifest": "/v/",
	} {
		for _, giveUpAfter := range []time.Duration{15 * time.Minute, 20 * time.Second} {
			t.Run(kind+" "+giveUpAfter.String(), func(t *testing.T) {
				store := s3test.NewLate(t)
				synctest.Test(t, func(t *testing.T) { tryLate(t, store, hides, giveUpAfter) })
			})
		}
	}
}

func lateState(t *testing.T, store *s3test.Late, giveUpAfter time.Duration) *State {
	s, err := Open(store.Client(t, giveUpAfter, 0), "s3://leads/state/")
	must(t, err)
	return s
}

// leaveLate leaves what a killed run does, and returns the number of the last segment of its log.
func leaveLate(t *testing.T, s *State) int64 {
	_, err := s.Take(t.Context(), people, inOrder(answerTo(people, "a", "{}", time.Now())), []answers.OpenCall{callTo(people, "open", answers.Unknown, time.Now())})
	must(t, err)
	killed := takeOver(t, t.Context(), s, t.TempDir(), "night")
	for _, key := range []string{"b", "c", "d"} {
		_, err := killed.Answers.Intent(t.Context(), question(key), answers.Send{Run: "night", At: time.Now()})
		must(t, err)
	}
	must(t, killed.Answers.Close())
	return killed.log.next - 1
}

func tryLate(t *testing.T, late *s3test.Late, hides string, giveUpAfter time.Duration) {
	open := func() *State { return lateState(t, late, giveUpAfter) }
	last := leaveLate(t, open())
	if hides == "/log/000000000002.seg" {
		hides = segmentName(last - 1)
	}
	read := func(s *State) (time.Duration, error) {
		began := time.Now()
		if _, err := s.Scopes(t.Context()); err != nil {
			return time.Since(began), err
		}
		x, err := s.Look(t.Context(), people, filepath.Join(t.TempDir(), "copy"))
		if err == nil {
			err = errors.Join(x.Answers.Load(t.Context(), nil), x.Close(t.Context()))
		}
		return time.Since(began), err
	}
	patience := min(time.Minute, giveUpAfter)
	hide := func(d time.Duration) { late.Hides, late.Until = hides, time.Now().Add(d) }

	hide(patience / 2)
	if took, err := read(open()); err != nil || took < patience/2 || took > patience {
		t.Errorf("late by %s: %v after %s", patience/2, err, took)
	}
	hide(24 * time.Hour)
	if found, err := open().Inspect(t.Context()); err != nil || len(found.Damages) == 0 {
		t.Errorf("inspected: %+v, %v", found, err)
	}
	for range 2 { // the damage is forgotten once a run has read all
		hide(24 * time.Hour)
		run := open()
		took, err := read(run)
		if !errors.Is(err, objects.ErrLate) || errors.Is(err, ErrDamaged) || took < patience || took > patience+time.Second {
			t.Errorf("the first run ended with %v after %s", err, took)
		} else if !strings.Contains(err.Error(), hides) || !strings.Contains(err.Error(), "doctor --state s3://leads/state/") {
			t.Errorf("it says: %v", err)
		}
		if took, err := read(run); !errors.Is(err, objects.ErrLate) || errors.Is(err, ErrDamaged) || took > time.Second {
			t.Errorf("what it closes ended with %v after %s", err, took)
		}
		for range 2 {
			if _, err := read(open()); !errors.Is(err, ErrDamaged) || errors.Is(err, objects.ErrLate) || !strings.Contains(err.Error(), hides) {
				t.Errorf("the next run ended with %v", err)
			}
		}
		late.Hides = ""
		x, err := open().Write(t.Context(), people, filepath.Join(t.TempDir(), "copy"))
		must(t, err)
		must(t, errors.Join(x.Answers.Load(t.Context(), nil), x.Close(t.Context())))
		if strings.HasPrefix(hides, "log/") {
			return // it is in files now
		}
	}
}
