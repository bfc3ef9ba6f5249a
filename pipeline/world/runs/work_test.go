package runs

import (
	"context"
	"errors"

	"github.com/leadetl/leadetl/internal/filelock"
	"github.com/leadetl/leadetl/internal/objects"
	"github.com/leadetl/leadetl/internal/testkit/worldtest"
	"github.com/leadetl/leadetl/pipeline"
	"github.com/leadetl/leadetl/pipeline/changes"
	"github.com/leadetl/leadetl/pipeline/purchase"
	"github.com/leadetl/leadetl/pipeline/steps"
	"github.com/leadetl/leadetl/sinks"
)

// work is what a process does for a night.
func (s *site) work(ctx context.Context, machine *worldtest.World, n night, retry bool) error {
	do := (*process).run
	switch {
	case n.compares:
		do = (*process).compare
	case s.plan.kind == windows:
		do = (*process).takeSteps
	}
	p, err := s.start(ctx, machine, n, retry)
	if err == nil {
		err = do(p, ctx)
	}
	return errors.Join(err, p.close())
}

// run is leadetl run.
func (p *process) run(ctx context.Context) error {
	run, err := p.open(ctx, false, false)
	if err == nil {
		_, err = pipeline.Do(ctx, run)
	}
	return err
}

// windowBytes gives windows of a few rows.
const windowBytes = 100

// takeSteps is leadetl survey, part and finish, one after another.
func (p *process) takeSteps(ctx context.Context) error {
	for _, step := range []func(*process, context.Context) error{(*process).survey, (*process).part, (*process).finish} {
		own, err := p.start(ctx, p.machine, p.night, false)
		if err == nil {
			err = step(own, ctx)
		}
		if err = errors.Join(err, own.close()); err != nil {
			return err
		}
	}
	return nil
}

func (p *process) survey(ctx context.Context) error {
	run, err := p.open(ctx, true, false)
	if err != nil {
		return err
	}
	r, err := steps.OpenSized(ctx, run, p.state, windowBytes)
	if err != nil {
		return err
	}
	for file := range r.Files() {
		if err := r.Survey(ctx, file); err != nil {
			return err
		}
	}
	if r.Finished() {
		return nil
	}
	_, err = r.Divide(ctx)
	return err
}

func (p *process) part(ctx context.Context) error {
	run, err := p.open(ctx, true, false)
	if err != nil {
		return err
	}
	r, err := steps.Join(ctx, run, p.state)
	if err != nil || r.Finished() {
		return err
	}
	d, err := r.Division(ctx)
	for i := range d.Windows {
		if err == nil {
			_, err = r.Make(ctx, i)
		}
	}
	return err
}

func (p *process) finish(ctx context.Context) error {
	run, err := p.open(ctx, true, true)
	if err != nil {
		return err
	}
	r, err := steps.Join(ctx, run, p.state)
	if err == nil {
		_, err = r.Finish(ctx)
	}
	return err
}

// compare is leadetl changes, of the two nights before.
func (p *process) compare(ctx context.Context) (err error) {
	options := p.places()
	var opened [2]*changes.Dataset
	for i := range opened {
		if opened[i], err = changes.Open(ctx, p.plan.night(i).out, options); err != nil {
			return err
		}
	}
	settings := changes.Settings{By: "id", Was: []string{"key"}}
	made, err := changes.Describe(opened[0], *opened[1], settings)
	if err != nil {
		return err
	}
	want := &sinks.Comparison{Of: opened[1].Manifest.JobID, OfAt: opened[1].Manifest.CompletedAt, Changes: *made}
	out, err := sinks.Open(ctx, p.night.out, options)
	if err != nil {
		return err
	}
	p.opened = append(p.opened, out.Close)
	to := sinks.Compared{Dataset: out}
	switch earlier, finished, err := to.Comparison(); {
	case err != nil:
		return err
	case finished && !earlier.IsOf(want):
		return errors.New("the folder has other changes")
	case finished:
		return out.CheckFiles(earlier.Files)
	}
	if err := to.Begin(want); err != nil {
		return err
	}
	if made, err = changes.Make(ctx, opened[0], *opened[1], settings, changes.Target{Create: out.Beside(""), Sum: out.Sum, Compression: sinks.Snappy, Scratch: p.folder}); err != nil {
		return err
	}
	want.Changes = *made
	return to.End(want)
}

// isNamed reports whether an error says that the same command goes on later: a lease stands in its
// way, or none of the few keys that it asked about has a match.
func isNamed(err error) bool {
	return errors.Is(err, filelock.ErrLocked) || errors.Is(err, objects.ErrLockLost) || errors.Is(err, purchase.ErrRefused)
}
