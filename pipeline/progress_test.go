package pipeline_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"math"
	"path/filepath"
	"testing"

	"github.com/leadetl/leadetl/pipeline"
	"github.com/leadetl/leadetl/resolution"
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
		watch := func(asked *hashing, ctx context.Context, during func(n int64)) (*pipeline.Result, error) {
			t.Helper()
			var result *pipeline.Result
			s.resolver = asked
			err := s.open(ctx, func(run *pipeline.Run) (err error) {
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
				result, err = run.Do(ctx)
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
		if !errors.Is(err, context.Canceled) || result.Made == 0 || result.Report.Progress.Exact {
			t.Fatalf("%s: %v with %d parts made", name, err, result.Made)
		}
		result, err = watch(&hashing{}, t.Context(), func(int64) {})
		if told := result.Report.Progress; err != nil || result.Skipped == 0 || told.Rows != all || told.Of != all || !told.Exact {
			t.Errorf("%s: %v, %d parts of the run before, %+v", name, err, result.Skipped, told)
		}
		checkDataset(t, filepath.Join(s.dir, "out"), result)
	}
}

var _ resolution.Resolver = (*hashing)(nil)
