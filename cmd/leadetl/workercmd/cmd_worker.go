// Package workercmd holds leadetl worker.
package workercmd

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/runcmd"
	"github.com/leadetl/leadetl/cmd/leadetl/wire"
	"github.com/leadetl/leadetl/internal/cliflag"
	"github.com/leadetl/leadetl/internal/objects"
	"github.com/leadetl/leadetl/internal/secret"
	"github.com/leadetl/leadetl/pipeline/cluster"
	"github.com/leadetl/leadetl/pipeline/purchase"
)

// workerFlags are the flags of worker.
type workerFlags struct {
	on            string
	workers       int
	callSlots     int
	resolvers     []string
	serviceName   string
	keyFile       string
	caFile        string
	metricsListen string
	s3            wire.S3
	log           cli.LogFlags
}

// maxDefaultWorkers bounds the default of --workers, as that of leadetl run.
const maxDefaultWorkers = 8

// NewCommand returns the command worker.
func NewCommand(std cli.Streams) *cobra.Command {
	var f workerFlags
	c := &cobra.Command{
		Use:   "worker --on temporal://HOST:PORT/NAMESPACE",
		Short: "Do steps of runs that leadetl run --on submits",
		Long: `Do steps of runs that leadetl run --on submits. Start as many workers as you
like, on as many machines: a Temporal server hands them the steps, and gives
the steps of a dead worker to others.

All that workers share is on S3, so each needs the AWS credentials for the
inputs, outputs and states of the runs. A worker makes paid calls only to the
service in --resolver, with the key in --api-key-file or ` + runcmd.APIKeyVariable + `.
Without --resolver it does the steps that need no calls. For runs of several
resolvers, name each with its own --resolver, by its name: in the job file; each
worker has their keys in the files that the job file names, or in LEADETL_KEY_NAME.

The key and certificates for the Temporal server come from the variables of
Temporal's own tools: TEMPORAL_API_KEY, TEMPORAL_TLS_CLIENT_CERT_PATH and others.

On SIGTERM a worker takes no more steps, waits for its calls in flight, stores
their answers and hands over. A killed worker loses no stored answer.

Every flag is also an environment variable: --call-slots is LEADETL_CALL_SLOTS.`,
		Example: `  leadetl worker --on temporal://temporal:7233/leads
  leadetl worker --on temporal://temporal:7233/leads --resolver https://leads.example`,
		Annotations: cli.ExitCodes(map[int]string{cli.ExitTryAgain: "Temporal server out of reach; run the same command later"}),
		Args:        cli.NoArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := cliflag.ApplyEnvironment(c.Flags()); err != nil {
				return cli.UsageError(err)
			}
			return f.work(c.Context(), std)
		},
	}
	f.register(c)
	return c
}

func (f *workerFlags) register(c *cobra.Command) {
	f.workers, f.callSlots = min(runtime.GOMAXPROCS(0), maxDefaultWorkers), 2
	cli.Register(c, c.Flags(),
		cli.Group{Title: "Work", Settings: []cli.Setting{
			{Name: "on", To: &f.on, Use: cli.Everyday, Text: "`address` of the Temporal server: temporal://HOST:PORT/NAMESPACE; what it lacks comes from TEMPORAL_ADDRESS and TEMPORAL_NAMESPACE"},
			{Name: "workers", To: &f.workers, Use: cli.Everyday, Text: "`number` of steps done at a time, up to 600 MB each"},
		}},
		cli.Group{Title: "Calls", Settings: []cli.Setting{
			{Name: "resolver", To: &f.resolvers, Use: cli.Everyday | cli.Whole, Text: "`address` of the service that this worker may call (default: none); repeated, the addresses or names of all resolvers of the runs that it does"},
			{Name: "service-name", To: &f.serviceName, Text: "`name` of the service, if the runs have one (default: the address in --resolver)"},
			{Name: "api-key-file", To: &f.keyFile, Use: cli.Everyday, Text: "`file` with the service's API key (default: the environment variable " + runcmd.APIKeyVariable + ")"},
			{Name: "ca-file", To: &f.caFile, Text: "`file` of certificates (PEM) to trust in place of the system's"},
			{Name: "call-slots", To: &f.callSlots, Text: "`number` of runs that this worker makes calls for at a time"},
		}},
		cli.Group{Title: "S3", Settings: f.s3.Settings()},
		cli.Group{Title: "Logging", Settings: append(f.log.Settings(), cli.Setting{Name: "metrics-listen", To: &f.metricsListen, Text: "`address` that serves /metrics for Prometheus, /healthz and /readyz, such as :9464"})},
	)
}

// check joins the problems of the flags.
func (f *workerFlags) check() (at cluster.Address, err error) {
	var errs []error
	if f.on == "" {
		errs = append(errs, errors.New("no --on; name the Temporal server, as in temporal://localhost:7233/default"))
	} else if at, err = cluster.ParseAddress(f.on); err != nil {
		errs = append(errs, fmt.Errorf("--on: %w", err))
	}
	if f.workers < 1 {
		errs = append(errs, fmt.Errorf("--workers is %d; it must be at least 1", f.workers))
	}
	if f.callSlots < 1 {
		errs = append(errs, fmt.Errorf("--call-slots is %d; it must be at least 1; leave out --resolver to make no calls", f.callSlots))
	}
	for flag, value := range map[string]string{"service-name": f.serviceName, "api-key-file": f.keyFile, "ca-file": f.caFile} {
		if value != "" && len(f.resolvers) == 0 {
			errs = append(errs, fmt.Errorf("--%s needs a service; name its address with --resolver", flag))
		}
	}
	if len(f.resolvers) > 1 && (f.serviceName != "" || f.keyFile != "") {
		errs = append(errs, errors.New("--service-name and --api-key-file are for one service; of several resolvers, the job file names each and its key_file"))
	}
	for _, r := range f.resolvers {
		if !strings.Contains(r, "://") && !runcmd.IsResolverName(r) {
			errs = append(errs, runcmd.WithoutScheme(r))
		}
	}
	return at, errors.Join(errs...)
}

// service tells the resolvers of this worker from others; it is "" without one.
func (f *workerFlags) service() string {
	if len(f.resolvers) == 0 {
		return ""
	}
	names := slices.Clone(f.resolvers)
	if f.serviceName != "" {
		names = []string{f.serviceName}
	}
	for i, name := range names {
		names[i] = strings.TrimRight(name, "/")
	}
	return runcmd.ServiceOf(names...)
}

// asksOne reports whether the worker asks one service, whose key it has itself.
func (f *workerFlags) asksOne() bool {
	return len(f.resolvers) == 1 && strings.Contains(f.resolvers[0], "://")
}

// work does steps until ctx ends.
func (f *workerFlags) work(ctx context.Context, std cli.Streams) (err error) {
	at, err := f.check()
	if err != nil {
		return cli.UsageError(err)
	}
	log, err := f.log.Open(std.Err)
	if err != nil {
		return cli.UsageError(err)
	}
	store, err := f.s3.Open(ctx, log)
	if err != nil {
		return cli.UsageError(err)
	}
	if f.asksOne() {
		if _, err := secret.Read(ctx, runcmd.APIKeyVariable, f.keyFile); err != nil {
			return cli.UsageError(runcmd.KeyProblem(err, "the service", runcmd.APIKeyVariable, f.keyFile, "--api-key-file"))
		}
	}
	about := newHealth()
	if f.metricsListen != "" {
		closeListener, err := about.listen(f.metricsListen, log)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, closeListener()) }()
	}
	process := uuid.NewString()
	identity := "leadetl worker " + process[:8]
	engine, at, err := cluster.Dial(ctx, cluster.Connection{Address: at, Identity: identity, Log: runcmd.QuietLog(log)})
	if err != nil {
		return runcmd.ClusterError(err)
	}
	defer engine.Close()
	w := &cluster.Worker{
		Open: func(ctx context.Context, job cluster.Job, begin bool) (*cluster.Opened, error) {
			data, err := settings(ctx, store, job)
			if err != nil {
				return nil, err
			}
			return runcmd.OpenShared(ctx, data, f.own(job, process), begin, std)
		},
		Buy: func(ctx context.Context, job cluster.Job, turn cluster.Turn) (cluster.Status, error) {
			data, err := settings(ctx, store, job)
			if err != nil {
				return cluster.Status{}, err
			}
			return runcmd.Buy(ctx, data, f.own(job, process), job, turn, std)
		},
		Classify: classify,
		Tell:     func(job cluster.Job, text string) (string, error) { return tell(ctx, store, job, text) },
		Slots:    f.workers, CallSlots: f.callSlots, Service: f.service(), Meter: about, Log: log,
	}
	log.Info("the worker is ready", "server", at.String(), "name", identity, "workers", f.workers, "calls", f.service() != "")
	about.ready.Store(true)
	context.AfterFunc(ctx, func() {
		about.ready.Store(false)
		log.Info("the worker ends: it takes no more steps, and hands over those at work")
	})
	return runcmd.ClusterError(w.Run(ctx, engine))
}

// settings are those of a run, as its client has stored them.
func settings(ctx context.Context, store *objects.Store, job cluster.Job) ([]byte, error) {
	folder, err := runcmd.ClusterFolder(job.State, job.ID)
	if err != nil {
		return nil, err
	}
	data, _, err := store.ReadFile(ctx, folder.Below(job.SettingsObject()))
	if err != nil {
		return nil, fmt.Errorf("the settings of the run: %w", err)
	}
	return data, nil
}

// own are this worker's settings of a run.
func (f *workerFlags) own(job cluster.Job, process string) runcmd.Own {
	return runcmd.Own{State: job.State, S3: f.s3, Key: f.keyFile, CAFile: f.caFile, Log: f.log, Process: process}
}

// classify says what an error means for the run: what a person has to correct is
// not tried again, and a service that was out of reach for give_up_after was
// tried for long enough.
func classify(err error) cluster.Fault {
	code := cli.ExitCode(err)
	final := code == cli.ExitUsage || code == cli.ExitBudget || errors.Is(err, purchase.ErrUnreachable)
	return cluster.Fault{Code: code, Final: final, Text: cli.Reason(err)}
}

// tell stores why a step failed, for the client.
func tell(ctx context.Context, store *objects.Store, job cluster.Job, text string) (name string, err error) {
	folder, err := runcmd.ClusterFolder(job.State, job.ID)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(text))
	name = "failure-" + hex.EncodeToString(sum[:8]) + ".txt"
	_, err = store.Put(context.WithoutCancel(ctx), folder.Below(name), objects.ContentOf([]byte(text), "text/plain; charset=utf-8"))
	return name, err
}
