package pipeline_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leadetl/leadetl/internal/disk"
	"github.com/leadetl/leadetl/pipeline"
	"github.com/leadetl/leadetl/pipeline/finish"
	"github.com/leadetl/leadetl/pipeline/job"
	"github.com/leadetl/leadetl/pipeline/journal"
	"github.com/leadetl/leadetl/transforms/suppression"
)

// listOf is a list of cells.
func listOf(t tb, cells ...string) *suppression.Set {
	b := suppression.NewBuilder(suppression.Rules{Region: "US"})
	for _, c := range cells {
		if err := b.Add(c); err != nil {
			t.Fatal(err)
		}
	}
	return b.Set()
}

func drop(i int) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "person%d@mail.example", i))
	return base64.StdEncoding.EncodeToString(sum[:])
}

// TestFoundOverRestarts: what the parts of all processes have come upon is told
// at the end, and the dataset is that of one process.
func TestFoundOverRestarts(t *testing.T) {
	s := five(t, t.TempDir())
	lists := listOf(t, drop(3), drop(12), drop(31), drop(1000))
	var told []suppression.Found
	do := func(s setup, ctx context.Context) (result *finish.Result, err error) {
		err = s.open(ctx, func(run *job.Run) error {
			run.Suppression = lists
			run.ReportSuppressed = func(found suppression.Found) error { told = append(told, found); return nil }
			result, err = pipeline.Do(ctx, run)
			return err
		})
		return result, err
	}
	for _, question := range []int64{15, 8} {
		ctx, cancel := context.WithCancel(t.Context())
		s.resolver = &hashing{before: func(n int64) error {
			if n == question {
				cancel()
			}
			return nil
		}}
		if _, err := do(s, ctx); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		cancel()
	}
	if len(told) > 0 {
		t.Fatal("an interrupted run has told what it found")
	}
	s.resolver = nil
	result, err := do(s, t.Context())
	if err != nil || result.Parts.Earlier == 0 || result.Parts.Made == 0 {
		t.Fatalf("%+v, %v", result, err)
	}
	if len(told) != 1 {
		t.Fatalf("told %d times", len(told))
	}
	for i, want := range map[int]bool{3: true, 12: true, 31: true, 1000: false} {
		if found, ok := told[0].Digest(drop(i)); !ok || found != want {
			t.Errorf("entry %d: found is %v, want %v", i, found, want)
		}
	}
	whole := s
	whole.out, whole.state = "whole", "whole state"
	if _, err := do(whole, t.Context()); err != nil {
		t.Fatal(err)
	}
	for name, data := range content(t, whole.outDir()) {
		if content(t, s.outDir())[name] != data {
			t.Errorf("%s is not what one process makes", name)
		}
	}
	if strings.Contains(fmt.Sprint(content(t, s.outDir())), "raw_line") {
		t.Error("raw lines are kept although somebody on the list may be in them")
	}
}

// withoutFound is the storage of a journal that cannot keep what a part has come upon, "" for any.
type withoutFound struct {
	journal.Storage
	part string
}

var errNotKept = errors.New("the disk is full")

func (w withoutFound) Put(name string, data []byte) error {
	if strings.HasPrefix(name, "found-"+w.part) {
		return errNotKept
	}
	return w.Storage.Put(name, data)
}

// TestFoundBeforeItsPart: no part is recorded before what it has come upon is kept, so the same run
// again goes on. If that is lost, the part is made again.
func TestFoundBeforeItsPart(t *testing.T) {
	for name, c := range map[string]struct {
		part    string // that cannot keep it
		loses   string
		earlier int // parts that stay; -1 where some may be made before the run has stopped
	}{
		"the first part": {"00000", "", -1},
		"the last part":  {"00004", "", 4},
		"and one lost":   {"00004", "found-00000", 3},
	} {
		t.Run(name, func(t *testing.T) {
			s := five(t, t.TempDir())
			s.suppress = listOf(t, drop(3))
			var told []suppression.Found
			do := func(wrap func(journal.Storage) journal.Storage) (result *finish.Result, err error) {
				return result, s.open(t.Context(), func(run *job.Run) error {
					run.Workers = 1
					run.Journal = func(out string) (journal.Storage, error) {
						own, err := journal.InFolder(disk.Dir(s.stateDir())).Progress(t.Context(), out, false)
						return wrap(own), err
					}
					run.ReportSuppressed = func(found suppression.Found) error { told = append(told, found); return nil }
					result, err = pipeline.Do(t.Context(), run)
					return err
				})
			}
			if _, err := do(func(s journal.Storage) journal.Storage { return withoutFound{s, c.part} }); !errors.Is(err, errNotKept) {
				t.Fatal(err)
			}
			if c.loses != "" {
				files, err := filepath.Glob(filepath.Join(s.stateDir(), "runs", "*", "beside", c.loses))
				if err != nil || len(files) != 1 || os.Remove(files[0]) != nil {
					t.Fatal(files, err)
				}
			}
			result, err := do(func(s journal.Storage) journal.Storage { return s })
			if err != nil {
				t.Fatal(err)
			}
			if len(told) != 1 || c.earlier >= 0 && result.Parts.Earlier != c.earlier {
				t.Fatalf("told %d times, and %d parts stay, want once, and %d", len(told), result.Parts.Earlier, c.earlier)
			}
			if found, ok := told[0].Digest(drop(3)); !ok || !found {
				t.Error("what was found is not told")
			}
		})
	}
}

// TestPlanCountsSuppressed: a plan says of rows what the run does.
func TestPlanCountsSuppressed(t *testing.T) {
	s := five(t, t.TempDir())
	var plan *pipeline.Plan
	var result *finish.Result
	for _, step := range []func(*job.Run) error{
		func(run *job.Run) (err error) { plan, err = pipeline.MakePlan(t.Context(), run); return err },
		func(run *job.Run) (err error) { result, err = pipeline.Do(t.Context(), run); return err },
	} {
		if err := s.open(t.Context(), func(run *job.Run) error {
			run.Suppression = listOf(t, drop(0), "PERSON1@mail.example", drop(49), "stranger@mail.example")
			return step(run)
		}); err != nil {
			t.Fatal(err)
		}
	}
	checkDataset(t, s.outDir(), result)
	if plan.Suppressed != 3 || result.Totals.Suppressed != 3 || plan.Keys != result.Totals.Matched || plan.Rows != result.Totals.Rows ||
		fmt.Sprint(plan.Reasons["suppressed"]) != fmt.Sprint(result.Totals.Reasons["suppressed"]) {
		t.Errorf("planned %+v, done %+v", plan, result.Totals)
	}
}
