package pipeline_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/leadetl/leadetl/pipeline"
	"github.com/leadetl/leadetl/pipeline/begin"
	"github.com/leadetl/leadetl/pipeline/finish"
	"github.com/leadetl/leadetl/pipeline/job"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/resolutiontest"
	"github.com/leadetl/leadetl/transforms/suppression"
)

// people finds for a profile the address and the phone number of its person.
type people struct{ before func(key string) error }

func (p people) Resolve(_ context.Context, r resolution.Request) (resolution.Answer, error) {
	if p.before != nil {
		if err := p.before(r.Key); err != nil {
			return resolution.Answer{}, err
		}
	}
	var n int
	if _, err := fmt.Sscanf(r.Key, "linkedin.com/in/person-%d", &n); err != nil {
		return resolution.Answer{}, err
	}
	var lead resolution.Lead
	lead.Phone = fmt.Sprintf("+1415555%04d", n)
	return resolution.Answer{Lead: &lead}, nil
}

func (p people) NewBatch(op resolution.Operation) resolution.Batch {
	return resolutiontest.Singly(p.Resolve).NewBatch(op)
}

// TestLongerLists: an interrupted run continues with longer suppression lists, and
// makes only those parts again that have somebody who is listed since: by the row
// itself, another column, or the answer.
func TestLongerLists(t *testing.T) {
	t.Parallel()
	list := "email,network_url\n"
	for i := range 100 {
		list += fmt.Sprintf("friend%d@mail.example,https://linkedin.com/in/person-%d\n", i, i)
	}
	profile := func(i int) string { return fmt.Sprintf("linkedin.com/in/person-%d", i) }
	friend := func(i int) string { return fmt.Sprintf("friend%d@mail.example", i) }
	phone := func(i int) string { return fmt.Sprintf("+1415555%04d", i) }
	for _, c := range []struct {
		name        string
		before, now []string
		again       []int // parts that are made again; nil with an error
		other       bool  // it is another job
	}{
		{"the same", []string{profile(3)}, []string{profile(3)}, nil, false},
		{"of rows", []string{profile(3)}, []string{profile(3), profile(25), profile(99)}, []int{2}, false},
		{"of another column", []string{profile(3)}, []string{profile(3), friend(11)}, []int{1}, false},
		{"of answers", []string{profile(3)}, []string{profile(3), phone(39), phone(30), phone(4000)}, []int{3}, false},
		{"nobody in the list", []string{profile(3)}, []string{profile(3), "nobody@mail.example"}, nil, false},
		{"somebody who was suppressed", []string{profile(3)}, []string{profile(3), friend(3)}, []int{0}, false},
		{"all", []string{phone(1)}, []string{phone(1), profile(0), friend(19), phone(20), profile(39)}, []int{0, 1, 2, 3}, false},
		{"shorter", []string{profile(3), profile(4)}, []string{profile(3)}, nil, true},
		{"others", []string{profile(3)}, []string{profile(4), profile(5)}, nil, true},
		{"where there was none", nil, []string{profile(4)}, nil, true},
		{"none any more", []string{profile(3)}, nil, nil, true},
	} {
		s := setup{dir: t.TempDir(), op: resolution.NetworkToPhone, rowsPerPart: 10, workers: 1}
		s.input(t, "list.csv", list)
		do := func(s setup, ctx context.Context, cells []string) (result *finish.Result, err error) {
			err = s.open(ctx, func(run *job.Run) error {
				if cells != nil {
					run.Suppression = listOf(t, cells...)
				}
				result, err = pipeline.Do(ctx, run)
				return err
			})
			return result, err
		}
		stopped := errors.New("stopped")
		s.resolver = people{func(key string) error {
			if key == profile(47) {
				return stopped
			}
			return nil
		}}
		if begun, err := do(s, t.Context(), c.before); !errors.Is(err, stopped) || begun.Parts.Made != 4 {
			t.Fatalf("%s: %v", c.name, err)
		}
		before := listing(t, s.outDir())
		s.resolver = people{}
		result, err := do(s, t.Context(), c.now)
		if c.other {
			if !errors.Is(err, begin.ErrOtherJob) {
				t.Errorf("%s: %v, want ErrOtherJob", c.name, err)
			}
			continue
		}
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		checkDataset(t, s.outDir(), result)
		var again []int
		after := listing(t, s.outDir())
		for number := range 4 {
			if name := fmt.Sprintf("part-%05d.parquet", number); before[name] != after[name] {
				again = append(again, number)
			}
		}
		if fmt.Sprint(again) != fmt.Sprint(c.again) {
			t.Errorf("%s: parts %v were made again, want %v", c.name, again, c.again)
		}
		whole := s
		whole.out, whole.state = "whole", "whole state"
		if _, err := do(whole, t.Context(), c.now); err != nil {
			t.Fatal(err)
		}
		if got, want := content(t, s.outDir()), content(t, whole.outDir()); !maps.Equal(got, want) {
			t.Errorf("%s: the dataset is not what an undisturbed run makes", c.name)
		}
	}
}

// TestLongerListsOfDropAnswers: what is told covers the entries that were added.
func TestLongerListsOfDropAnswers(t *testing.T) {
	s := five(t, t.TempDir())
	do := func(ctx context.Context, lists *suppression.Set) (told suppression.Found, err error) {
		err = s.open(ctx, func(run *job.Run) error {
			run.Suppression = lists
			run.ReportSuppressed = func(found suppression.Found) error { told = found; return nil }
			_, err = pipeline.Do(ctx, run)
			return err
		})
		return told, err
	}
	ctx, interrupt := context.WithCancel(t.Context())
	s.resolver = &hashing{before: func(n int64) error {
		if n == 25 {
			interrupt()
		}
		return nil
	}}
	if _, err := do(ctx, listOf(t, drop(3))); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	s.resolver = nil
	told, err := do(t.Context(), listOf(t, drop(3), drop(12), drop(40), drop(1000)))
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range map[int]bool{3: true, 12: true, 40: true, 1000: false} {
		if found, ok := told.Digest(drop(i)); !ok || found != want {
			t.Errorf("entry %d: found is %v, want %v", i, found, want)
		}
	}
	if strings.Contains(fmt.Sprint(listing(t, s.stateDir())), "suppressed-") {
		t.Error("the list stays in the state folder")
	}
}
