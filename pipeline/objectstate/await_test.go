package objectstate

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leadetl/leadetl/internal/objects"
	"github.com/leadetl/leadetl/internal/testkit/s3test"
	"github.com/leadetl/leadetl/pipeline/answers"
)

// TestLateObjects: whatever must exist is awaited for a minute, or as long as a store is. Then a
// run ends, to be repeated, and the next one that ends on the same object says that it is damage.
func TestLateObjects(t *testing.T) {
	for kind, hides := range map[string]string{"a segment": "/log/", "a file of answers": "/answers-", "open calls": "/calls-", "the manifests": "/manifest-"} {
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
	s.Scratch = t.TempDir()
	return s
}

// leaveLate leaves what a killed run does: its lease is that of another machine, and expires.
func leaveLate(t *testing.T, late *s3test.Late, s *State) (last string) {
	stores := answers.NewStores(s, answers.Options{})
	_, err := stores.Take(t.Context(), people, inOrder(answerTo(people, "a", "{}", time.Now())), []answers.OpenCall{callTo(people, "open", answers.Unknown, time.Now())})
	must(t, errors.Join(err, stores.Close()))
	killed := answers.NewStores(s, answers.Options{})
	stored, err := killed.Of(t.Context(), people.Service)
	must(t, err)
	t.Cleanup(func() { _ = killed.Close() }) // its goroutines are all that a kill would end
	for _, key := range []string{"b", "c", "d"} {
		_, err := stored.Intent(t.Context(), answers.Question{Scope: people, Key: key}, answers.Send{Run: "night", At: time.Now()})
		must(t, err)
	}
	for info, err := range s.Files().List(t.Context(), answersFolder) {
		must(t, err)
		if strings.Contains(info.Name, "/log/") {
			last = info.Name
		}
	}
	late.Hides, late.Until = "", time.Time{}
	return last
}

func tryLate(t *testing.T, late *s3test.Late, hides string, giveUpAfter time.Duration) {
	open := func() *State { return lateState(t, late, giveUpAfter) }
	last := leaveLate(t, late, open())
	if hides == "/log/" { // one before the last: a later one shows that it was there
		var number int64
		_, err := fmt.Sscanf(last[strings.LastIndex(last, "/")+1:], "%d", &number)
		must(t, err)
		hides = fmt.Sprintf("/log/%010d", number-1)
	}
	read := func(s *State) (time.Duration, error) {
		began := time.Now()
		places, err := s.All(t.Context())
		if err != nil {
			return time.Since(began), err
		}
		c, err := answers.OpenContents(t.Context(), places...)
		if err == nil {
			err = c.Close()
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
	as := open().AsFound()
	places, err := as.All(t.Context())
	must(t, err)
	if found, err := answers.Inspect(t.Context(), places...); err == nil && len(found.Damages) == 0 {
		t.Errorf("inspected: %+v, %v", found, err)
	}
	for range 2 { // the damage is forgotten once a run has read all
		hide(24 * time.Hour)
		run := open()
		took, err := read(run)
		if !errors.Is(err, objects.ErrLate) || errors.Is(err, ErrDamaged) || took < patience || took > patience+time.Second {
			t.Errorf("the first run ended with %v after %s", err, took)
		} else if !strings.Contains(err.Error(), "doctor --state s3://leads/state/") {
			t.Errorf("it says: %v", err)
		}
		for range 2 {
			if _, err := read(open()); !errors.Is(err, ErrDamaged) || errors.Is(err, objects.ErrLate) {
				t.Errorf("the next run ended with %v", err)
			}
		}
		late.Hides = ""
		fresh := open()
		_, err = read(fresh)
		must(t, errors.Join(err, fresh.ForgetMissed(context.Background())))
	}
}
