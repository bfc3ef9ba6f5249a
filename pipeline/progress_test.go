package pipeline_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"testing"

	"github.com/leadetl/leadetl/pipeline"
	"github.com/leadetl/leadetl/pipeline/finish"
	"github.com/leadetl/leadetl/pipeline/job"
)

// TestProgressCountsTheWholeInput: a run of many small parts is looked at
// whenever a question is asked, interrupted in the middle, and resumed.
func TestProgressCountsTheWholeInput(t *testing.T) {
	const all, stopAt = 4000, 1500
	packed := new(bytes.Buffer)
	w := gzip.NewWriter(packed)
	if _, err := w.Write([]byte(emails(100_000, all))); err != nil || w.Close() != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{"list.csv": emails(100_000, all), "list.csv.gz": packed.String()} {
		s := setup{dir: t.TempDir(), rowsPerPart: 40}
		s.input(t, name, content)
		watch := func(asked *hashing, ctx context.Context, during func(n int64)) (*finish.Result, error) {
			t.Helper()
			var result *finish.Result
			s.resolver = asked
			err := s.open(ctx, func(run *job.Run) (err error) {
				share := 0.0
				asked.before = func(n int64) error {
					now := run.Progress.Snapshot()
					if now.Share() < share || now.Share() >= 1 {
						t.Errorf("%s: %v at question %d, after %v", name, now.Share(), n, share)
					}
					if share = now.Share(); n > 1 && math.Abs(float64(now.InputRows())/all-1) > 0.1 {
						t.Errorf("%s: of %d rows at question %d, want about %d", name, now.InputRows(), n, all)
					}
					during(n)
					return nil
				}
				result, err = pipeline.Do(ctx, run)
				now, told := run.Progress.Snapshot(), result.Report.Progress
				if told.Rows != now.InputDone() || told.Of != now.InputRows() || told.Exact != now.AllRead {
					t.Errorf("%s: the report says %+v; progress says %d of %d", name, told, now.InputDone(), now.InputRows())
				}
				return err
			})
			return result, err
		}
		ctx, interrupt := context.WithCancel(t.Context())
		result, err := watch(&hashing{}, ctx, func(n int64) {
			if n == stopAt {
				interrupt()
			}
		})
		if !errors.Is(err, context.Canceled) || result.Parts.Made == 0 || result.Report.Progress.Exact {
			t.Fatalf("%s: %v with %d parts made", name, err, result.Parts.Made)
		}
		result, err = watch(&hashing{}, t.Context(), func(int64) {})
		if told := result.Report.Progress; err != nil || result.Parts.Earlier == 0 || told.Rows != all || told.Of != all || !told.Exact {
			t.Errorf("%s: %v, %d parts of the run before, %+v", name, err, result.Parts.Earlier, told)
		}
		checkDataset(t, filepath.Join(s.dir, "out"), result)
	}
}

// TestFirstReject: of a list's faults the first is told, over restarts, and in
// what order parts are made does not matter.
func TestFirstReject(t *testing.T) {
	for _, c := range []struct {
		name, a, b string
		want       string // nothing: the list is as it should be
	}{
		{"nothing is wrong", emails(0, 30), emails(30, 30), ""},
		{"a row", emails(0, 30) + "30,nobody\n31,\n", emails(30, 30), "a.csv 31 invalid_email"},
		{"a line before a row", emails(0, 30) + "x\n31,nobody\n", emails(30, 30), "a.csv 31 ragged_row"},
		{"a row before a line", emails(0, 30) + "30,nobody\nx\n", "id,email\nx\n", "a.csv 31 invalid_email"},
		{"the second file", emails(0, 30), "id,email\n1,nobody\n", "b.csv 1 invalid_email"},
		{"in the recorded parts", "id,email\nx\n" + emails(0, 30)[len("id,email\n"):], emails(30, 30) + "1,nobody\n", "a.csv 1 ragged_row"},
	} {
		s := setup{dir: t.TempDir(), rowsPerPart: 7, workers: 4}
		s.input(t, "a.csv", c.a)
		s.input(t, "b.csv", c.b)
		ctx, interrupt := context.WithCancel(t.Context())
		s.resolver = &hashing{before: func(n int64) error {
			if n == 25 {
				interrupt()
			}
			return nil
		}}
		_, err := s.do(ctx)
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		s.resolver = nil
		for range 2 { // the second time there is nothing to do
			result, err := s.do(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if f := result.FirstReject; f != nil {
				got = fmt.Sprint(filepath.Base(f.URI), " ", f.Row, " ", f.Reason)
			}
			if got != c.want {
				t.Errorf("%s: %q, want %q", c.name, got, c.want)
			}
			if r := result.Report; r != nil && (r.FirstReject == nil) != (c.want == "") {
				t.Errorf("%s: the report says %v", c.name, r.FirstReject)
			}
		}
	}
}

// TestDuplicates counts rows with the key of another row, in whatever part.
func TestDuplicates(t *testing.T) {
	s := setup{dir: t.TempDir(), rowsPerPart: 7, workers: 4}
	s.input(t, "a.csv", emails(0, 30)+"1,PERSON1@mail.example \n2,nobody\n2,nobody\n")
	s.input(t, "b.csv", emails(20, 20))
	if n := s.mustDo(t).Report.Duplicates; n == nil || *n != 11 {
		t.Errorf("%v duplicates, want 11", n)
	}
}
