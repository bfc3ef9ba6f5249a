package answers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/leadetl/leadetl/internal/appendlog"
	"github.com/leadetl/leadetl/internal/format"
	"github.com/leadetl/leadetl/internal/lease"
	"github.com/leadetl/leadetl/internal/store"
	"github.com/leadetl/leadetl/internal/testkit/memorytest"
	"github.com/leadetl/leadetl/resolution"
)

// shared is a place that several processes may write at the same time: nothing keeps them apart but what they
// create.
func shared(t *testing.T, files store.Store) Place {
	return Elsewhere(files, t.TempDir(), func(context.Context) (lease.Lease, error) { return lease.All(nil), nil })
}

// TestShared: who takes over has all that an earlier process stored, and that one can store nothing more, but what
// it has bought.
func TestShared(t *testing.T) {
	ctx, files := t.Context(), memorytest.New()
	first, err := Open(ctx, shared(t, files), Options{LogBytes: 500, Generations: 2, RowsPerFile: 3})
	must(t, err)
	for i := range 30 {
		intent(t, first, person(fmt.Sprint(i)), Send{Run: "night", At: noon})
		if i < 25 {
			must(t, first.Put(ctx, person(fmt.Sprint(i)), Answer{Run: "night", Outcome: Matched, Received: noon, Credits: credits(2)}))
		}
	}
	second, err := Open(ctx, shared(t, files), Options{})
	must(t, err)
	lost := first.Put(ctx, person("29"), Answer{Run: "night", Outcome: Matched, Received: noon, Credits: credits(2)})
	_, refused := first.Intent(ctx, person("other"), Send{Run: "night", At: noon})
	for what, err := range map[string]error{"an answer": lost, "an intent": refused} {
		if !errors.Is(err, store.ErrFenced) || !errors.Is(err, resolution.ErrUnavailable) {
			t.Errorf("%s of the first process: %v, want ErrFenced", what, err)
		}
	}
	must(t, second.Close())
	_ = first.Close()
	third, err := Open(ctx, shared(t, files), Options{})
	must(t, err)
	for i := range 30 {
		want := Unknown
		if i < 25 || i == 29 {
			want = ""
		}
		if f := look(t, third, person(fmt.Sprint(i)), Freshness{}); f.Stored != (want == "") || f.Open != want {
			t.Errorf("%d: stored %t, open %q, want %q", i, f.Stored, f.Open, want)
		}
	}
	if p, open, err := third.SumSpent(ctx, "night"); p != (Spending{Answers: 26, Credits: 52}) || len(open) != 4 || err != nil {
		t.Errorf("spent %+v, %d calls open, %v", p, len(open), err)
	}
	must(t, third.Close())
	c, err := OpenContents(ctx, shared(t, files))
	must(t, err)
	defer c.Close()
	if st, err := c.Stat(ctx); err != nil || len(st.Tallies) != 1 || st.Tallies[0].Answers != 26 || st.Unknown != 4 {
		t.Errorf("%+v, %v", st, err)
	}
}

// TestOlderForm: what an older program has stored is refused by name, and never taken for nothing.
func TestOlderForm(t *testing.T) {
	for _, name := range []string{"v/0000000001.json", "answers.sqlite"} {
		files := memorytest.New()
		must(t, files.Put(t.Context(), name, []byte("{}")), files.Put(t.Context(), "log/000000000001.seg", []byte("{}")))
		for what, open := range map[string]func(Place) error{
			"open": func(p Place) error { _, err := Open(t.Context(), p, Options{}); return err },
			"look": func(p Place) error { _, err := OpenContents(t.Context(), p, shared(t, memorytest.New())); return err },
		} {
			if _, refused := errors.AsType[*format.Error](open(shared(t, files))); !refused {
				t.Errorf("%s, %s: not refused", name, what)
			}
		}
	}
}

// TestFenceBelowTheLog: a fence where a segment was that is in files ends no log.
func TestFenceBelowTheLog(t *testing.T) {
	ctx, p := t.Context(), shared(t, memorytest.New())
	s, err := Open(ctx, p, Options{})
	must(t, err, s.Put(ctx, person("one"), Answer{Run: "night", Outcome: Matched, Received: noon}), s.Close())
	m, err := newest(ctx, p)
	must(t, err)
	for below, moved := range map[int64]bool{1: true, 0: false} {
		l := p.newLog(Options{}).(*segmentLog)
		l.fence = m.Log.Number - below
		if _, err := l.read(ctx, m.Log, func([]byte) error { return nil }); errors.Is(err, errLogMoved) != moved {
			t.Errorf("a fence %d below the log: %v", below, err)
		}
	}
}

// lateList is a store whose lists lack the manifests from a number on.
type lateList struct {
	store.Store
	from int64
}

func (l lateList) Entries(ctx context.Context, folder string) ([]store.Info, error) {
	all, err := l.Store.Entries(ctx, folder)
	return slices.DeleteFunc(all, func(info store.Info) bool {
		number, is := manifestNumber(info.Name)
		return is && number >= l.from
	}), err
}

// TestInspectLateLists: what a list does not have yet is not damaged.
func TestInspectLateLists(t *testing.T) {
	ctx, files := t.Context(), memorytest.New()
	for i := range 3 {
		s, err := Open(ctx, shared(t, files), Options{})
		must(t, err, s.Put(ctx, person(fmt.Sprint(i)), Answer{Run: "night", Outcome: Matched, Received: noon}), s.Close())
	}
	for from := range int64(7) {
		if found, err := Inspect(ctx, shared(t, lateList{files, from})); err != nil || !found.Whole() || found.Answers != 3 {
			t.Errorf("from manifest %d on: %+v, %v", from, found, err)
		}
	}
}

// TestSharedDamage: without a manifest nothing can be told from an empty place, or damage is told. Simulated machines
// damage the rest.
func TestSharedDamage(t *testing.T) {
	ctx, files := t.Context(), memorytest.New()
	s, err := Open(ctx, shared(t, files), Options{LogBytes: 2000, RowsPerFile: 10})
	must(t, err)
	for i := range 40 {
		must(t, s.Put(ctx, person(fmt.Sprint(i)), Answer{Run: "night", Outcome: Matched, Received: noon}))
	}
	must(t, s.Close())
	for info, err := range files.List(ctx, manifestPrefix) {
		must(t, err, files.Remove(ctx, info.Name))
	}
	if found, err := Inspect(ctx, shared(t, files)); !errors.Is(errors.Join(append(found.Damages, err)...), appendlog.ErrDamaged) && !errors.Is(err, ErrNone) {
		t.Errorf("%+v, %v", found, err)
	}
}
