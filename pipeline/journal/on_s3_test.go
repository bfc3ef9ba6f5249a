package journal_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leadetl/leadetl/internal/appendlog"
	"github.com/leadetl/leadetl/internal/filelock"
	"github.com/leadetl/leadetl/internal/objects"
	"github.com/leadetl/leadetl/internal/store"
	"github.com/leadetl/leadetl/internal/testkit/s3test"
	"github.com/leadetl/leadetl/pipeline/journal"
	"github.com/leadetl/leadetl/pipeline/objectstate"
)

func lateState(t *testing.T, store *s3test.Late, giveUpAfter time.Duration) *journal.State {
	s, err := objectstate.Open(store.Client(t, giveUpAfter, 0), "s3://leads/state/")
	must(t, err)
	return journal.OnS3(s)
}

// TestHalfRemoved: whatever a killed process has left of a journal that it removed, no journal is
// read, and another one can begin. With its header, the same gap is an error.
func TestHalfRemoved(t *testing.T) {
	for _, c := range []struct {
		name   string
		left   []int64
		header bool
		want   error
	}{
		{"all", []int64{0, 1, 2, 3}, false, nil},
		{"a gap", []int64{0, 1, 3}, false, fs.ErrNotExist},
		{"without the beginning", []int64{1, 2, 3}, false, fs.ErrNotExist},
		{"the last", []int64{3}, false, fs.ErrNotExist},
		{"a gap and the header", []int64{0, 1, 3}, true, nil},
	} {
		synctest.Test(t, func(t *testing.T) {
			late := s3test.NewLate(t)
			s := lateState(t, late, time.Second)
			open := func() *journal.Progress {
				p, err := s.Progress(t.Context(), "s3://leads/out/", false)
				must(t, err)
				t.Cleanup(func() { _ = p.Release() }) // again, unless the test has failed
				return p
			}
			remove := func(p *journal.Progress, name string) {
				at, err := objects.Parse(p.String() + name)
				must(t, err, late.Client(t, 0, 0).Remove(t.Context(), at))
			}
			p := open()
			must(t, errors.Join(p.Put("header", []byte("job")), p.Begin([]byte("job\n"))))
			for range 3 {
				must(t, p.Append([]byte("part\n")))
			}
			for number := range int64(4) {
				if !slices.Contains(c.left, number) {
					remove(p, fmt.Sprintf("journal/%010d", number))
				}
			}
			if !c.header {
				remove(p, "beside/header")
			}
			must(t, p.Release())
			p = open()
			_, err := p.Read()
			if c.header {
				if err == nil || errors.Is(err, fs.ErrNotExist) {
					t.Errorf("%s: it is read: %v", c.name, err)
				}
				return
			}
			if !errors.Is(err, c.want) {
				t.Fatalf("%s: it is read: %v, want %v", c.name, err, c.want)
			}
			must(t, errors.Join(p.Put("header", []byte("other")), p.Begin([]byte("other\n")), p.Append([]byte("part\n")), p.Release()))
			if lines, err := open().Read(); err != nil || string(lines) != "other\npart\n" {
				t.Errorf("%s: read %q, %v", c.name, lines, err)
			}
		})
	}
}

// The journal of a dataset is there for the next process, and not for the one
// before.
func TestProgress(t *testing.T) {
	late := s3test.NewLate(t)
	s := lateState(t, late, 0)
	open := func() *journal.Progress {
		p, err := s.Progress(t.Context(), "s3://leads/out/", true)
		must(t, err)
		return p
	}
	first := open()
	if _, err := first.Read(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a journal: %v", err)
	}
	must(t, first.Begin([]byte("job\n")))
	must(t, first.Append([]byte("part 1\n")))
	must(t, first.Put("found-00001", []byte("found")))
	second := open()
	lines, err := second.Read()
	if string(lines) != "job\npart 1\n" {
		t.Errorf("read %q, %v", lines, err)
	}
	must(t, first.Append([]byte("part 2\n"))) // it is not dead
	must(t, second.Begin([]byte("job again\n")))
	if err := first.Append([]byte("part 3\n")); !errors.Is(err, store.ErrFenced) {
		t.Errorf("after the other has begun: %v, want %v", err, store.ErrFenced)
	}
	must(t, second.Append([]byte("part 4\n")))
	if lines, err := open().Read(); err != nil || string(lines) != "job again\npart 4\n" {
		t.Errorf("read %q, %v", lines, err)
	}
	if found, err := second.Get("found-00001"); err != nil || string(found) != "found" {
		t.Errorf("found %q, %v", found, err)
	}
	must(t, second.Put("found-00002", []byte("more")))
	must(t, second.Drop("found-", "found-00002"))
	if _, err := second.Get("found-00001"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what was dropped: %v", err)
	}
	if found, err := second.Get("found-00002"); err != nil || string(found) != "more" {
		t.Errorf("what was kept: %q, %v", found, err)
	}
	unfinished, err := s.Unfinished(t.Context())
	if err != nil || len(unfinished) != 1 || unfinished[0].Files != 6 || time.Since(unfinished[0].Changed) > time.Minute {
		t.Errorf("unfinished: %+v, %v", unfinished, err)
	}
	if err := s.Discard(t.Context(), unfinished[0].ID); !errors.Is(err, filelock.ErrLocked) {
		t.Errorf("discarded while it may be at work: %v", err)
	}
	if err := s.Discard(t.Context(), "none"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("discarded what is not there: %v", err)
	}
	must(t, second.Remove())
	if left, err := s.Unfinished(t.Context()); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// TestTakeOverByTerm: a worker takes over the journal from one before it at once, and that one records
// nothing any more. One with a lower term does not take over.
func TestTakeOverByTerm(t *testing.T) {
	late := s3test.NewLate(t)
	worker := func(term int64) (*journal.Progress, error) {
		s, err := objectstate.Open(late.Client(t, 0, 0), "s3://leads/state/")
		must(t, err)
		s.HeldBy(objectstate.Turn{Holder: objects.Holder{Name: "run night", Term: term}})
		return journal.OnS3(s).Progress(t.Context(), "s3://leads/out/", false)
	}
	first, err := worker(1)
	must(t, err, first.Begin([]byte("one\n")))
	next, err := worker(3)
	must(t, err)
	lines, err := next.Read()
	must(t, err, next.Begin(lines))
	if err := first.Append([]byte("late\n")); !errors.Is(err, store.ErrFenced) {
		t.Errorf("the first records a part: %v, want %v", err, store.ErrFenced)
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		s, err := objectstate.Open(late.Client(t, 0, 0), "s3://leads/state/")
		must(t, err)
		s.HeldBy(objectstate.Turn{Holder: objects.Holder{Name: "run night", Term: 2}})
		if _, err := journal.OnS3(s).Progress(ctx, "s3://leads/out/", false); err == nil {
			t.Error("one that is late takes over")
		}
	})
	must(t, first.Release(), next.Release())
}

// nightsOf are the names of the finished datasets of a job.
func nightsOf(t *testing.T, s *journal.State) (before string, err error) {
	n, err := s.Nights(t.Context(), "job", "next")
	if err == nil && n.Before() != nil {
		before = n.Before().Out
	}
	return before, err
}

// finish remembers a dataset of a job.
func finish(t *testing.T, s *journal.State, out string, day int) error {
	n, err := s.Nights(t.Context(), "job", out)
	if err == nil {
		err = n.Finished(journal.Night{JobID: out, CompletedAt: time.Date(2026, 11, day, 0, 0, 0, 0, time.UTC)})
	}
	return err
}

// leave leaves a journal of two parts and a night.
func leave(t *testing.T, s *journal.State) {
	t.Helper()
	p, err := s.Progress(t.Context(), "s3://leads/out/", false)
	must(t, err)
	must(t, p.Put("header", []byte("{}")), p.Begin([]byte("{}\n")), p.Append([]byte("{}\n")), p.Append([]byte("{}\n")), p.Release(), finish(t, s, "monday", 1))
}

// TestLateObjects: whatever must exist is awaited for a minute, or as long as a store is. Then a
// run ends, to be repeated, and the next one that ends on the same object says that it is damage.
func TestLateObjects(t *testing.T) {
	for kind, hides := range map[string]string{
		"a journal": "/journal/0000000001", "the end of a journal": "/journal/0000000002", "a file of a run": "/beside/header", "nights": "/nights/",
	} {
		for _, giveUpAfter := range []time.Duration{15 * time.Minute, 20 * time.Second} {
			t.Run(kind+" "+giveUpAfter.String(), func(t *testing.T) {
				store := s3test.NewLate(t)
				synctest.Test(t, func(t *testing.T) { tryLate(t, store, hides, giveUpAfter) })
			})
		}
	}
}

func tryLate(t *testing.T, late *s3test.Late, hides string, giveUpAfter time.Duration) {
	open := func() *journal.State { return lateState(t, late, giveUpAfter) }
	leave(t, open())
	read := func(s *journal.State) (time.Duration, error) {
		began := time.Now()
		p, err := s.Progress(t.Context(), "s3://leads/out/", true)
		must(t, err)
		_, err = p.Read()
		if err == nil {
			_, err = p.Get("header")
		}
		if err == nil {
			_, err = nightsOf(t, s)
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
	run := open()
	took, err := read(run)
	if !errors.Is(err, store.ErrLate) || errors.Is(err, appendlog.ErrDamaged) || took < patience || took > patience+time.Second {
		t.Errorf("the first run ended with %v after %s", err, took)
	} else if !strings.Contains(err.Error(), hides) || !strings.Contains(err.Error(), "doctor --state s3://leads/state/") {
		t.Errorf("it says: %v", err)
	}
	if took, err := read(run); !errors.Is(err, store.ErrLate) || errors.Is(err, appendlog.ErrDamaged) || took > time.Second {
		t.Errorf("what it closes ended with %v after %s", err, took)
	}
	for range 2 {
		if _, err := read(open()); !errors.Is(err, appendlog.ErrDamaged) || errors.Is(err, store.ErrLate) || !strings.Contains(err.Error(), hides) {
			t.Errorf("the next run ended with %v", err)
		}
	}
}

// TestOldListsOfRuns: no object of a journal is overlooked for lists that lack it, and no nights are begun anew.
func TestOldListsOfRuns(t *testing.T) {
	for _, lacks := range []string{"/journal/", "/journal/0000000002", "/journal/0000000001", "/nights/", "/runs/"} {
		late := s3test.NewLate(t)
		leave(t, lateState(t, late, 0))
		late.Lacks = lacks
		s := lateState(t, late, 0)
		p, err := s.Progress(t.Context(), "s3://leads/out/", false)
		must(t, err)
		if lines, err := p.Read(); err != nil || string(lines) != "{}\n{}\n{}\n" {
			t.Errorf("without %s in lists: %q, %v", lacks, lines, err)
		}
		must(t, p.Begin([]byte("again\n")), p.Release(), finish(t, s, "tuesday", 2))
		late.Lacks = ""
		n, err := s.Nights(t.Context(), "job", "tuesday")
		if before := n.Before(); err != nil || before == nil || before.Out != "monday" {
			t.Errorf("without %s in lists: before it is %v, %v", lacks, before, err)
		}
	}
}

// TestUnseen: what neither a read nor a list shows is not begun anew, and the run ends, to be repeated.
func TestUnseen(t *testing.T) {
	late := s3test.NewLate(t)
	leave(t, lateState(t, late, 0))
	for what, begin := range map[string]func(*journal.State) error{
		"/journal/": func(s *journal.State) error {
			p, err := s.Progress(t.Context(), "s3://leads/out/", false)
			must(t, err)
			if _, err := p.Read(); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("read with %v", err)
			}
			return errors.Join(p.Begin([]byte("new\n")), p.Release())
		},
		"/nights/": func(s *journal.State) error { return finish(t, s, "tuesday", 2) },
	} {
		late.Lacks, late.Hides = what, what
		if err := begin(lateState(t, late, 0)); !errors.Is(err, store.ErrLate) || errors.Is(err, appendlog.ErrDamaged) || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v, want %v", what, err, store.ErrLate)
		}
	}
	late.Lacks, late.Hides = "", ""
	s := lateState(t, late, 0)
	p, err := s.Progress(t.Context(), "s3://leads/out/", true)
	must(t, err)
	if lines, err := p.Read(); err != nil || string(lines) != "{}\n{}\n{}\n" {
		t.Errorf("afterwards: %q, %v", lines, err)
	}
	if before, err := nightsOf(t, s); before != "monday" || err != nil {
		t.Errorf("the last night is %q, %v", before, err)
	}
}
