package runcmd

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/pflag"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/wire"
	"github.com/leadetl/leadetl/internal/cliflag"
	"github.com/leadetl/leadetl/internal/figures"
	"github.com/leadetl/leadetl/internal/invisible"
	"github.com/leadetl/leadetl/internal/secret"
	"github.com/leadetl/leadetl/internal/servicename"
	"github.com/leadetl/leadetl/internal/suggest"
	"github.com/leadetl/leadetl/pipeline/answers"
	"github.com/leadetl/leadetl/pipeline/job"
	"github.com/leadetl/leadetl/pipeline/pace"
	"github.com/leadetl/leadetl/pipeline/purchase"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/client"
	"github.com/leadetl/leadetl/resolution/exchange"
	"github.com/leadetl/leadetl/resolution/provider"
	"github.com/leadetl/leadetl/resolution/service/limit"
)

// EmbeddedResolver is the value of --resolver for the embedded engine.
const EmbeddedResolver = "embedded"

// APIKeyVariable is the environment variable with the key, used if no file is
// named.
const APIKeyVariable = "LEADETL_API_KEY"

// remoteFlags are the flags of a run that asks somebody.
type remoteFlags struct {
	resolvers     []string         // as given
	one           resolverSettings // what flags say of the service that --resolver names alone
	asked         *exchange.Asked  // what the order asks
	buyAgain      bool
	caFile        string
	callbackURL   string
	callbacks     callbackFlags
	rate          limit.Rate
	concurrency   int
	timeout       time.Duration
	giveUpAfter   time.Duration
	maxCredits    cliflag.Number
	maxCreditsPer cliflag.Allowance
	perKey        cliflag.Number
	maxCalls      cliflag.Number
	maxNewKeys    cliflag.Share
	maxDuration   time.Duration
	offline       bool
	retryUnknown  bool
	newKey        bool
	askAll        bool
}

// service is a service that a run asks: its settings, and those of all that the run asks.
type service struct {
	*resolverSettings
	job    *remoteFlags
	paced  *pace.Controller
	beside []string // names in stored answers of the others in the order
}

// check joins the problems of the flags, before anything is opened. remote says that somebody is asked
// who may cost something, and service that it is the service of --resolver alone.
func (f *remoteFlags) check(flags *pflag.FlagSet, remote, service bool) error {
	var errs []error
	if !remote {
		return nil
	}
	if err := checkCallbackURL(f.callbackURL); err != nil {
		errs = append(errs, err)
	}
	if flags.Changed("service-name") && (strings.Trim(f.one.stored, "/ ") == "" || strings.ContainsFunc(f.one.stored, unicode.IsControl)) {
		errs = append(errs, errors.New("--service-name is empty or has control characters; give a name such as leads"))
	}
	if f.concurrency < 1 {
		errs = append(errs, fmt.Errorf("--concurrency is %d; it must be at least 1", f.concurrency))
	}
	for _, d := range []struct {
		name  string
		value time.Duration
		least time.Duration
	}{{"timeout", f.timeout, time.Millisecond}, {"give_up_after", f.giveUpAfter, 0}, {"--max-duration", f.maxDuration, 0}} {
		if d.value < d.least {
			errs = append(errs, fmt.Errorf("%s is %s; it must be a time such as 30s", d.name, d.value))
		}
	}
	if w := purchase.Plain404(f.one.plain404); flags.Changed("plain-404") && w != purchase.Plain404Miss && w != purchase.Plain404Stop {
		errs = append(errs, fmt.Errorf("plain_404 %s: write miss or stop", f.one.plain404))
	}
	if flags.Changed("directory") && service {
		errs = append(errs, errors.New("--directory is for the embedded engine; it cannot be used with --resolver URL"))
	}
	return errors.Join(append(errs, f.callbacks.check()...)...)
}

// price returns the cost of a call of the operation.
func (f *service) price(op resolution.Operation) purchase.Price {
	if credits := f.creditCost.Or(-1); credits >= 0 {
		return purchase.Price{Match: credits, Company: credits}
	}
	return purchase.Prices[op]
}

// open opens a service with everything a run needs: its stored answers and its
// callback listener. With planning, it makes no calls, and what only calls need
// may be missing. closeRemote closes everything.
func (f *service) open(ctx context.Context, j job.Job, state *wire.RunAnswers, planning bool, log *slog.Logger) (r *purchase.Remote, closeRemote func() error, err error) {
	var opened wire.Closers
	defer func() { opened.CloseOn(&err) }()
	op, asked := j.Operation, f.job.asked
	r = f.remote(f.job)
	r.Read, r.Check, r.Address, r.Concurrency = new(client.Reader).Read, client.CheckerOf(asked), f.address, cmp.Or(f.concurrency, f.job.concurrency)
	r.Plain404, r.Price, r.Pace, r.Patience = purchase.Plain404(f.plain404), f.price(op), f.paced, f.job.callbacks.timeout
	if !op.IsKeyword() {
		r.Expect = func(keys []string) { asked.Expect(op.Identifier(), keys) }
	}
	if !f.job.offline {
		r.Keys = purchase.NewKeyWindow(f.idempotent.Length())
	}
	options, err := f.clientOptions()
	if err != nil {
		return nil, nil, err
	}
	calls := !f.job.offline && !planning
	if calls {
		if r.Through, err = wire.ProxyTo(f.address); err != nil {
			return nil, nil, cli.UsageError(err)
		}
	}
	if !f.job.offline {
		if err := f.checkNames(ctx, state.State, r.Scope(op), log); err != nil {
			return nil, nil, err
		}
	}
	store, err := state.Open(ctx, r.Scope(op), planning || f.job.offline, r.Pace)
	if err != nil {
		return nil, nil, err
	}
	if store != nil {
		r.Answers = store
	}
	r.Counters.Paced(r.Pace.Snapshot)
	if f.job.callbacks.listen != "" && !f.job.offline {
		r.Deliveries = purchase.NewDeliveries(r, time.Now)
	}
	if f.job.offline {
		if err := checkOffline(ctx, state.State, store, r.Scope(op), log); err != nil {
			return nil, nil, err
		}
	}
	if !calls {
		return r, opened.Close, nil
	}
	options.Asked = asked
	if err := f.connect(ctx, r, options, &opened, log); err != nil {
		return nil, nil, err
	}
	return r, opened.Close, nil
}

// connect listens for callbacks and creates the client of the service.
func (f *service) connect(ctx context.Context, r *purchase.Remote, options client.Options, opened *wire.Closers, log *slog.Logger) error {
	if err := f.readSecrets(ctx, &options); err != nil {
		return err
	}
	f.warnPlain(log)
	if r.Deliveries != nil {
		address, stop, err := f.job.callbacks.receive(ctx, r.Deliveries, f.job.callbackURL == "", log)
		if err != nil {
			return err
		}
		opened.Add(stop)
		if f.job.callbackURL == "" {
			options.CallbackURL = address
		}
	}
	service, err := client.New(options)
	if err != nil {
		return cli.UsageError(fmt.Errorf("--resolver: %w", err))
	}
	opened.Add(func() error { service.Close(); return nil })
	r.Service = service
	return nil
}

// clientOptions returns the checked options of the flags, without those that
// readSecrets reads.
func (f *service) clientOptions() (client.Options, error) {
	options := client.DefaultOptions()
	options.BaseURL, options.HeaderName, options.CallbackURL = f.address, cmp.Or(f.headerName, options.HeaderName), f.job.callbackURL
	options.Concurrency, options.Timeout = cmp.Or(f.concurrency, f.job.concurrency), cmp.Or(f.timeout, f.job.timeout)
	options.Key = secret.New("none") // a placeholder, to check the other options
	if err := options.Validate(); err != nil {
		return options, cli.UsageError(fmt.Errorf("--resolver: %w", err))
	}
	return options, nil
}

// readSecrets reads the key and the trusted certificates.
func (f *service) readSecrets(ctx context.Context, options *client.Options) (err error) {
	options.Key, options.Reread, err = readKey(ctx, f.ofKey(), f.keyFile)
	if err != nil {
		return cli.UsageError(KeyProblem(err, "the service", f.ofKey(), f.keyFile, f.settingOfKey()))
	}
	options.RootCAs, err = f.job.authorities(ctx)
	return cli.UsageError(err)
}

// readKey reads an API key. reread reads it again; it is nil for a pipe, which gives its key once.
func readKey(ctx context.Context, variable, file string) (key secret.Text, reread func() (secret.Text, error), err error) {
	key, err = secret.Read(ctx, variable, file)
	if info, e := os.Stat(file); err == nil && e == nil && info.Mode().IsRegular() {
		reread = func() (secret.Text, error) { return secret.Read(ctx, variable, file) }
	}
	return key, reread, err
}

// KeyProblem says what to do about an API key that cannot be read: it is for somebody, and comes from a
// file, which a setting names, or without one from a variable.
func KeyProblem(err error, of, variable, file, setting string) error {
	switch {
	case errors.Is(err, secret.ErrNotGiven) && file == "":
		return fmt.Errorf("no API key for %s; put it in the environment variable %s, or name its file with %s", of, variable, setting)
	case errors.Is(err, secret.ErrNotGiven):
		return fmt.Errorf("%s: %s is empty; write the API key for %s to it", setting, file, of)
	}
	return fmt.Errorf("the API key for %s: %w; %s names its file", of, err, setting)
}

// account asks the service for the account of the key. The error is errNoKey if the key, or
// what the call needs besides, cannot be read.
func (f *service) account(ctx context.Context) (client.Account, error) {
	options, err := f.clientOptions()
	if err != nil {
		return client.Account{}, err
	}
	if err := f.readSecrets(ctx, &options); err != nil {
		return client.Account{}, errNoKey{err}
	}
	service, err := client.New(options)
	if err != nil {
		return client.Account{}, cli.UsageError(fmt.Errorf("--resolver: %w", err))
	}
	defer service.Close()
	return service.Account(ctx)
}

// errNoKey says why the API key cannot be read.
type errNoKey struct{ error }

func (e errNoKey) Unwrap() error { return e.error }

// authorities returns the certificates of ca_file; nil means the system's.
func (f *remoteFlags) authorities(ctx context.Context) (*x509.CertPool, error) {
	if f.caFile == "" {
		return nil, nil
	}
	pem, err := wire.CertificateFile.Read(ctx, f.caFile)
	if err != nil {
		return nil, fmt.Errorf("ca_file: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("ca_file: %s holds no certificate in PEM form", f.caFile)
	}
	return pool, nil
}

// warnPlain warns if the key and the answers are sent unencrypted.
func (f *service) warnPlain(log *slog.Logger) {
	u, err := url.Parse(f.address)
	if err != nil || u.Scheme != "http" {
		return
	}
	if ip := net.ParseIP(u.Hostname()); u.Hostname() == "localhost" || ip != nil && ip.IsLoopback() {
		return
	}
	log.Warn("the service is called without TLS: others on the network can read the API key and the answers")
}

// errNothingStored is the error if there are no stored answers to use offline.
func errNothingStored(state string) error {
	return cli.UsageError(fmt.Errorf("--offline: no answers are stored in --state %s; a run with --resolver URL stores them, or name another folder", state))
}

// checkOffline warns if a run is offline and no answers are stored for its
// scope. The most likely cause is a different address than in the run that
// bought the answers.
func checkOffline(ctx context.Context, state wire.State, store wire.Stored, asked answers.Scope, log *slog.Logger) error {
	name := state.Folder
	if state.Objects != nil {
		name = state.Objects.String()
	}
	scopes, err := store.Scopes(ctx)
	if err != nil {
		return err
	}
	if len(scopes) == 0 {
		return errNothingStored(name)
	}
	if slices.ContainsFunc(scopes, func(s answers.Scope) bool { return s.Service == asked.Service && s.Operation == asked.Operation }) {
		return nil
	}
	var stored []string
	for _, s := range scopes {
		stored = append(stored, invisible.Escape(fmt.Sprintf("%s of %s", s.Operation, s.Service)))
	}
	slices.Sort(stored)
	log.Warn(fmt.Sprintf("no answers of %s from %s are stored; use the --resolver or --service-name they were bought from", asked.Operation, asked.Service),
		"stored", strings.Join(slices.Compact(stored), ", "))
	return nil
}

// checkNames says how much is stored of the scope's operation under other names: it is
// not used, and what was bought is bought again. It refuses a run whose service has such a
// name, unless a flag says that this is meant.
func (f *service) checkNames(ctx context.Context, state wire.State, of answers.Scope, log *slog.Logger) error {
	held, err := f.otherNames(ctx, state, of)
	if err != nil || len(held) == 0 {
		return err
	}
	names := slices.SortedFunc(maps.Keys(held), func(a, b string) int {
		return cmp.Or(cmp.Compare(held[b].Answers, held[a].Answers), cmp.Compare(held[b].Calls, held[a].Calls), strings.Compare(a, b))
	})
	if f.givenName() == "" && !f.job.buyAgain {
		for _, name := range names {
			if !servicename.Alike(ctx, name, of.Service) {
				continue
			}
			return cli.UsageError(fmt.Errorf("%s of %s, stored under the name %s, would not be used, and %s looks like the same service; use them with --service-name %[3]s, or buy them again with --buy-again",
				heldText(held[name]), of.Operation, invisible.Escape(name), invisible.Escape(of.Service)))
		}
	}
	level := slog.LevelWarn
	if f.job.buyAgain {
		level = slog.LevelInfo
	}
	var texts []string
	for _, name := range names {
		texts = append(texts, invisible.Escape(fmt.Sprintf("%s of %s", heldText(held[name]), name)))
	}
	log.Log(ctx, level, fmt.Sprintf("answers of %s are stored under other names of services; this run does not use them, and what it needs of them is bought again", of.Operation),
		"service", of.Service, "stored", strings.Join(texts, ", "))
	return nil
}

// otherNames is what is stored under other names, without those of the others in the order.
func (f *service) otherNames(ctx context.Context, state wire.State, than answers.Scope) (map[string]answers.Held, error) {
	scopes, err := heldOf(ctx, state, func(s answers.Scope) bool {
		return s.Operation == than.Operation && s.Service != than.Service && !slices.Contains(f.beside, s.Service)
	})
	held := map[string]answers.Held{}
	for s, h := range scopes {
		held[s.Service] = h
	}
	return held, err
}

// heldOf counts what a state has of some scopes.
func heldOf(ctx context.Context, state wire.State, some func(answers.Scope) bool) (map[answers.Scope]answers.Held, error) {
	places, err := state.Answers().All(ctx)
	if err != nil || len(places) == 0 {
		return nil, wire.UnlessUnavailable(err)
	}
	contents, err := answers.OpenContents(ctx, places...)
	if errors.Is(err, answers.ErrNone) { // a kill came before the first commit
		return nil, nil
	}
	if err != nil {
		return nil, wire.UnlessUnavailable(err)
	}
	defer contents.Close()
	return contents.Held(ctx, some)
}

func heldText(h answers.Held) string {
	var texts []string
	if h.Answers > 0 {
		texts = append(texts, figures.Plural(int(h.Answers), "answer"))
	}
	if h.Calls > 0 {
		texts = append(texts, figures.Plural(int(h.Calls), "open call"))
	}
	return strings.Join(texts, " and ")
}

// checkResolver refuses a value of --resolver that is neither the embedded
// engine nor looks like an address.
func checkResolver(word string) error {
	switch {
	case wellBegun.MatchString(word):
		return nil // the client validates the rest
	case strings.ContainsAny(word, ":/.@"):
		return WithoutScheme(word)
	}
	if meant := suggest.Name(word, append(provider.ShippedNames(), EmbeddedResolver)); meant != "" {
		return fmt.Errorf("--resolver %s%s An address begins with https://", word, meant)
	}
	return fmt.Errorf("--resolver %s: write %s, an address such as https://leads.example, or a provider of leadetl provider list; the file of an entry of yours is named by providers in a job file (--job)", word, EmbeddedResolver)
}

// wellBegun is the beginning of an address.
var wellBegun = regexp.MustCompile(`^(?i)https?://`)

// misspelledScheme is what stands for https:// at the beginning of an address.
var misspelledScheme = regexp.MustCompile(`^(?i)([a-z]+://|https?:?/+|https?:)`)

// WithoutScheme refuses an address that does not say how to reach it. A service on this
// machine has no certificate, as a rule. The error repeats no address with a password.
func WithoutScheme(address string) error {
	if strings.ContainsAny(address, "@?") {
		return errors.New("--resolver: the address has no scheme; begin it with https://, and leave user and key out")
	}
	if strings.ContainsFunc(address, unicode.IsSpace) {
		return fmt.Errorf("--resolver %s: write an address such as https://leads.example, or the name of a resolver in the job file", address)
	}
	given := address
	address = address[len(misspelledScheme.FindString(address)):]
	host, _, _ := strings.Cut(address, "/")
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	scheme := "https://"
	if ip, err := netip.ParseAddr(strings.Trim(host, "[]")); host == "localhost" || err == nil && ip.IsLoopback() {
		scheme = "http://"
	}
	return fmt.Errorf("--resolver %s: did you mean %s%s?", given, scheme, address)
}

// checkCallbackURL refuses an address to which no service could post. The error
// does not contain the address, which may hold a password.
func checkCallbackURL(address string) error {
	u, err := url.Parse(address)
	switch {
	case address == "":
		return nil
	case err != nil, u.Scheme != "http" && u.Scheme != "https", u.Hostname() == "":
		return errors.New("--callback-url is not an address a service can post to; write one such as https://hooks.example/leads")
	case u.User != nil:
		return errors.New("--callback-url contains a user or a password; leave them out, callbacks are signed")
	}
	return nil
}
