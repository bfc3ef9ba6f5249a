package runcmd

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/wire"
	"github.com/leadetl/leadetl/internal/objects"
	"github.com/leadetl/leadetl/pipeline/answers"
	"github.com/leadetl/leadetl/pipeline/cluster"
	"github.com/leadetl/leadetl/pipeline/finish"
	"github.com/leadetl/leadetl/pipeline/journal"
	"github.com/leadetl/leadetl/pipeline/outcome"
	"github.com/leadetl/leadetl/pipeline/report"
	"github.com/leadetl/leadetl/pipeline/stats"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/sinks"
	"github.com/leadetl/leadetl/sources"
)

// clusterFlags are the flags of a run that workers do.
type clusterFlags struct {
	on        string
	detach    bool
	lostAfter time.Duration
}

// minLostAfter is the least lost_after: a stall of the machine must not look
// like a death.
const minLostAfter = 5 * time.Second

// checkCluster joins the reasons why workers cannot do the run: they reach S3,
// but not this machine.
func (f *runFlags) checkCluster(op resolution.Operation) error {
	if f.cluster.on == "" {
		return nil
	}
	var errs []error
	if _, err := cluster.ParseAddress(f.cluster.on); err != nil {
		errs = append(errs, fmt.Errorf("--on: %w", err))
	}
	fail := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	local := func(flag, value, instead string) {
		if value != "" && !objects.Is(value) {
			fail("--%s %s: workers do not reach this machine; %s", flag, value, instead)
		}
	}
	for _, uri := range f.in {
		local("in", uri, "copy the input to S3 and name it there, or leave out --on")
	}
	for _, list := range f.suppress.Lists {
		local("suppress", list, "copy the list to S3 and name it there")
	}
	local("out", f.out, "name a place on S3")
	local("state", f.state, "with --on it is on S3: --state s3://bucket/prefix/")
	if f.directory != "" {
		fail("--directory: workers do not reach the folder; serve it with leadetl serve and ask that with --resolver, or leave out --on")
	}
	for _, s := range f.items {
		if s.directory != "" && s.directory != f.directory {
			errs = append(errs, s.at.Errorf("directory: workers do not reach the folder; serve it with leadetl serve and name its address in its place, or leave out --on"))
		}
	}
	if f.dropAnswers != "" {
		fail("--drop-answers: workers cannot write the responses; leave out --on")
	}
	if f.dataset.job.Sample > 0 {
		fail("--sample reads the input in one piece; leave out --on")
	}
	if op.IsKeyword() || f.search.isGiven() {
		fail("workers do not do keyword searches; leave out --on")
	}
	if f.remote.offline {
		fail("--offline makes no calls, which one process does as fast; leave out --on")
	}
	if f.remote.callbacks.listen != "" {
		fail("--callback-listen is for one process; leave out --on, or name a receiver with --callback-url")
	}
	if f.cluster.detach && (f.notice.IsGiven() || f.metricsListen != "" || f.metricsFile != "") {
		fail("notify, metrics_file and metrics_listen are of the process that waits for the end; leave out --detach")
	}
	if f.lineage.IsGiven() {
		fail("openlineage_url is told by a run in one process; leave it or --on out")
	}
	if f.cluster.lostAfter < minLostAfter {
		fail("lost_after is %s; it must be at least %s", f.cluster.lostAfter, minLostAfter)
	}
	return errors.Join(errs...)
}

// ServiceOf tells the services and providers that a run asks from others, in the name of a task
// queue. The order of their names makes no difference.
func ServiceOf(names ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(slices.Sorted(slices.Values(names)), "\n")))
	return hex.EncodeToString(sum[:4])
}

// storedNames are the names in stored answers of all that the run may ask.
func (f *asked) storedNames() (names []string) {
	for _, s := range f.items {
		names = append(names, s.storedName())
	}
	return names
}

// submitted is a run that workers do, as this process sees it.
type submitted struct {
	run      *cluster.Run
	folder   objects.Location // of its settings and failures
	settings string           // name of those of this submission
	store    *objects.Store
	progress *stats.Progress
	log      *slog.Logger

	called cluster.Calls
	read   int64
}

// ClusterFolder is where the settings of a run are, and the texts of its
// failures.
func ClusterFolder(state, id string) (objects.Location, error) {
	at, err := objects.ParseFolder(state)
	return at.Below("cluster/" + id + "/"), err
}

// runOn has workers do the run.
func (f *runFlags) runOn(ctx context.Context, operation string, std cli.Streams) (made *report.Report, err error) {
	log, err := f.log.Open(std.Err)
	if err != nil {
		return nil, cli.UsageError(err)
	}
	if _, err := f.job(operation); err != nil {
		return nil, cli.UsageError(err)
	}
	settings, err := f.shareable(ctx, operation)
	if err != nil {
		return nil, cli.UsageError(err)
	}
	store, err := f.s3.Open(ctx, log)
	if err != nil {
		return nil, cli.UsageError(err)
	}
	if err := f.await(ctx, store, log); err != nil {
		return nil, err
	}
	progress := &stats.Progress{}
	if f.isRemote() {
		progress.Calls = &stats.CallCounters{}
	}
	end, err := f.tellMetrics(ctx, progress, log)
	if err != nil {
		return nil, err
	}
	defer func() { err = end(err) }()
	s, closeEngine, err := f.submit(ctx, settings, store, progress, log)
	if err != nil {
		return nil, err
	}
	defer closeEngine()
	if f.cluster.detach {
		_, err := fmt.Fprintf(std.Out, "submitted %s; the same command without --detach shows how far it is\n", s.run.ID())
		return nil, err
	}
	started := time.Now()
	stop := f.display(log, std).Run(ctx, s.progress, f.remote.timeout)
	err = s.watch(ctx)
	stop()
	result, files := &finish.Result{Counts: report.Counts{Parts: report.Parts{Made: int(s.progress.Snapshot().Parts)}}}, []sources.File(nil)
	if err == nil {
		result, made, files, err = s.result(ctx, f.out)
	}
	return made, f.close(result, err, files, s.progress, started, log, std)
}

// clusterJob is what the run is for workers. Its state can be used.
func (f *runFlags) clusterJob(ctx context.Context, store *objects.Store, settings Settings, log *slog.Logger) (job cluster.Job, err error) {
	state, err := wire.StateOnS3(store, f.state)
	if err != nil {
		return job, err
	}
	out, err := objects.ParseFolder(f.out)
	if err != nil {
		return job, cli.UsageError(fmt.Errorf("--out: %w", err))
	}
	own, err := journal.OnS3(state).RunFolder(out.String())
	if err != nil {
		return job, err
	}
	job = cluster.Job{ID: own.ID(), State: state.String(), LostAfter: f.cluster.lostAfter, Submission: uuid.NewString()}
	if f.isRemote() {
		job.Service = ServiceOf(f.storedNames()...)
	}
	for _, s := range f.items {
		if s.address == "" {
			continue
		}
		of := answers.Scope{Service: s.storedName(), Operation: resolution.Operation(settings.Operation)}
		if err := f.service(s).checkNames(ctx, wire.State{Objects: state}, of, log); err != nil {
			return job, err
		}
	}
	return job, nil
}

// submit stores the settings and submits the run.
func (f *runFlags) submit(ctx context.Context, settings Settings, store *objects.Store, progress *stats.Progress, log *slog.Logger) (*submitted, func(), error) {
	job, err := f.clusterJob(ctx, store, settings, log)
	if err != nil {
		return nil, nil, err
	}
	data, err := json.Marshal(settings)
	if err != nil {
		return nil, nil, err
	}
	sum := sha256.Sum256(data)
	job.Settings = settingsPrefix + hex.EncodeToString(sum[:8])
	folder, err := ClusterFolder(f.state, job.ID)
	if err != nil {
		return nil, nil, cli.UsageError(err)
	}
	at, err := cluster.ParseAddress(f.cluster.on)
	if err != nil {
		return nil, nil, cli.UsageError(err)
	}
	engine, at, err := cluster.Dial(ctx, cluster.Connection{Address: at, Identity: "leadetl run", Log: QuietLog(log)})
	if err != nil {
		return nil, nil, ClusterError(err)
	}
	if _, err := store.Put(ctx, folder.Below(job.SettingsObject()), objects.ContentOf(data, "application/json")); err != nil {
		engine.Close()
		return nil, nil, wire.UnlessUnavailable(fmt.Errorf("--state: %w", err))
	}
	s := &submitted{folder: folder, settings: job.SettingsObject(), store: store, progress: progress, log: log}
	if s.run, err = cluster.Submit(ctx, engine, job); err != nil {
		engine.Close()
		if errors.Is(err, cluster.ErrOtherRun) { // otherwise it may have been submitted all the same
			s.removeSettings(ctx)
		}
		return nil, nil, ClusterError(err)
	}
	if !s.run.Attached {
		s.removeOld(ctx)
	} else {
		s.removeSettings(ctx) // those of the submission before are in use
		log.Info("the run is going on already; this shows its progress", "workflow", s.run.ID(), "server", at.String())
	}
	return s, engine.Close, nil
}

// settingsPrefix begins the names of settings.
const settingsPrefix = "settings-"

// keepSettings is how long settings are left alone, so that a client that is about
// to submit a run finds its own.
const keepSettings = 10 * time.Minute

// removeSettings removes the settings of this submission, which are not in use. A
// failure to remove them does not fail the run: they hold no data, and the next run of this output
// removes them.
func (s *submitted) removeSettings(ctx context.Context) {
	_ = s.store.Remove(context.WithoutCancel(ctx), s.folder.Below(s.settings))
}

// removeOld removes what earlier submissions have left: settings, and the reasons of
// failures. None of them is in use, because an output has one run at a time.
func (s *submitted) removeOld(ctx context.Context) {
	for info, err := range s.store.List(ctx, s.folder) {
		if err != nil {
			return
		}
		if info.Location != s.folder.Below(s.settings) && time.Since(info.ModTime) > keepSettings {
			_ = s.store.Remove(ctx, info.Location)
		}
	}
}

// QuietLog drops what the SDK logs below warnings.
func QuietLog(log *slog.Logger) *slog.Logger { return slog.New(atLeastWarn{log.Handler()}) }

type atLeastWarn struct{ slog.Handler }

// Enabled is slog.Handler's.
func (h atLeastWarn) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= slog.LevelWarn && h.Handler.Enabled(ctx, l)
}

// WithAttrs is slog.Handler's.
func (h atLeastWarn) WithAttrs(a []slog.Attr) slog.Handler {
	return atLeastWarn{h.Handler.WithAttrs(a)}
}

// WithGroup is slog.Handler's.
func (h atLeastWarn) WithGroup(name string) slog.Handler {
	return atLeastWarn{h.Handler.WithGroup(name)}
}

// ClusterError gives an error of the server its exit code; nil stays nil.
func ClusterError(err error) error {
	if err == nil {
		return nil
	}
	switch failure, failed := errors.AsType[*cluster.Failure](err); {
	case failed:
		return cli.WithCode(failure.Code, failure)
	case errors.Is(err, cluster.ErrUnreachable):
		return cli.WithCode(cli.ExitTryAgain, err)
	case errors.Is(err, context.Canceled):
		return wire.ErrInterruptedEarly
	}
	return cli.UsageError(err)
}

const (
	lookEvery   = 2 * time.Second
	noWorkerFor = 10 * time.Second
)

// watch waits for the end of the run. When ctx ends it cancels the run, and
// waits until the calls in flight are stored.
func (s *submitted) watch(ctx context.Context) error {
	steady := context.WithoutCancel(ctx)
	looking, stopLooking := context.WithCancel(steady)
	defer stopLooking()
	looked := make(chan struct{})
	go func() {
		defer close(looked)
		s.look(looking)
	}()
	stopCancel := context.AfterFunc(ctx, func() {
		limited, done := context.WithTimeout(steady, noWorkerFor)
		defer done()
		if err := s.run.Cancel(limited); err != nil {
			s.log.Error("the Temporal server cannot be told to stop the run, which goes on; a second signal ends this process only", "error", err)
		}
	})
	defer stopCancel()
	status, err := s.run.Wait(steady, func(name string) (string, error) {
		data, _, err := s.store.ReadFile(steady, s.folder.Below(name))
		return string(data), err
	})
	stopLooking()
	<-looked
	s.removeSettings(steady)
	if err != nil {
		if errors.Is(err, context.Canceled) {
			return err
		}
		return ClusterError(err)
	}
	s.show(status)
	return nil
}

// look follows the run until ctx ends, and says if workers are missing.
func (s *submitted) look(ctx context.Context) {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	missingSince, told := time.Now(), ""
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		all, calling, err := s.run.Workers(ctx)
		if err != nil {
			continue // Wait continues when the server is back
		}
		s.progress.SetWorkers(all)
		missing := s.run.Missing(all, calling)
		if missing == "" {
			missingSince, told = time.Now(), ""
		} else if missing != told && time.Since(missingSince) >= noWorkerFor {
			s.log.Warn(missing)
			told = missing
		}
		if all == 0 {
			continue // a query would wait
		}
		if status, err := s.run.Status(ctx); err == nil {
			s.show(status)
		}
	}
}

// show brings the progress up to a status.
func (s *submitted) show(now cluster.Status) {
	if now.Rows > 0 && now.Rows >= s.read { // another worker reads from the start again
		s.progress.CountRead(int(now.Rows-s.read), now.Read.Bytes, now.Read.Total)
		if now.Read.All {
			s.progress.CountAllRead()
		}
		s.read = now.Rows
	}
	s.progress.Reached(now.Made.Totals, now.Made.Parts)
	if c, was := s.progress.Calls, s.called; c != nil && now.Calls.Asked >= was.Asked && now.Calls.Closed >= was.Closed {
		c.Asked(now.Calls.Asked - was.Asked)
		for n := range now.Calls.Closed - was.Closed {
			as := outcome.NoMatch
			if n < now.Calls.Matched-was.Matched {
				as = outcome.Matched
			}
			c.Closed(as)
		}
		for range now.Calls.Calls - was.Calls {
			c.Called(0, stats.CallAnswered)
		}
		c.Settled(max(now.Calls.Credits-was.Credits, 0))
		s.called = now.Calls
	}
}

// result reads what the workers have published, and the report. The result is nil
// if that is nothing.
func (s *submitted) result(ctx context.Context, out string) (*finish.Result, *report.Report, []sources.File, error) {
	reader, err := sinks.OpenReader(context.WithoutCancel(ctx), out, sinks.Options{Objects: s.store})
	if err != nil {
		return nil, nil, nil, err
	}
	manifest, err := sinks.ReadManifest(reader)
	if err != nil {
		return nil, nil, nil, err
	}
	result := &finish.Result{Manifest: manifest, Counts: report.Counts{Totals: manifest.Totals, Parts: report.Parts{Earlier: len(manifest.Parts)}}}
	var files []sources.File
	for _, in := range manifest.Inputs {
		files = append(files, sources.File{URI: in.URI, Size: in.Bytes, ModTime: in.ModifiedAt, ETag: in.ETag})
	}
	data, err := reader.ReadFile(sinks.ReportName)
	if err != nil {
		return result, nil, files, err
	}
	made := new(report.Report)
	if err := json.Unmarshal(data, made); err != nil {
		return result, nil, files, fmt.Errorf("%s: %w", sinks.ReportName, err)
	}
	result.FirstReject, result.SuppressionEntries = made.FirstReject, made.SuppressionEntries
	if s.read > 0 || manifest.Totals.Rows == 0 { // otherwise the dataset was complete, and the report is an older one
		result.Report, result.Counts = made, made.Counts
	}
	return result, made, files, nil
}
