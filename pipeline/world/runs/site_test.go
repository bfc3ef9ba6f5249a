package runs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/leadetl/leadetl/internal/disk"
	"github.com/leadetl/leadetl/internal/objects"
	"github.com/leadetl/leadetl/internal/testkit/s3test"
	"github.com/leadetl/leadetl/internal/testkit/worldtest"
	"github.com/leadetl/leadetl/pipeline/answers"
	"github.com/leadetl/leadetl/pipeline/changes"
	"github.com/leadetl/leadetl/pipeline/job"
	"github.com/leadetl/leadetl/pipeline/journal"
	"github.com/leadetl/leadetl/pipeline/objectstate"
	"github.com/leadetl/leadetl/pipeline/order"
	"github.com/leadetl/leadetl/pipeline/purchase"
	"github.com/leadetl/leadetl/pipeline/stats"
	"github.com/leadetl/leadetl/pipeline/steps"
	"github.com/leadetl/leadetl/resolution/embedded"
	"github.com/leadetl/leadetl/sinks"
	"github.com/leadetl/leadetl/sources"
	"github.com/leadetl/leadetl/transforms/suppression"
)

// site is all that outlives the machines of a world: a store, services, and of a state in a
// folder the disks.
type site struct {
	world    *worldtest.World
	plan     plan
	objects  *s3test.Fake
	bucket   *worldtest.Bucket
	services []*service
	local    *worldtest.World // the machine with the disks
	disk     *worldtest.Disk  // state and datasets
	logs     *worldtest.Disk  // of answers
	dir      string           // of files that no simulated disk has
	lists    string           // the folder of lists that are not on S3
	told     map[int]string   // by night: the entries of lists that it has found
	short    bool             // a list that grows has not yet
	lives    int
	harm     *harm // nil without damage
	wrong    []string
}

const stateURI = "s3://" + bucketName + "/state/"

func newSite(w *worldtest.World, p plan, local *worldtest.World, dir, lists string) (*site, error) {
	s := &site{
		world: w, plan: p, objects: s3test.NewMemory(nil), local: local, told: map[int]string{}, disk: worldtest.NewDisk(local), logs: worldtest.NewDisk(local), dir: dir, lists: lists,
		services: []*service{newService(w, p, "one", 0), newService(w, p, "many", 3)},
	}
	if p.persons {
		s.services = slices.Insert(s.services, w.Below(3, "finder"), newService(w, p, finder, 2*w.Below(2, "finder's batch")))
	}
	objects := map[string]string{}
	for name, text := range p.lists(w) {
		objects[bucketName+"/"+name] = text
	}
	if p.outOnS3 {
		s.objects = s3test.NewMemory(objects)
	}
	s.bucket = worldtest.NewBucket(w, s.objects)
	s.bucket.Prompt = p.prompt
	s.logs.Name = "logs"
	return s, os.MkdirAll(s.answersFolder(), 0o700)
}

// writeLists writes the lists of all nights into a folder.
func (p plan) writeLists(w *worldtest.World, folder string) (err error) {
	for name, text := range p.lists(w) {
		path := filepath.Join(folder, name)
		err = errors.Join(err, os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600))
	}
	return err
}

func (s *site) answersFolder() string { return filepath.Join(s.dir, "state", "answers") }

// process is what runs on a machine for a life: a command, for a night.
type process struct {
	*site
	machine *worldtest.World
	night   night
	retry   bool // unknown calls
	store   *objects.Store
	folder  string             // scratch
	home    disk.Folder        // of the state, or of what a state on S3 has on the machine
	state   *objectstate.State // nil of a state in a folder
	stored  *answers.Stores    // of a state in a folder, once it is open
	opened  []func() error
}

// start starts a process on a machine.
func (s *site) start(ctx context.Context, machine *worldtest.World, n night, retry bool) (*process, error) {
	p := &process{site: s, machine: machine, night: n, retry: retry, folder: filepath.Join(s.dir, "state")}
	waits := 0
	p.store = objects.New(ctx, objects.Options{Endpoint: "http://store.example", PathStyle: true, Machine: &objects.Machine{
		Host: fmt.Sprint("machine-", s.lives), HTTP: s.bucket.From(machine),
		Random: func() float64 {
			waits++
			return float64(s.world.Below(1000, "wait", s.lives, waits)) / 1000
		},
	}})
	if !s.plan.onS3 {
		p.home = s.disk.At("/state")
		_, err := p.home.Make(0o700)
		return p, err
	}
	p.home = worldtest.NewDisk(machine)
	var err error
	if p.folder, err = os.MkdirTemp(s.dir, "scratch-"); err != nil {
		return nil, err
	}
	p.opened = append(p.opened, func() error { return os.RemoveAll(p.folder) })
	if p.state, err = objectstate.Open(p.store, stateURI); err == nil {
		p.state.Scratch, p.state.Waits = p.folder, true
		err = journal.OnS3(p.state).CheckFormat()
	}
	return p, err
}

// close closes what is open, the last first.
func (p *process) close() (err error) {
	for _, one := range slices.Backward(p.opened) {
		err = errors.Join(err, one())
	}
	p.opened = nil
	return err
}

// open opens everything as the command does. shared says that processes share the work, and alone
// that this one has it for itself now.
func (p *process) open(ctx context.Context, shared, alone bool) (run *job.Run, err error) {
	run = &job.Run{
		Job: p.plan.job(p.night), StateDir: p.folder, Overwrite: p.night.overwrite, Workers: p.plan.workers, Program: "leadetl test",
		Log: slog.New(slog.DiscardHandler), Progress: &stats.Progress{},
	}
	if run.Suppression, err = p.plan.suppressed(p.short); err != nil {
		return nil, err
	}
	if p.plan.listed && !p.plan.buys() { // what parts have found is not known when a finished dataset is improved
		_, told := p.told[p.night.number]
		run.SuppressedReported = told && !run.Overwrite
		run.ReportSuppressed = func(found suppression.Found) error {
			if err := p.machine.Alive(); err != nil {
				return err
			}
			p.told[p.night.number] = string(found.Encode())
			return nil
		}
	}
	in := p.night.in
	if !p.plan.outOnS3 {
		in = filepath.Join(p.lists, in)
	}
	if run.Input, err = sources.Open(ctx, []string{in}, sources.Options{Objects: p.store, BatchRows: p.plan.batch}); err != nil {
		return nil, err
	}
	p.opened = append(p.opened, run.Input.Close)
	options := p.places()
	options.Share = shared && !alone
	if shared {
		options.Holder, err = steps.Holder(p.state, p.night.out)
	} else {
		options.Holder.Name, err = p.openProgress(ctx, run)
	}
	if err != nil {
		return nil, err
	}
	if alone {
		folder, err := p.runs().RunFolder(p.night.out)
		if err != nil {
			return nil, err
		}
		held, err := folder.Claim(ctx)
		if err != nil {
			return nil, err
		}
		p.opened = append(p.opened, held.Release)
	}
	if run.Output, err = sinks.Open(ctx, p.night.out, options); err != nil {
		return nil, err
	}
	p.opened = append(p.opened, run.Output.Close)
	if err := p.openNights(ctx, run); err != nil {
		return nil, err
	}
	return run, p.openServices(ctx, run)
}

// places are where datasets are.
func (p *process) places() sinks.Options {
	return sinks.Options{Objects: p.store, State: p.home, Disk: p.disk.At, SumLater: p.plan.sumLater}
}

// runs has the unfinished runs and the nights of the state.
func (p *process) runs() *journal.State {
	if p.state != nil {
		return journal.OnS3(p.state)
	}
	return journal.InFolder(p.home)
}

// openProgress opens the journal of the run, and names who holds its dataset.
func (p *process) openProgress(ctx context.Context, run *job.Run) (holder string, err error) {
	if p.state == nil {
		run.Journal = func(out string) (journal.Storage, error) { return p.runs().Progress(ctx, out, false) }
		return "", nil
	}
	own, err := p.runs().Progress(ctx, p.night.out, false)
	if err != nil {
		return "", err
	}
	p.opened = append(p.opened, own.Release)
	run.Journal = func(out string) (journal.Storage, error) {
		if out == p.night.out {
			return own, nil
		}
		return p.runs().Progress(ctx, out, true)
	}
	return own.String(), nil
}

// openNights opens the list of finished datasets, and the one to compare with.
func (p *process) openNights(ctx context.Context, run *job.Run) (err error) {
	if run.Nights, err = p.runs().Nights(ctx, "nightly", p.night.out); err != nil || !p.plan.changes {
		return err
	}
	run.Changes = &job.Changes{Settings: changes.Settings{By: "id"}}
	before := run.Nights.Before()
	if before == nil {
		return nil
	}
	run.Changes.Before, err = changes.Open(ctx, before.Out, p.places())
	return err
}

// openServices opens what is bought, and whom it is bought from.
func (p *process) openServices(ctx context.Context, run *job.Run) error {
	o := &order.Order{Budget: p.plan.budget(), Counters: &stats.CallCounters{}}
	run.Order = o
	switch p.plan.kind {
	case hashed, windows, compared:
		o.Steps = []*order.Step{{Name: "embedded", Directory: embedded.New(nil, embedded.Options{})}}
	case lookedUp:
		o.Steps = []*order.Step{{Name: "embedded", Directory: embedded.New(people(), embedded.Options{}), Fingerprint: people().Fingerprint()}}
	case bought:
		remote, err := p.openService(ctx, p.services[0], run)
		if err != nil {
			return err
		}
		o.Steps = []*order.Step{{Name: "service", Remote: remote}}
	case ordered:
		o.Want, o.From = p.plan.want, slices.Sorted(maps.Keys(run.Job.From))
		for i, s := range p.services {
			remote, err := p.openService(ctx, s, run)
			if err != nil {
				return err
			}
			step := &order.Step{Name: s.name, Remote: remote}
			if s.name == finder {
				step.Person = o.From
			}
			if i == 0 {
				step.MinMatch = p.plan.fewest
			}
			o.Steps = append(o.Steps, step)
		}
		o.Steps = append(o.Steps, &order.Step{Name: "directory", Directory: embedded.New(people(), embedded.Options{}), Fingerprint: people().Fingerprint()})
	}
	run.Progress.Calls = o.Counted()
	return nil
}

func (p *process) openService(ctx context.Context, s *service, run *job.Run) (*purchase.Remote, error) {
	remote := p.remote(s, nil)
	stored, err := p.openAnswers(ctx, remote, run)
	if err == nil {
		remote.Answers = p.asked(s, stored)
	}
	return remote, err
}

// openAnswers opens the stored answers of a service.
func (p *process) openAnswers(ctx context.Context, remote *purchase.Remote, run *job.Run) (purchase.Store, error) {
	if p.stored == nil {
		o := answers.Options{InTurn: true}
		var places answers.Places = answers.Alone{Place: answers.On(p.logs)}
		if p.state != nil {
			places, o.LeaveBefore = p.state, p.state.LeaveBefore
		}
		p.stored = answers.NewStores(places, o)
		p.opened = append(p.opened, p.stored.Close)
	}
	s, err := p.stored.Of(ctx, remote.Name)
	if err != nil {
		return nil, err
	}
	s.DelayWrites(remote.Pace.Crowded)
	return s, nil
}
