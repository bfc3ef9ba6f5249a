package steps

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/leadetl/leadetl/pipeline"
	"github.com/leadetl/leadetl/pipeline/begin"
	"github.com/leadetl/leadetl/pipeline/cut"
	"github.com/leadetl/leadetl/pipeline/job"
	"github.com/leadetl/leadetl/sinks"
)

// TestOverwrite says what --overwrite does about what is there: it replaces a
// dataset, and an unfinished run of another job, but continues with its own.
func TestOverwrite(t *testing.T) {
	other := func(run *job.Run) { run.Job.RowsPerPart = 11 }
	for _, c := range []struct {
		name     string
		earlier  func(*job.Run) // the job of the earlier run
		finished bool
		input    bool  // the input changes before the second run
		refused  error // without --overwrite; nil continues
		again    bool  // with --overwrite all is made again
	}{
		{"finished", nil, true, false, nil, true},
		{"finished, of another job", other, true, false, begin.ErrOtherJob, true},
		{"in progress", nil, false, false, nil, false},
		{"in progress, of another job", other, false, false, begin.ErrOtherJob, true},
		{"in progress, of another input", nil, false, true, cut.ErrInputChanged, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := newMachines(t)
			ctx := t.Context()
			r, err := OpenSized(ctx, m.run(c.earlier), m.state(), 300)
			if err != nil {
				t.Fatal(err)
			}
			m.makes(r, -1)
			if c.finished {
				if _, err := r.Finish(ctx); err != nil {
					t.Fatal(err)
				}
			}
			if c.input {
				if err := os.WriteFile(m.uris[0], []byte("id,email\n1,other@x.io\n"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := Open(ctx, m.run(nil), m.state()); !errors.Is(err, c.refused) {
				t.Errorf("without --overwrite: %v, want %v", err, c.refused)
			}
			overwrite := func(run *job.Run) { run.Overwrite = true }
			second, err := OpenSized(ctx, m.run(overwrite), m.state(), 300)
			if err != nil || second.Finished() {
				t.Fatalf("with --overwrite: finished %v, %v", second != nil && second.Finished(), err)
			}
			if made := m.makes(second, 1); made == 0 != !c.again {
				t.Errorf("a part of the second run: %d were made", made)
			}
			// Another worker joins the second run, and does not replace it.
			third, err := OpenSized(ctx, m.run(overwrite), m.state(), 300)
			if err != nil || third.Header().Run != second.Header().Run {
				t.Fatalf("the next worker: %v", err)
			}
			m.makes(third, -1)
			if _, err := third.Finish(ctx); err != nil {
				t.Fatal(err)
			}
			one := t.TempDir()
			if _, err := pipeline.Do(ctx, openRun(t, m.uris, one, 10, sinks.Options{})); err != nil {
				t.Fatal(err)
			}
			if got, want := dataset(t, filepath.Join(m.server.Dir, "leads", "out")), dataset(t, one); !maps.Equal(got, want) {
				t.Error("the dataset is not that of one machine")
			}
			if left := m.left(); len(left) > 0 {
				t.Errorf("%v is left", left)
			}
		})
	}
}

// makes makes the parts of some windows, all of them for -1, and returns how many it
// made.
func (m *machines) makes(r *Run, windows int) (made int) {
	m.t.Helper()
	ctx := m.t.Context()
	for file := range r.Files() {
		if err := r.Survey(ctx, file); err != nil {
			m.t.Fatal(err)
		}
	}
	d, err := r.Divide(ctx)
	if err != nil {
		m.t.Fatal(err)
	}
	for window := range d.Windows {
		if windows >= 0 && window >= windows {
			break
		}
		done, err := r.Make(ctx, window)
		if err != nil {
			m.t.Fatal(err)
		}
		made += done.Parts.Made
	}
	return made
}
