package runcmd

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/wire"
	"github.com/leadetl/leadetl/internal/cliflag"
	"github.com/leadetl/leadetl/internal/figures"
	"github.com/leadetl/leadetl/internal/secret"
	"github.com/leadetl/leadetl/internal/suggest"
	"github.com/leadetl/leadetl/internal/wholefile"
	"github.com/leadetl/leadetl/pipeline/answers"
	"github.com/leadetl/leadetl/pipeline/job"
	"github.com/leadetl/leadetl/pipeline/order"
	"github.com/leadetl/leadetl/pipeline/pace"
	"github.com/leadetl/leadetl/pipeline/purchase"
	"github.com/leadetl/leadetl/pipeline/stats"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/exchange"
	"github.com/leadetl/leadetl/resolution/provider"
	"github.com/leadetl/leadetl/resolution/service/limit"
	"github.com/leadetl/leadetl/transforms/person"
)

// asked are the flags of who is asked.
type asked struct {
	directory string
	remote    remoteFlags
	order     orderKeys           // of the job file
	items     []*resolverSettings // of the order
}

// settleResolvers finds out who is asked, in which order: whom the job file or --resolver names, or the
// embedded engine.
func (f *asked) settleResolvers(flags *pflag.FlagSet) error {
	given := f.remote.resolvers
	switch {
	case f.order.resolvers.IsSet() && flags.Changed("resolver"):
		return f.order.resolvers.Errorf("resolvers and --resolver are both given; use one of them")
	case f.order.resolvers.IsSet() && flags.Changed("directory"):
		return f.order.resolvers.Errorf("resolvers and --directory are both given; write - directory: FOLDER under resolvers")
	case f.order.resolvers.IsSet():
		var err error
		if f.items, err = f.order.parse(); err != nil {
			return err
		}
	case len(given) == 0 && f.order.want.IsSet():
		return f.order.want.Errorf("want names columns for whose sake resolvers are asked; name them under resolvers, first to last")
	default:
		if len(given) == 0 {
			given = []string{EmbeddedResolver}
		}
		var errs []error
		for _, word := range given {
			s, err := f.namedResolver(word)
			f.items, errs = append(f.items, s), append(errs, err)
		}
		if err := errors.Join(errs...); err != nil {
			return err
		}
		if s := f.items[0]; f.isService() {
			one := f.remote.one
			one.at, one.address, one.name = s.at, s.address, s.name
			if rate := f.remote.rate; rate != limit.None {
				one.rates = []provider.Rate{{Count: rate.Events, Per: rate.Per}}
			}
			f.items[0] = &one
		}
	}
	return checkResolverNames(f.items)
}

// isService reports whether the service of --resolver is asked alone.
func (f *asked) isService() bool {
	return len(f.items) == 1 && f.items[0].address != "" && !f.order.resolvers.IsSet()
}

// isRemote reports whether somebody is asked who may cost something.
func (f *asked) isRemote() bool {
	return slices.ContainsFunc(f.items, func(s *resolverSettings) bool { return s.name != EmbeddedResolver })
}

// isProvider reports whether a word is the name of an entry, or may be meant as one.
func (f *asked) isProvider(word string) bool {
	_, shipped := provider.ShippedFile(word)
	return shipped || f.order.providers.IsSet() && !strings.ContainsAny(word, ":/.") && word != EmbeddedResolver
}

// namedResolver is a resolver of --resolver, with the default of every setting.
func (f *asked) namedResolver(word string) (*resolverSettings, error) {
	s := &resolverSettings{idempotent: f.remote.one.idempotent}
	if word == EmbeddedResolver {
		if s.directory, s.name = f.directory, EmbeddedResolver; f.directory == "" && len(f.remote.resolvers) > 1 {
			return s, errors.New("--resolver embedded among several needs --directory, the folder of its reference data")
		}
		return s, nil
	}
	if !strings.ContainsAny(word, ":/") && !f.isProvider(word) {
		if err := checkResolver(word); err != nil {
			return s, err
		}
	}
	return s, s.of(word)
}

// lacksCallback reports whether a service requires a callback address, and no flag sets it.
func (f *asked) lacksCallback(op resolution.Operation) bool {
	asks := slices.ContainsFunc(f.items, func(s *resolverSettings) bool { return s.address != "" })
	return asks && !f.remote.offline && op.Facts().Callback == resolution.RequiredCallback && f.remote.callbackURL == "" && f.remote.callbacks.listen == ""
}

// checkCallback refuses a run whose service could not answer. A plan says so instead.
func (f *runFlags) checkCallback(op resolution.Operation) error {
	if f.planning || !f.lacksCallback(op) {
		return nil
	}
	return fmt.Errorf("%s needs an address for callbacks: name one with --callback-url, or listen with --callback-listen", op)
}

// beginOrder begins the order of a run, and opens its reference data.
func (o *opening) beginOrder() (err error) {
	r := &o.remote
	if r.perKey.Or(1) == 0 {
		return cli.UsageError(errors.New("max_credits_per_key is 0, so nobody who costs something would be asked; write 1 or more"))
	}
	o.run.Order = &order.Order{
		AskAll:   r.askAll,
		Budget:   purchase.Budget{MaxCredits: r.maxCredits.Or(-1), MaxCalls: r.maxCalls.Or(-1), MaxDuration: r.maxDuration, Allowance: r.maxCreditsPer},
		Counters: &stats.CallCounters{},
		PerKey:   r.perKey.Or(0),
	}
	if o.run.Order.Want, err = o.order.wanted(); err != nil {
		return err
	}
	o.run.Order.From = slices.Sorted(maps.Keys(o.run.Job.From))
	for _, s := range o.items {
		step := &order.Step{Name: s.name, For: s.wants, Accept: s.accept, Helpers: []string{}, MinMatch: s.minMatch.Fraction(), ElseNext: s.elseNext}
		if r.askAll {
			step.MinMatch = 0 // the sample shows what it is
		}
		if s.name == EmbeddedResolver {
			if err := o.openEngine(step, s.directory); err != nil {
				return err
			}
		}
		for _, warning := range step.Warnings() {
			o.run.Log.Warn("a resolver may refuse more than is meant", "resolver", s.name, "warning", warning)
		}
		o.run.Order.Steps = append(o.run.Order.Steps, step)
	}
	return nil
}

// openOrder opens all others of the order that may be asked, with what a run needs of them.
func (o *opening) openOrder(ctx context.Context) error {
	entries, err := o.order.entries(ctx)
	if err != nil {
		return cli.UsageError(err)
	}
	shared := &callbackSwitch{ready: make(chan struct{})}
	defer close(shared.ready)
	o.remote.callbacks.shared, o.remote.asked = shared, exchange.NewAsked(o.run.Job.NetworkHosts)
	for i, s := range o.items {
		step, err := o.run.Order.Steps[i], error(nil)
		switch {
		case s.name == EmbeddedResolver:
		case s.address == "":
			err = o.openProvider(ctx, step, s, entries)
		default:
			err = o.openService(ctx, step, s)
		}
		if err != nil {
			return err
		}
	}
	if err := errors.Join(o.run.Order.Check(o.run.Job.Operation), o.run.Order.CheckAskAll()); err != nil {
		return cli.UsageError(err)
	}
	o.run.Progress.Calls = o.run.Order.Counted()
	if paid := o.run.Order.Paid(); len(paid) == 1 {
		o.run.Progress.Resolver = paid[0].Name
	}
	return nil
}

// wanted are the columns of want.
func (k *orderKeys) wanted() ([]string, error) {
	if !k.want.IsSet() {
		return nil, nil
	}
	return k.want.Values("want")
}

// columnsFrom are the columns with values of a person, by their names.
func (k *orderKeys) columnsFrom() (map[string]string, error) {
	if !k.from.IsSet() {
		return nil, nil
	}
	if len(k.from.Members) == 0 {
		return nil, k.from.Errorf("from has the columns with values of a person, as in {first_name: First, last_name: Last, company_domain: Website}")
	}
	all, names := map[string]string{}, append([]string{person.Email}, person.Names...)
	var errs []error
	for _, m := range k.from.Members {
		if !slices.Contains(names, m.Key) {
			errs = append(errs, m.Value.Errorf("from has %q; it can have %s%s", m.Key, strings.Join(names, ", "), suggest.Name(m.Key, names)))
		}
		column, err := m.Value.Value("from of " + m.Key)
		all[m.Key], errs = column, append(errs, err)
	}
	return all, errors.Join(errs...)
}

// entries are those of the program and of the files of the job.
func (k *orderKeys) entries(ctx context.Context) (provider.Entries, error) {
	files, err := k.providerFiles()
	if err != nil {
		return nil, err
	}
	return entriesOf(files, func(path string) ([]byte, error) {
		if text, read := k.texts[path]; read {
			return []byte(text), nil
		}
		return providerFile.Read(ctx, path)
	})
}

// providerFiles are the files of entries.
func (k *orderKeys) providerFiles() (files []string, err error) {
	if !k.providers.IsSet() {
		return nil, nil
	}
	items := k.providers.List
	if items == nil {
		items = []cliflag.Tree{k.providers}
	}
	for _, item := range items {
		if _, err := item.Value("a file of providers"); err != nil {
			return nil, err
		}
		files = append(files, item.Path())
	}
	return files, nil
}

// providerFile is a file of entries of providers.
var providerFile = wholefile.Kind{Name: "a file of providers", Bytes: 256 << 10}

// openService opens a service.
func (o *opening) openService(ctx context.Context, step *order.Step, s *resolverSettings) error {
	if err := checkResolver(s.address); err != nil {
		return cli.UsageError(s.at.Errorf("%v", err))
	}
	service := o.service(s)
	paced, options, err := s.newPace(&o.remote, nil, 1)
	if err != nil {
		return err
	}
	var closeRemote func() error
	service.paced = paced
	if step.Remote, closeRemote, err = service.open(ctx, o.run.Job, o.stored, o.planning, o.run.Log); err != nil {
		return o.run.Order.Named(step, err)
	}
	o.Add(closeRemote)
	if step.Remote.Service == nil {
		return nil
	}
	return o.stored.Recall(ctx, step.Remote.Scope(o.run.Job.Operation), options, false, paced)
}

// service is a service, which knows of the others.
func (f *asked) service(s *resolverSettings) *service {
	return &service{resolverSettings: s, job: &f.remote, beside: f.storedNames()}
}

// newPace makes the controller of a resolver. defaults are the limits that its entry knows of, and
// batch is how many keys a request can have.
func (s *resolverSettings) newPace(job *remoteFlags, defaults []provider.Rate, batch int) (*pace.Controller, pace.Options, error) {
	o := pace.DefaultOptions()
	o.GiveUp, o.Concurrency = job.giveUpAfter, cmp.Or(s.concurrency, job.concurrency)
	rates := s.rates
	if rates == nil {
		rates = defaults
	}
	o.Rate, o.Keys, o.Windows = perSecond(rates)
	for _, w := range o.Windows {
		if w.Keys && w.Count < batch {
			return nil, o, cli.UsageError(s.at.Errorf("rate is %d keys, and a request to %s has up to %d; ask for a higher limit", w.Count, s.name, batch))
		}
	}
	if err := o.Validate(); err != nil {
		return nil, o, cli.UsageError(s.at.Errorf("%v", err))
	}
	return pace.New(o), o, nil
}

// openProvider opens a provider by its entry.
func (o *opening) openProvider(ctx context.Context, step *order.Step, s *resolverSettings, entries provider.Entries) error {
	e, kind, err := s.entry(entries, o.run.Job.Operation)
	if err != nil {
		return cli.UsageError(err)
	}
	request, _ := e.Request(kind)
	digest := e.Digest()
	step.Entry, step.Fills, step.Verifies = hex.EncodeToString(digest[:8]), e.Columns(), verifies[e.Check]
	step.Helpers = append(step.Helpers, e.HelperNames()...)
	step.Question, step.Person = request.Question, request.Values()
	if kind == resolution.Email && e.Check == "" && o.run.Job.Operation.Identifier() != kind {
		step.Person = []string{person.Email}
	}
	remote := &o.remote
	r := s.remote(remote)
	r.Address, r.Question, r.Judged, r.RetryBills, r.Read, r.ReadMiss = e.Base(), request.Name(), true, e.RetryBills, request.Read, request.ReadMiss
	r.Price = purchase.Price{Match: e.Price.Match, Company: e.Price.Match, NoMatch: e.Price.NoMatch, BadRow: e.Price.BadRow, Later: e.Price.Later, Special: e.Price.Rules}
	if e.Check == "" { // of a person a verifier may be asked about several values
		r.Expect = func(keys []string) { remote.asked.Expect(kind, keys) }
	}
	if e.Later != nil {
		r.Later = purchase.Later{Every: e.Later.Every, Wait: e.Later.Wait}
	}
	step.Remote = r
	paced, options, err := s.newPace(remote, e.Rate, e.BatchSize(kind))
	if err != nil {
		return err
	}
	r.Pace, r.Concurrency = paced, options.Concurrency
	if !options.Keys {
		r.CallsAtOnce = e.BatchSize(kind)
	}
	r.Counters.Paced(r.Pace.Snapshot)
	for _, warning := range e.Warnings() {
		o.run.Log.Warn("the entry of a provider may not say what is meant", "provider", e.Name, "warning", warning)
	}
	if err := warnOfForms(ctx, o.stored.State, r.Scope(o.run.Job.Operation), o.run.Log); err != nil {
		return err
	}
	store, err := o.stored.Open(ctx, r.Scope(o.run.Job.Operation), o.planning || remote.offline, r.Pace)
	if err != nil {
		return err
	}
	if store != nil {
		r.Answers = store
	}
	if remote.offline || o.planning {
		return nil
	}
	c, err := s.client(ctx, e, kind, r.Concurrency, remote)
	if err != nil {
		return err
	}
	o.Add(func() error { c.Close(); return nil })
	r.Service = c
	if counts, is := e.Balance(); is {
		r.BeforeFirst = func(ctx context.Context) { o.tellBalance(ctx, c, r, counts, e.Price.Max()) }
	}
	return o.stored.Recall(ctx, r.Scope(o.run.Job.Operation), options, e.BatchSize(kind) > 1, paced)
}

// tellBalance says before the first call what is left at a provider, beside the budget, and warns if it does not
// suffice.
func (o *opening) tellBalance(ctx context.Context, c *provider.Client, r *purchase.Remote, counts string, price int64) {
	timed, done := context.WithTimeout(ctx, planPatience)
	defer done()
	left, err := c.Balance(timed)
	if err != nil {
		o.run.Log.Warn("a balance is not known", "why", err)
		return
	}
	r.Counters.Balance(left)
	budget := r.Budget.MaxCredits
	if all := o.remote.maxCredits.Or(-1); budget < 0 || all >= 0 && all < budget {
		budget = all
	}
	said := []any{"resolver", r.Name, "left", left}
	if counts != "" {
		said = append(said, "counts", counts)
	}
	if budget >= 0 {
		said = append(said, "max_credits", budget)
	}
	if counts == "" && left < max(budget, price) {
		o.run.Log.Warn("the balance is less than the budget, or than one answer costs: the run may stop before it; buy credits", said...)
		return
	}
	o.run.Log.Info("balance before the first call", said...)
}

// warnOfForms says how many answers of a provider are stored for another form of its request, until
// as many are stored for this one.
func warnOfForms(ctx context.Context, state wire.State, of answers.Scope, log *slog.Logger) error {
	count := func(some func(answers.Scope) bool) (n int64, err error) {
		held, err := heldOf(ctx, state, some)
		for _, h := range held {
			n += h.Answers
		}
		return n, err
	}
	others, err := count(func(s answers.Scope) bool {
		return s != of && s.IsProvider() && s.Service == of.Service && s.Identifier() == of.Identifier()
	})
	if err != nil || others == 0 {
		return err
	}
	same, err := count(func(s answers.Scope) bool { return s == of })
	if err == nil && same < others {
		log.Warn(fmt.Sprintf("%s of %s are stored for another form of its request; they are not used, and what is needed of them is bought again", figures.Plural(others, "answer"), of.Service))
	}
	return err
}

// verifies are the columns of verifiers.
var verifies = map[resolution.Identifier]string{resolution.Email: "email", resolution.Phone: "phone"}

// key reads the key of a provider.
func (s *resolverSettings) key(ctx context.Context) (key secret.Text, reread func() (secret.Text, error), err error) {
	if key, reread, err = readKey(ctx, s.ofKey(), s.keyFile); err != nil {
		err = cli.UsageError(s.at.Errorf("%w", KeyProblem(err, "resolver "+s.name, s.ofKey(), s.keyFile, s.settingOfKey())))
	}
	return key, reread, err
}

// client makes the client of a provider.
func (s *resolverSettings) client(ctx context.Context, e *provider.Entry, kind resolution.Identifier, concurrency int, job *remoteFlags) (c *provider.Client, err error) {
	o := provider.DefaultOptions()
	o.Kind, o.Concurrency, o.Timeout, o.Observe = kind, concurrency, cmp.Or(s.timeout, job.timeout), s.observe
	if e.Check == "" { // a verifier is asked about values, of which a person may have several
		o.Asked = job.asked
	}
	if e.NeedsKey() {
		if o.Key, o.Reread, err = s.key(ctx); err != nil {
			return nil, err
		}
	}
	if o.RootCAs, err = job.authorities(ctx); err != nil {
		return nil, cli.UsageError(err)
	}
	if c, err = provider.New(e, o); err != nil {
		return nil, cli.UsageError(s.at.Errorf("%v", err))
	}
	return c, nil
}

// Trial is a provider that somebody tries. It is opened and paid as in a run.
type Trial struct {
	Name, KeyFile, CAFile, State string
	Providers                    []string // files of entries
	Hosts                        []string // of profiles
	MaxCredits                   cliflag.Number
	GiveUpAfter                  time.Duration
	S3                           wire.S3
	Log                          *slog.Logger
	Observe                      func(provider.Exchange)
}

// Entry is the entry of the provider, and its file; "" for one of the program.
func (t *Trial) Entry(ctx context.Context) (e *provider.Entry, file string, err error) {
	all := provider.Entries{}
	for _, path := range t.Providers {
		own, err := entriesOf([]string{path}, func(path string) ([]byte, error) { return providerFile.Read(ctx, path) })
		if err != nil {
			return nil, "", err
		}
		if own[t.Name] != nil && own[t.Name] != provider.Shipped()[t.Name] {
			file = path
		}
		maps.Copy(all, own)
	}
	if len(t.Providers) == 0 {
		all = provider.Shipped()
	}
	if e = all[t.Name]; e == nil {
		err = fmt.Errorf("there is no provider %s%s; leadetl provider list has those of the program, and --providers FILE adds yours", t.Name, suggest.Name(t.Name, all.Names()))
	}
	return e, file, err
}

// Open opens the provider for questions about a kind of identifier, with what is stored of them.
func (t *Trial) Open(ctx context.Context, e *provider.Entry, kind resolution.Identifier) (step *order.Step, closeTrial func() error, err error) {
	var f runFlags
	f.defaults()
	o := &opening{runFlags: &f, run: &job.Run{Job: job.Default(provider.OperationOf(kind)), Log: t.Log}}
	defer func() { o.CloseOn(&err) }()
	f.state, f.remote.caFile, f.remote.giveUpAfter, f.remote.concurrency = t.State, t.CAFile, t.GiveUpAfter, 1
	f.remote.asked = exchange.NewAsked(t.Hosts)
	if o.store, err = t.S3.Open(ctx, t.Log); err != nil {
		return nil, nil, cli.UsageError(err)
	}
	if err := o.openState(ctx); err != nil {
		return nil, nil, err
	}
	if err := os.MkdirAll(o.kept.Folder, 0o700); err != nil {
		return nil, nil, cli.UsageError(wire.FolderError("state", err))
	}
	o.stored = &wire.RunAnswers{State: o.kept}
	o.Add(o.stored.Close)
	step = &order.Step{Name: t.Name}
	s := &resolverSettings{name: t.Name, keyFile: t.KeyFile, keySetting: "--key-file", maxCredits: t.MaxCredits, concurrency: 1, observe: t.Observe}
	if err := o.openProvider(ctx, step, s, provider.Entries{t.Name: e}); err != nil {
		return nil, nil, err
	}
	return step, o.Close, nil
}
