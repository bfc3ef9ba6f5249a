// Package servecmd holds leadetl serve.
package servecmd

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/wire"
	"github.com/leadetl/leadetl/internal/cliflag"
	"github.com/leadetl/leadetl/internal/secret"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/directory"
	"github.com/leadetl/leadetl/resolution/embedded"
	"github.com/leadetl/leadetl/resolution/service"
	"github.com/leadetl/leadetl/resolution/service/callback"
	"github.com/leadetl/leadetl/resolution/service/credential"
	"github.com/leadetl/leadetl/resolution/service/sqlite"
	"github.com/leadetl/leadetl/transforms/profile"
)

// serveFlags are the flags of serve, as they are on the command line.
type serveFlags struct {
	lists            []cli.Setting // of suppress
	config           string
	demo             bool
	directory        string
	state            string
	pepper           string
	listen           string
	internalListen   string
	metricsListen    string
	tlsCert, tlsKey  string
	systemKeyFile    string
	tokens           credential.TokenOptions
	callbackAllow    cliflag.Networks
	networkHosts     []string
	includeProviders bool
	suppress         wire.Suppress
	s3               wire.S3 // with the lists of suppress
	defaultRegion    string
	logFormat        string
	logLevel         string
	options          service.Options
}

// NewCommand returns the command serve.
func NewCommand(std cli.Streams) *cobra.Command {
	f := serveFlags{options: service.DefaultOptions()}
	f.options.Retirements = map[resolution.Operation]service.Retirement{}
	c := &cobra.Command{
		Use:   "serve",
		Short: "Serve the Lead Resolution Service Interface",
		Long: `Serve the Lead Resolution Service Interface over HTTP, answering from a
directory (see leadetl directory --help). The service reloads the directory when
an import replaces it. Manage organizations, keys and credits with leadetl
admin, also while the service runs.

The interface is described at /docs and /openapi.json. /healthz says whether
the process is alive, /readyz whether it is ready for requests. The internal
listener has /metrics for Prometheus and, with the system key
(` + wire.SystemKeyVariable + ` or --system-key-file), /internal/*.

On SIGTERM /readyz fails at once. After --drain-delay the service accepts no
more connections, finishes open requests and exits. A killed service loses
no answers; after a restart it continues its jobs and callbacks.

Every flag is also a key of the config file; flags win.`,
		Example: `  leadetl serve --demo
  leadetl serve --directory dir --state state --listen :8443 --tls-cert cert.pem --tls-key key.pem
  leadetl serve --config serve.yaml`,
		Annotations: cli.ExitCodes(map[int]string{cli.ExitTryAgain: "state in use by another process, or S3 out of reach; run the same command later"}),
		Args:        cli.NoArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			if f.config != "" {
				if err := cliflag.ApplyFile(c.Context(), "config", f.config, c.Flags(), cliflag.Keys{}); err != nil {
					return cli.UsageError(err)
				}
			}
			return f.serve(c.Context(), c.Flags(), std)
		},
	}
	f.register(c)
	return c
}

func (f *serveFlags) register(c *cobra.Command) {
	o, flags := &f.options, c.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.config, "config", "", "YAML `file` with the settings")
	flags.BoolVar(&f.demo, "demo", false, "serve sample data with a demo organization and print how to call it; nothing is kept")
	flags.StringVar(&f.directory, "directory", "", "`folder` of the reference data, made by leadetl directory import; none to answer email_to_hem only")
	flags.StringVar(&f.state, "state", wire.DefaultServiceStateDir(), "`folder` for the service's state: organizations, keys, credits and jobs")
	flags.StringVar(&f.pepper, "pepper-file", "", "`file` with the secret for hashing API keys, created if missing (default: pepper, in the state folder)")
	flags.StringVar(&f.listen, "listen", "127.0.0.1:8080", "`address` to serve on")
	flags.StringVar(&f.internalListen, "internal-listen", "127.0.0.1:8081", "`address` for metrics and internal operations, on this machine only; none or an empty value turns it off")
	flags.StringVar(&f.metricsListen, "metrics-listen", "", "`address` that serves /metrics for Prometheus, /healthz and /readyz to whoever reaches it, such as :9464; none or an empty value: the internal listener alone")
	flags.StringVar(&f.tlsCert, "tls-cert", "", "PEM `file` with the certificate chain; reloaded when it changes")
	flags.StringVar(&f.tlsKey, "tls-key", "", "PEM `file` of the certificate's key")
	flags.BoolVar(&o.Dashboard, "dashboard", false, "show organizations their account at /account; it needs https, except from a browser on this machine")
	flags.StringVar(&f.systemKeyFile, "system-key-file", "", "`file` of the system key (x-sys-key)")
	flags.StringVar(&f.tokens.JWKSFile, "jwt-jwks", "", "`file` with the public keys (JWKS) that verify organization tokens")
	flags.StringVar(&f.tokens.Issuer, "jwt-issuer", "", "required `issuer` of organization tokens")
	flags.StringVar(&f.tokens.Audience, "jwt-audience", "", "required `audience` of organization tokens")
	flags.Var(wire.Rate{Rate: &o.Limits.Single}, "limit-single", "`rate` of single-record calls per organization; 0: no limit")
	flags.Var(wire.Rate{Rate: &o.Limits.Create}, "limit-create", "`rate` of new keyword searches per organization")
	flags.Var(wire.Rate{Rate: &o.Limits.Result}, "limit-result", "`rate` of result calls per organization")
	flags.Var(wire.Rate{Rate: &o.Limits.FailedAuth}, "limit-failed-auth", "`rate` of failed authentications per IP address")
	flags.IntVar(&o.Limits.ActiveJobs, "limit-active-jobs", o.Limits.ActiveJobs, "`number` of unfinished keyword searches per organization; 0: no limit")
	flags.Int64Var(&o.Limits.KeptBytes, "limit-kept", o.Limits.KeptBytes, "`number` of bytes stored per organization and day: replies, callbacks and searches; 0: no limit")
	assign := func(a *cliflag.Assignments, name, what string) { flags.Var(a, name, a.Usage(what)) }
	assign(costsOf(o.Costs), "credit-cost", "`price=credits` instead of the default")
	assign(cliflag.Numbers("keywords=50", f.requestLimits()), "request-limit", "`limit=number` for one request")
	flags.Var(&f.callbackAllow, "callback-allow", "private `network` (CIDR) that callbacks may go to, also over plain http; for tests; repeatable")
	flags.Var((*cliflag.Networks)(&o.TrustedProxies), "trusted-proxy", "`network` (CIDR) of proxies whose X-Forwarded-For is trusted; repeatable")
	flags.IntVar(&o.JobWorkers, "job-workers", o.JobWorkers, "`number` of keyword searches run at once")
	flags.Int64Var(&o.MaxBody, "max-body", o.MaxBody, "maximum `number` of bytes in a request body")
	flags.IntVar(&o.Connections.MaxHeaderBytes, "max-header", o.Connections.MaxHeaderBytes, "maximum `number` of bytes in a request header")
	flags.IntVar(&o.CallbackConcurrency, "callback-concurrency", o.CallbackConcurrency, "`number` of callbacks posted at once")
	flags.IntVar(&o.CallbackPerReceiver, "callback-per-receiver", o.CallbackPerReceiver, "`number` of callbacks posted at once to the same receiver")
	flags.IntVar(&o.Connections.Max, "max-connections", o.Connections.Max, "maximum `number` of open connections; more wait")
	assign(cliflag.Durations("read=10s", f.timeouts()), "timeout", "`what=time`: time limits")
	flags.DurationVar(&o.Connections.DrainDelay, "drain-delay", defaultDrainDelay, "`time` after SIGTERM in which calls are still accepted while /readyz fails; 0 with --demo")
	assign(cliflag.Durations("results=90d", f.retention()), "retain", "`what=time`: how long finished things are kept")
	assign(retirementsOf(o.Retirements), "retire", "`operation=dates` of an operation that will be removed: the date its answers first say so, the date it stops, and an optional link")
	flags.StringSliceVar(&f.networkHosts, "network-hosts", profile.DefaultRules().Hosts, "`hosts` of profile URLs")
	flags.BoolVar(&f.includeProviders, "include-providers", false, "answer with access providers, hosting and VPNs as companies")
	f.lists = f.suppress.Settings("to leave out of answers")
	cli.Bind(flags, f.lists...)
	f.s3.RegisterReading(flags)
	wire.BindRegion(flags, &f.defaultRegion, "`region` of phone numbers of suppression lists without a country code")
	flags.StringVar(&f.logFormat, "log-format", "text", "`format` of the log: text or json")
	flags.StringVar(&f.logLevel, "log-level", "info", "lowest `level` to log: debug, info, warn or error")
	flags.IntVar(&o.LogRequests, "log-requests", 0, "log one request in this `number` at level info, and every failure of the service; 0: none (debug logs all)")
	cli.Complete(c, "log-format", cli.LogFormats...)
	cli.Complete(c, "log-level", cli.LogLevels...)
}

// defaultDrainDelay lets a load balancer that asks every second see /readyz fail
// before connections are refused.
const defaultDrainDelay = 3 * time.Second

// requestLimits returns the settings of --request-limit.
func (f *serveFlags) requestLimits() map[string]*int {
	r := &f.options.Requests
	return map[string]*int{
		"keywords": &r.Keywords, "places": &r.Places, "job_titles": &r.JobTitles, "term_length": &r.TermLength, "city_length": &r.CityLength,
		"date_span": &r.DateSpan, "default_date_span": &r.DefaultSpan, "limit": &r.PageLimit, "default_limit": &r.DefaultPageLimit,
		"limit_of_hems": &r.HEMs, "default_limit_of_hems": &r.DefaultHEMs, "depth": &r.Depth,
		"metadata": &r.Metadata,
		"url":      &r.URL, "user_agent": &r.UserAgent, "visitor_id": &r.VisitorID,
	}
}

// timeouts returns the settings of --timeout.
func (f *serveFlags) timeouts() map[string]*time.Duration {
	c := &f.options.Connections
	return map[string]*time.Duration{
		"header": &c.HeaderTimeout, "read": &c.ReadTimeout, "write": &c.WriteTimeout, "idle": &c.IdleTimeout, "drain": &c.DrainTimeout,
		"resolve": &f.options.ResolveTimeout, "lease": &f.options.Lease, "job": &f.options.JobTimeout,
	}
}

// retention returns the settings of --retain.
func (f *serveFlags) retention() map[string]*time.Duration {
	r := &f.options.Retention
	return map[string]*time.Duration{
		"results": &r.Results, "tombstones": &r.Tombstones, "delivered_bodies": &r.DeliveredBodies, "delivered": &r.Delivered, "dead": &r.Dead,
	}
}

// flagNone turns off --internal-listen, --metrics-listen and --directory.
const flagNone = "none"

// isAddress reports whether a listener is requested. An empty address, perhaps
// from an unset variable, means no listener. net.Listen would listen on all
// addresses of the machine.
func isAddress(listen string) bool { return listen != flagNone && listen != "" }

// serve sets up a service and runs it until ctx ends.
func (f *serveFlags) serve(ctx context.Context, flags *pflag.FlagSet, std cli.Streams) (err error) {
	wire.SetGC(wire.ServeGC)
	log, err := cli.NewLogger(std.Err, f.logFormat, f.logLevel)
	if err != nil {
		return cli.UsageError(err)
	}
	if err := errors.Join(f.check(), cli.CheckNeeds(flags, f.lists)); err != nil {
		return cli.UsageError(err)
	}
	var opened wire.Closers
	defer func() { err = errors.Join(err, opened.Close()) }()
	var demo *demo
	if f.demo {
		if demo, err = newDemo(ctx, flags); err != nil {
			return err
		}
		opened.Add(demo.remove)
		f.directory, f.state, f.pepper = demo.directory, demo.state, ""
		if !flags.Changed("drain-delay") {
			f.options.Connections.DrainDelay = 0
		}
	}
	on, kept, live, err := f.open(ctx, flags, &opened, log)
	if err != nil {
		return err
	}
	s, err := service.New(f.options)
	if err != nil {
		return cli.UsageError(err)
	}
	if demo != nil {
		if err := demo.open(ctx, kept, f.options.Pepper); err != nil {
			return err
		}
		if err := demo.print(std.Out, f.url(on.Public), plainURL(on.Internal), f.options.Dashboard); err != nil {
			return err
		}
	}
	if err := f.announce(ctx, kept, on, log); err != nil {
		return err
	}
	following, stop := context.WithCancel(ctx)
	followed := make(chan struct{})
	go func() { defer close(followed); live.Run(following) }()
	defer func() { stop(); <-followed }()
	err = s.Serve(ctx, on)
	if errors.Is(err, resolution.ErrInvalid) { // the data that it read at the start
		err = cli.UsageError(fmt.Errorf("%w; name the right --pepper-file", err))
	}
	return err
}

// open opens listeners, the state and reference data, and completes the options of the service.
func (f *serveFlags) open(ctx context.Context, flags *pflag.FlagSet, opened *wire.Closers, log *slog.Logger) (on service.Listeners, kept *sqlite.Store, live *embedded.Live, err error) {
	if err := wire.CheckState(f.state); err != nil {
		return on, nil, nil, err
	}
	engine, err := f.engine(ctx, log)
	if err != nil {
		return on, nil, nil, err
	}
	certificates, err := f.certificates(ctx, log)
	if err != nil {
		return on, nil, nil, cli.UsageError(err)
	}
	on, err = f.openListeners(flags)
	opened.Add(func() error {
		return errors.Join(closeListener(on.Public), closeListener(on.Internal), closeListener(on.Metrics))
	})
	if err != nil {
		return on, nil, nil, cli.UsageError(err)
	}
	on.TLS = certificates
	if kept, err = sqlite.Serve(f.state); err != nil {
		return on, nil, nil, wire.StateError(err)
	}
	opened.Add(kept.Close)
	if err := f.fill(ctx, kept, log); err != nil {
		return on, nil, nil, cli.UsageError(err)
	}
	if f.directory == flagNone {
		f.directory = ""
	}
	live, err = embedded.Follow(f.directory, engine, log)
	if errors.Is(err, directory.ErrNotImported) {
		err = fmt.Errorf("%s is not a directory of reference data; make one with leadetl directory import --directory %s", f.directory, f.directory)
	}
	if err != nil {
		return on, nil, nil, cli.UsageError(err)
	}
	opened.Add(live.Close)
	f.options.Resolver, f.options.Searcher = live, live
	return on, kept, live, nil
}

// check checks the flags without opening anything.
func (f *serveFlags) check() error {
	var errs []error
	if (f.tlsCert == "") != (f.tlsKey == "") {
		errs = append(errs, errors.New("--tls-cert and --tls-key belong together; one of them is missing"))
	}
	if f.tokens != (credential.TokenOptions{}) {
		if err := f.tokens.Validate(); err != nil {
			errs = append(errs, fmt.Errorf("--jwt-jwks, --jwt-issuer and --jwt-audience belong together: %w", err))
		}
	}
	if f.listen == "" {
		errs = append(errs, errors.New("--listen is empty; give an address, such as 127.0.0.1:8080"))
	}
	if isAddress(f.internalListen) {
		host, _, err := net.SplitHostPort(f.internalListen)
		if addr, notIP := netip.ParseAddr(host); err == nil && host != "localhost" && (notIP != nil || !addr.IsLoopback()) {
			errs = append(errs, fmt.Errorf("--internal-listen %s can be reached from other machines; it has to be an address of this machine alone, such as 127.0.0.1:8081", f.internalListen))
		}
	}
	switch {
	case f.demo && f.directory != "":
		errs = append(errs, errors.New("--demo serves the sample directory; leave --directory out"))
	case !f.demo && f.directory == "":
		errs = append(errs, errors.New("no --directory; name the folder of the reference data, or write none to answer email_to_hem alone"))
	}
	return errors.Join(errs...)
}

// fill completes the service's options from the flags.
func (f *serveFlags) fill(ctx context.Context, kept *sqlite.Store, log *slog.Logger) (err error) {
	o := &f.options
	o.State, o.Log = kept, log
	o.Profiles.Hosts = f.networkHosts
	o.Callbacks = &callback.Policy{Allow: f.callbackAllow}
	if o.Pepper, err = wire.OpenPepper(ctx, kept, wire.PepperPath(f.pepper, f.state)); err != nil {
		return err
	}
	if f.tokens.JWKSFile != "" {
		if o.Tokens, err = credential.OpenTokens(ctx, f.tokens); err != nil {
			return err
		}
	}
	o.SystemKey, err = secret.Read(ctx, wire.SystemKeyVariable, f.systemKeyFile)
	if errors.Is(err, secret.ErrNotGiven) && f.systemKeyFile == "" && os.Getenv(wire.SystemKeyVariable) == "" {
		return nil // without a key, /internal/* is closed
	}
	return err
}

// openListeners opens the listeners. A demo takes free ports in place of the default ones
// that are in use. The caller closes the listeners, even after an error.
func (f *serveFlags) openListeners(flags *pflag.FlagSet) (on service.Listeners, err error) {
	type listener struct {
		flag, address string
		into          *net.Listener
	}
	var failed []func() error
	for _, l := range []listener{{"listen", f.listen, &on.Public}, {"internal-listen", f.internalListen, &on.Internal}, {"metrics-listen", f.metricsListen, &on.Metrics}} {
		if l.flag != "listen" && !isAddress(l.address) {
			continue
		}
		opened, err := net.Listen("tcp", l.address)
		if f.demo && !flags.Changed(l.flag) && errors.Is(err, syscall.EADDRINUSE) {
			opened, err = net.Listen("tcp", "127.0.0.1:0")
		}
		if err != nil {
			failed = append(failed, func() error { return wire.ListenError("--"+l.flag, l.address, err) })
			continue
		}
		*l.into = opened
	}
	// All ports of this command are open now, so none of them is advised as a free one.
	var errs []error
	for _, tell := range failed {
		errs = append(errs, tell())
	}
	return on, errors.Join(errs...)
}

// closeListener closes a listener that the service may already have closed.
func closeListener(l net.Listener) error {
	if l == nil {
		return nil
	}
	if err := l.Close(); !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// certificates returns the TLS configuration, nil for plain HTTP.
func (f *serveFlags) certificates(ctx context.Context, log *slog.Logger) (*tls.Config, error) {
	if f.tlsCert == "" {
		return nil, nil
	}
	c, err := wire.OpenCertificate(ctx, f.tlsCert, f.tlsKey, log)
	if err != nil {
		return nil, fmt.Errorf("--tls-cert and --tls-key: %w", err)
	}
	return c, nil
}

// announce logs what is served, how it is protected, and what is missing.
func (f *serveFlags) announce(ctx context.Context, kept *sqlite.Store, on service.Listeners, log *slog.Logger) error {
	accounts, err := kept.Organizations(ctx)
	if err != nil {
		return err
	}
	if len(accounts) == 0 {
		log.Warn("there is no organization yet, so all calls are refused; leadetl admin org create makes one")
	}
	if addr, ok := on.Public.Addr().(*net.TCPAddr); ok && !addr.IP.IsLoopback() && f.tlsCert == "" {
		log.Warn("keys and leads travel in the clear; give --tls-cert and --tls-key, or put a proxy with TLS in front")
		if f.options.Dashboard {
			log.Warn("without https, only browsers on this machine can sign in to the dashboard")
		}
	}
	for _, p := range f.callbackAllow {
		log.Warn("callbacks may reach this network, also over plain http; use this only for tests", "network", p.String())
	}
	about := []any{"url", f.url(on.Public)}
	for _, l := range []struct {
		name string
		on   net.Listener
	}{{"internal", on.Internal}, {"metrics", on.Metrics}} {
		if l.on != nil {
			about = append(about, l.name, plainURL(l.on))
		}
	}
	log.Info("serving", about...)
	return nil
}

// plainURL returns the URL of a listener without TLS, "" for none.
func plainURL(l net.Listener) string {
	if l == nil {
		return ""
	}
	return "http://" + l.Addr().String()
}

// url returns the URL of the public listener for clients.
func (f *serveFlags) url(public net.Listener) string {
	scheme := "http"
	if f.tlsCert != "" {
		scheme = "https"
	}
	host, port, err := net.SplitHostPort(public.Addr().String())
	if addr, notIP := netip.ParseAddr(host); err == nil && notIP == nil && addr.IsUnspecified() {
		host = "localhost"
	}
	return scheme + "://" + net.JoinHostPort(host, port)
}
