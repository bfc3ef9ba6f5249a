package runcmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/wire"
	"github.com/leadetl/leadetl/pipeline"
	"github.com/leadetl/leadetl/pipeline/cluster"
	"github.com/leadetl/leadetl/pipeline/steps"
	"github.com/leadetl/leadetl/sinks"
)

// sharing says how a run is opened that many processes work on.
type sharing struct {
	begin bool // begin it if no process has
	calls bool // this process may call the service
	alone bool // no other process works on it now, as at its end
}

// Settings are the settings of a run, as its workers need them. They hold no
// secret.
type Settings struct {
	Operation string              `json:"operation"`
	Flags     map[string][]string `json:"flags"`
}

// ownFlags are the flags that are not sent to workers: those that only the
// client needs, and those that each worker has of its own.
var ownFlags = []string{
	"job", "set", "state", "workers", "max-rejects", "min-rows", "fail-on", "log-format", "log-level", "quiet", "summary-json", "metrics-listen",
	"openlineage-url", "openlineage-namespace", "on", "detach", "lost-after", "api-key-file", "ca-file", "buy-again", "help",
	"s3-endpoint", "s3-path-style", "s3-give-up-after", "s3-sse", "s3-kms-key", "s3-acl",
}

// settingsOf returns the flags that are set.
func settingsOf(operation string, flags *pflag.FlagSet) Settings {
	s := Settings{Operation: operation, Flags: map[string][]string{}}
	flags.Visit(func(flag *pflag.Flag) {
		if slices.Contains(ownFlags, flag.Name) {
			return
		}
		if list, ok := flag.Value.(pflag.SliceValue); ok {
			s.Flags[flag.Name] = list.GetSlice()
			return
		}
		s.Flags[flag.Name] = []string{flag.Value.String()}
	})
	return s
}

// apply sets flags.
func (s Settings) apply(flags *pflag.FlagSet) error {
	for name, values := range s.Flags {
		flag := flags.Lookup(name)
		if flag == nil || slices.Contains(ownFlags, name) {
			return fmt.Errorf("the run has the setting %q, which this version does not know; start workers of the version of leadetl run", name)
		}
		flag.Changed = true
		if list, ok := flag.Value.(pflag.SliceValue); ok {
			if err := list.Replace(values); err != nil {
				return fmt.Errorf("the setting %q: %w", name, err)
			}
		} else if len(values) != 1 || flags.Set(name, values[0]) != nil {
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
	Begin  bool // begin the run if no process has
	Calls  bool // this process may call the service
	// Process tells this process from others, in the report.
	Process string
}

// OpenShared opens a run with settings that a client has stored, for a worker.
func OpenShared(ctx context.Context, data []byte, own Own, std cli.Streams) (_ *cluster.Opened, err error) {
	var s Settings
	if err := json.Unmarshal(data, &s); err != nil {
		return nil, fmt.Errorf("the settings of the run: %w", err)
	}
	var f runFlags
	c := &cobra.Command{}
	f.register(c)
	if err := s.apply(c.Flags()); err != nil {
		return nil, cli.UsageError(err)
	}
	f.state, f.s3, f.log, f.remote.apiKeyFile, f.remote.caFile = own.State, own.S3, own.Log, own.Key, own.CAFile
	f.shared = &sharing{begin: own.Begin, calls: own.Calls}
	operation, err := f.settle(ctx, c.Flags(), []string{s.Operation})
	if err != nil {
		return nil, err
	}
	run, closeRun, err := f.open(ctx, operation, std)
	if err != nil {
		return nil, err
	}
	open := steps.Join
	if own.Begin {
		open = steps.Open
	}
	shared, err := open(ctx, run, f.objects)
	if err == nil {
		err = shared.TakePart(ctx, own.Process)
	}
	if err != nil {
		return nil, errors.Join(err, closeRun())
	}
	steps := sharedSteps{shared}
	return &cluster.Opened{Steps: steps, Free: steps, Paid: steps, Worked: shared.Worked, Close: closeRun}, nil
}

// sharedSteps are the steps of a run as the workflows know them: they return
// counts alone.
type sharedSteps struct{ run *steps.Run }

func (s sharedSteps) Files() int                                 { return s.run.Files() }
func (s sharedSteps) Survey(ctx context.Context, file int) error { return s.run.Survey(ctx, file) }

// Divide divides the rows.
func (s sharedSteps) Divide(ctx context.Context) (cluster.Division, error) {
	d, err := s.run.Divide(ctx)
	out := cluster.Division{Rows: d.Rows, Parts: d.Parts, Windows: len(d.Windows)}
	for first := 0; first < d.Parts; first += steps.PartsPerWave {
		out.Waves = append(out.Waves, min(steps.PartsPerWave, d.Parts-first))
	}
	return out, err
}

// Make makes the parts of a window.
func (s sharedSteps) Make(ctx context.Context, window int) (cluster.Counts, error) {
	done, err := s.run.Make(ctx, window)
	return countsOf(done.Totals, done.Parts), err
}

// Spread sorts the keys of a window.
func (s sharedSteps) Spread(ctx context.Context, window int) error {
	_, err := s.run.Spread(ctx, window)
	return err
}

// Lots returns the number of lots of a wave.
func (s sharedSteps) Lots(ctx context.Context, wave int) (int, error) { return s.run.Lots(ctx, wave) }

// Gather works out which keys of a lot have to be asked.
func (s sharedSteps) Gather(ctx context.Context, wave, lot int) error {
	_, err := s.run.Gather(ctx, wave, lot)
	return err
}

// Ask asks about the keys of a wave.
func (s sharedSteps) Ask(ctx context.Context, wave int, beat func(cluster.Calls)) (cluster.Calls, error) {
	asked, err := s.run.Ask(ctx, wave, func(a steps.Asked) { beat(callsOf(a)) })
	return callsOf(asked), err
}

// OpenLanes opens lanes for the keys of a wave.
func (s sharedSteps) OpenLanes(ctx context.Context, wave int) (cluster.Lanes, error) {
	l, err := s.run.OpenLanes(ctx, wave)
	return cluster.Lanes{ID: l.ID, Count: l.Count, MaxCredits: l.MaxCredits, MaxCalls: l.MaxCalls, Spent: cluster.Calls{Calls: l.Calls, Credits: l.Credits}}, err
}

// AskLane asks about the keys of a lane.
func (s sharedSteps) AskLane(ctx context.Context, wave int, l cluster.Lanes, lane int, beat func(cluster.Calls)) (cluster.Calls, error) {
	lanes := steps.Lanes{ID: l.ID, Count: l.Count, MaxCredits: l.MaxCredits, MaxCalls: l.MaxCalls}
	asked, err := s.run.AskLane(ctx, wave, lanes, lane, func(a steps.Asked) { beat(callsOf(a)) })
	return callsOf(asked), err
}

// JoinLanes takes over what lanes have.
func (s sharedSteps) JoinLanes(ctx context.Context) error { return s.run.JoinLanes(ctx) }

func callsOf(a steps.Asked) cluster.Calls {
	return cluster.Calls{Keys: a.Keys, Closed: a.Closed, Matched: a.Matched, Calls: a.Calls, Credits: a.Credits, Unknown: a.Unknown}
}

// Share gives each part the answers of a lot that it needs.
func (s sharedSteps) Share(ctx context.Context, wave, lot int) error {
	return s.run.Share(ctx, wave, lot)
}

// Build makes a part from the answers.
func (s sharedSteps) Build(ctx context.Context, part int) (cluster.Counts, error) {
	done, err := s.run.Build(ctx, part)
	return countsOf(done.Totals, done.Parts), err
}

// Finish publishes the dataset.
func (s sharedSteps) Finish(ctx context.Context) (cluster.Counts, error) {
	result, err := s.run.Finish(ctx)
	if err != nil {
		return cluster.Counts{}, err
	}
	return countsOf(result.Totals, partsOf(result)), nil
}

func partsOf(r *pipeline.Result) int { return r.Made + r.Skipped }

func countsOf(t sinks.Totals, parts int) cluster.Counts {
	return cluster.Counts{
		Parts: int64(parts), Rows: t.Rows, Matched: t.Matched, NoMatch: t.NoMatch, Rejected: t.Rejected, Failed: t.Failed,
		Suppressed: t.Suppressed, Skipped: t.Skipped, Malformed: t.Malformed,
	}
}
