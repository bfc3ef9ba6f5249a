package runcmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/runview"
	"github.com/leadetl/leadetl/cmd/leadetl/wire"
	"github.com/leadetl/leadetl/internal/cliflag"
	"github.com/leadetl/leadetl/internal/objects"
	"github.com/leadetl/leadetl/pipeline"
	"github.com/leadetl/leadetl/pipeline/cluster"
	"github.com/leadetl/leadetl/pipeline/finish"
	"github.com/leadetl/leadetl/pipeline/objectstate"
	"github.com/leadetl/leadetl/pipeline/stats"
	"github.com/leadetl/leadetl/pipeline/steps"
)

// sharing says that other processes work on a run too.
type sharing struct {
	alone bool // but not now, as at its end
}

// Settings are the settings of a run, as its workers need them. They hold no
// secret.
type Settings struct {
	Operation string              `json:"operation"`
	Flags     map[string][]string `json:"flags"`
	// Trees are the keys of the job file that name several resolvers, and Providers the text of
	// each file of entries, by its path: workers do not reach this machine.
	Trees     map[string]cliflag.Tree `json:"trees,omitempty"`
	Providers map[string]string       `json:"providers,omitempty"`
}

// shareable returns what is set, for workers.
func (f *runFlags) shareable(ctx context.Context, operation string) (Settings, error) {
	s := f.settingsOf(operation)
	for name, tree := range f.order.trees() {
		if tree.IsSet() {
			if s.Trees == nil {
				s.Trees = map[string]cliflag.Tree{}
			}
			s.Trees[name] = *tree
			s.Flags[name] = nil // a worker of an earlier version refuses what it does not know
		}
	}
	files, err := f.order.providerFiles()
	for _, path := range files {
		var text []byte
		if text, err = providerFile.Read(ctx, path); err != nil {
			break
		}
		if s.Providers == nil {
			s.Providers = map[string]string{}
		}
		s.Providers[path] = string(text)
	}
	if err != nil {
		return s, fmt.Errorf("providers: %w", err)
	}
	return s, nil
}

// settingsOf returns the settings that workers are sent.
func (f *tableOf) settingsOf(operation string) Settings {
	s := Settings{Operation: operation, Flags: map[string][]string{}}
	for _, given := range f.given(0) {
		value := f.all.Lookup(given.Name).Value
		switch list, ok := value.(pflag.SliceValue); {
		case given.Use&own != 0:
		case ok:
			s.Flags[given.Name] = list.GetSlice()
		default:
			s.Flags[given.Name] = []string{value.String()}
		}
	}
	return s
}

// apply applies the settings of a run to f.
func (s Settings) apply(f *runFlags) error {
	for name, values := range s.Flags {
		if s.Trees[name].IsSet() {
			continue
		}
		i := slices.IndexFunc(f.settings, func(known cli.Setting) bool { return known.Name == name && known.Use&own == 0 })
		if i < 0 {
			return fmt.Errorf("the run has the setting %q, which this version does not know; start workers of the version of leadetl run", name)
		}
		flag := f.all.Lookup(name)
		flag.Changed = true
		if list, ok := flag.Value.(pflag.SliceValue); ok {
			if err := list.Replace(values); err != nil {
				return fmt.Errorf("the setting %q: %w", name, err)
			}
		} else if len(values) != 1 || f.all.Set(name, values[0]) != nil {
			return fmt.Errorf("the setting %q has no value that this version understands", name)
		}
	}
	return nil
}

// Own are the settings that a worker has of its own.
type Own struct {
	State  string // URI
	S3     wire.S3
	Key    string // file of the service's API key
	CAFile string
	Log    cli.LogFlags
	// Process tells this process from others, in the report.
	Process string
}

// flags are the settings that a client has stored, with the worker's own.
func (own Own) flags(ctx context.Context, data []byte) (f *runFlags, err error) {
	var s Settings
	if err := json.Unmarshal(data, &s); err != nil {
		return nil, fmt.Errorf("the settings of the run: %w", err)
	}
	f = &runFlags{worker: true}
	f.register(&cobra.Command{})
	if err := s.apply(f); err != nil {
		return nil, cli.UsageError(err)
	}
	for name, tree := range f.order.trees() {
		*tree = s.Trees[name]
	}
	f.order.texts = s.Providers
	f.state, f.s3, f.log, f.remote.one.keyFile, f.remote.caFile = own.State, own.S3, own.Log, own.Key, own.CAFile
	_, err = f.settle(ctx, []string{s.Operation})
	return f, err
}

// OpenShared opens a run without calls, whose steps many workers take. With begin it
// begins the run if no process has.
func OpenShared(ctx context.Context, data []byte, own Own, begin bool, std cli.Streams) (_ *cluster.Opened, err error) {
	f, err := own.flags(ctx, data)
	if err != nil {
		return nil, err
	}
	f.shared = &sharing{}
	run, closeRun, err := f.open(ctx, std)
	if err != nil {
		return nil, err
	}
	open := steps.Join
	if begin {
		open = steps.Open
	}
	shared, err := open(ctx, run, f.objects)
	if err == nil {
		err = shared.TakePart(ctx, own.Process)
	}
	if err != nil {
		return nil, errors.Join(err, closeRun())
	}
	return &cluster.Opened{Steps: sharedSteps{shared}, Worked: shared.Worked, Close: closeRun}, nil
}

// Buy does a run that asks a service, as leadetl run does. It takes over at once from
// the workers that had the run before.
func Buy(ctx context.Context, data []byte, own Own, job cluster.Job, turn cluster.Turn, std cli.Streams) (reached cluster.Status, err error) {
	f, err := own.flags(ctx, data)
	if err != nil {
		return reached, err
	}
	f.turn = objectstate.Turn{
		Holder:    objects.Holder{Name: "run " + job.ID + " " + job.Submission, Term: turn.Term, LostAfter: job.LostAfter},
		Confirmed: turn.Confirmed,
	}
	run, closeRun, err := f.open(ctx, std)
	if err != nil {
		return reached, err
	}
	run.ID = job.Submission
	stop := runview.Every(tellProgress, func() { turn.Tell(statusOf(run.Progress.Snapshot())) })
	_, err = pipeline.Do(ctx, run)
	stop()
	reached = statusOf(run.Progress.Snapshot())
	return reached, errors.Join(err, closeRun())
}

// tellProgress is the time between two looks at the progress of a run.
const tellProgress = time.Second

// statusOf is the progress of a run as the client shows it.
func statusOf(s stats.Snapshot) cluster.Status {
	now := cluster.Status{
		Rows: s.RowsRead, Read: cluster.Read{Bytes: s.BytesRead, Total: s.BytesTotal, All: s.AllRead},
		Made: cluster.Counts{Parts: s.Parts, Totals: s.Done},
	}
	if c := s.Calls; c != nil {
		now.Calls = cluster.Calls{
			Asked: c.Asked, Closed: c.Closed, Matched: c.Matched,
			Calls: c.EarlierCalls + c.Calls, Credits: c.EarlierCredits + c.Credits, Unknown: c.Unknown,
		}
	}
	return now
}

// sharedSteps are the steps of a run as the workflows know them: they return
// counts alone.
type sharedSteps struct{ run *steps.Run }

func (s sharedSteps) Files() int                                 { return s.run.Files() }
func (s sharedSteps) Survey(ctx context.Context, file int) error { return s.run.Survey(ctx, file) }

// Divide divides the rows.
func (s sharedSteps) Divide(ctx context.Context) (cluster.Division, error) {
	d, err := s.run.Divide(ctx)
	return cluster.Division{Rows: d.Rows, Parts: d.Parts, Windows: len(d.Windows)}, err
}

// Make makes the parts of a window.
func (s sharedSteps) Make(ctx context.Context, window int) (cluster.Counts, error) {
	result, err := s.run.Make(ctx, window)
	return countsOf(result), err
}

// Finish publishes the dataset.
func (s sharedSteps) Finish(ctx context.Context) (cluster.Counts, error) {
	result, err := s.run.Finish(ctx)
	if err != nil {
		return cluster.Counts{}, err
	}
	return countsOf(result), nil
}

func countsOf(r *finish.Result) cluster.Counts {
	if r == nil {
		return cluster.Counts{}
	}
	c := cluster.Counts{Parts: int64(r.Parts.All()), Totals: r.Totals}
	c.Reasons = nil // workflows pass on counts alone
	return c
}
