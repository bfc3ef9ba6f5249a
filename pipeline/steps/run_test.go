package steps

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sourcegraph/conc/pool"

	"github.com/leadetl/leadetl/internal/disk"
	"github.com/leadetl/leadetl/internal/format"
	"github.com/leadetl/leadetl/internal/objects"
	"github.com/leadetl/leadetl/internal/testkit/s3test"
	"github.com/leadetl/leadetl/pipeline"
	"github.com/leadetl/leadetl/pipeline/begin"
	"github.com/leadetl/leadetl/pipeline/cut"
	"github.com/leadetl/leadetl/pipeline/job"
	"github.com/leadetl/leadetl/pipeline/objectstate"
	"github.com/leadetl/leadetl/sinks"
)

// machines share a store, and nothing else.
type machines struct {
	t      *testing.T
	server *s3test.Server
	store  *objects.Store
	uris   []string
}

func newMachines(t *testing.T) *machines {
	t.Helper()
	server := s3test.Start(t, "leads")
	s3test.Setenv(t)
	proxy := s3test.NewProxy(t, server)
	store := objects.New(t.Context(), objects.Options{Endpoint: proxy.URL, PathStyle: true})
	return &machines{t, server, store, inputs(t, rand.New(rand.NewPCG(3, 3)), 100)}
}

func (m *machines) state() *objectstate.State {
	m.t.Helper()
	state, err := objectstate.Open(m.store, "s3://leads/state/")
	if err != nil {
		m.t.Fatal(err)
	}
	return state
}

// run is what the command opens on a new machine.
func (m *machines) run(change func(*job.Run)) *job.Run {
	m.t.Helper()
	const out = "s3://leads/out/"
	holder, err := Holder(m.state(), out)
	if err != nil {
		m.t.Fatal(err)
	}
	run := openRun(m.t, m.uris, out, 10, sinks.Options{Objects: m.store, State: disk.Dir(m.t.TempDir()), Holder: holder, Share: true})
	if change != nil {
		change(run)
	}
	return run
}

func (m *machines) join() *Run {
	m.t.Helper()
	r, err := Join(m.t.Context(), m.run(nil), m.state())
	if err != nil {
		m.t.Fatal(err)
	}
	return r
}

// inParallel does the same on some machines at once.
func inParallel(t *testing.T, machines int, do func() error) {
	t.Helper()
	p := pool.New().WithErrors()
	for range machines {
		p.Go(do)
	}
	if err := p.Wait(); err != nil {
		t.Fatal(err)
	}
}

// left are the objects of runs.
func (m *machines) left() (names []string) {
	m.t.Helper()
	err := filepath.WalkDir(filepath.Join(m.server.Dir, "leads", "state"), func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() && e.Name() != format.MarkName {
			names = append(names, path)
		}
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		m.t.Fatal(err)
	}
	return names
}

// TestSteps takes every step on three machines at once, and each again on a
// fourth. The dataset is that of one machine, and nothing else is left.
func TestSteps(t *testing.T) {
	m := newMachines(t)
	one := t.TempDir()
	whole, err := pipeline.Do(t.Context(), openRun(t, m.uris, one, 10, sinks.Options{}))
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	if _, err := Join(ctx, m.run(nil), m.state()); !errors.Is(err, ErrNotBegun) {
		t.Errorf("before the first step: %v", err)
	}
	var runs []*job.Run
	for range 3 {
		runs = append(runs, m.run(nil))
	}
	next := make(chan *job.Run, len(runs))
	for _, run := range runs {
		next <- run
	}
	opened := make(chan *Run, len(runs))
	inParallel(t, 3, func() error {
		r, err := OpenSized(ctx, <-next, m.state(), 300)
		for file := range len(m.uris) {
			if err == nil {
				err = r.Survey(ctx, file)
			}
		}
		if err == nil {
			_, err = r.Divide(ctx)
		}
		opened <- r
		return err
	})
	d, err := m.join().Divide(ctx)
	if err != nil || len(d.Windows) < 4 || d.Parts != len(whole.Manifest.Parts) || d.Rows != whole.Totals.Rows {
		t.Fatalf("%+v, %v", d, err)
	}
	var missing *MissingError
	if _, err := m.join().Finish(ctx); !errors.As(err, &missing) || len(missing.Windows) != len(d.Windows) {
		t.Errorf("finished too early: %v", err)
	}
	close(opened)
	again := make(chan *Run, 3)
	for r := range opened {
		again <- r
	}
	inParallel(t, 3, func() error {
		r := <-again
		for window := range d.Windows {
			if _, err := r.Make(ctx, window); err != nil {
				return err
			}
		}
		again <- r
		return nil
	})
	for window, w := range d.Windows {
		if done, err := m.join().Make(ctx, window); err != nil || done.Parts.Made != 0 || done.Parts.All() != w.Parts || done.Totals.Rows == 0 {
			t.Errorf("window %d again: %+v, %v", window, done, err)
		}
	}
	result, err := (<-again).Finish(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := dataset(t, filepath.Join(m.server.Dir, "leads", "out")), dataset(t, one); !maps.Equal(got, want) {
		t.Error("the dataset is not that of one machine")
	}
	compareManifests(t, result, whole)
	if left := m.left(); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
	m.checkFinished(ctx, d)
}

// checkFinished takes all steps once more.
func (m *machines) checkFinished(ctx context.Context, d Division) {
	t := m.t
	t.Helper()
	r := m.join()
	if !r.Finished() {
		t.Error("it is not finished")
	}
	for window := range d.Windows {
		if done, err := r.Make(ctx, window); err != nil || done.Parts.Made > 0 {
			t.Errorf("%+v, %v", done, err)
		}
	}
	if again, err := r.Finish(ctx); err != nil || again.Manifest == nil {
		t.Errorf("finished twice: %v", err)
	}
	if left := m.left(); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
}

// TestStepsRefuse: other settings, another input and samples are refused, and a
// file that is lost is made again.
func TestStepsRefuse(t *testing.T) {
	m := newMachines(t)
	ctx := t.Context()
	r, err := OpenSized(ctx, m.run(nil), m.state(), 300)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Divide(ctx); !errors.Is(err, ErrNotDivided) {
		t.Errorf("divided before the survey: %v", err)
	}
	other := m.run(func(run *job.Run) { run.Job.RowsPerPart = 11 })
	if _, err := Open(ctx, other, m.state()); !errors.Is(err, begin.ErrOtherJob) || !strings.Contains(err.Error(), "rows_per_part was 10 and is 11") {
		t.Errorf("other settings: %v", err)
	}
	var wrong *job.Error
	if _, err := Open(ctx, m.run(func(run *job.Run) { run.Job.Sample = 3 }), m.state()); !errors.As(err, &wrong) {
		t.Errorf("a sample: %v", err)
	}
	for file := range len(m.uris) {
		if err := r.Survey(ctx, file); err != nil {
			t.Fatal(err)
		}
	}
	d, err := r.Divide(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for window := range d.Windows {
		if _, err := r.Make(ctx, window); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(filepath.Join(m.server.Dir, "leads", "out", "part-00001.parquet")); err != nil {
		t.Fatal(err)
	}
	var missing *MissingError
	if _, err := m.join().Finish(ctx); !errors.As(err, &missing) || len(missing.Windows) != 1 {
		t.Fatalf("a part is lost: %v", err)
	}
	if done, err := m.join().Make(ctx, missing.Windows[0]); err != nil || done.Parts.Made != 1 {
		t.Errorf("made again: %+v, %v", done, err)
	}
	if err := os.WriteFile(m.uris[0], []byte("id,email\n1,other@x.io\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Join(ctx, m.run(nil), m.state()); !errors.Is(err, cut.ErrInputChanged) {
		t.Errorf("another input: %v", err)
	}
}
