package runcmd

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/leadetl/leadetl/internal/cliflag"
	"github.com/leadetl/leadetl/internal/suggest"
	"github.com/leadetl/leadetl/pipeline/pace"
	"github.com/leadetl/leadetl/pipeline/purchase"
	"github.com/leadetl/leadetl/pipeline/stats"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/provider"
)

// orderKeys are the keys of a job file that name several resolvers.
type orderKeys struct {
	want, from, providers, resolvers cliflag.Tree
	texts                            map[string]string // of files of entries, by path, that a client has read for its workers; nil reads them
}

func (k *orderKeys) trees() map[string]*cliflag.Tree {
	return map[string]*cliflag.Tree{"want": &k.want, "from": &k.from, "providers": &k.providers, "resolvers": &k.resolvers}
}

// resolverSettings are an item of resolvers.
type resolverSettings struct {
	at        cliflag.Tree
	directory string // folder of reference data; "" for others
	address   string // of a service; "" for others
	name      string

	keyFile        string
	variable       string // with the key
	rates          []provider.Rate
	concurrency    int // 0 is not given
	timeout        time.Duration
	maxCredits     cliflag.Number
	maxCalls       cliflag.Number
	refresh        cliflag.Age
	refreshNoMatch cliflag.Age
	idempotent     cliflag.Switch
	wants          []string // for
	accept         map[string][]string
	minMatch       cliflag.Share
	elseNext       bool
	strict         bool
	ask            string // by what; "" is for what the operation is about, if its entry has that

	// Only flags set these, of a service.
	stored, headerName, plain404 string // stored is the name in stored answers
	creditCost                   cliflag.Number

	keySetting string // names keyFile; "" is key_file
	// Only a trial sets this.
	observe func(provider.Exchange)
}

// The names of resolvers that are no providers.
const (
	directoryResolver = "directory"
	serviceResolver   = "service"
)

// parse returns the items of resolvers, in order. The error joins all problems.
func (k *orderKeys) parse() (all []*resolverSettings, err error) {
	if k.resolvers.List == nil {
		return nil, k.resolvers.Errorf("resolvers is a list: one item for each, first to last")
	}
	var errs []error
	for _, item := range k.resolvers.List {
		s, err := parseResolver(item)
		errs = append(errs, err)
		all = append(all, s)
	}
	if len(all) == 0 {
		errs = append(errs, k.resolvers.Errorf("resolvers is empty; name at least one"))
	}
	return all, errors.Join(errs...)
}

// parseResolver reads an item: a name, or a map with one key whose value is a folder or settings.
func parseResolver(item cliflag.Tree) (*resolverSettings, error) {
	s := &resolverSettings{at: item, idempotent: cliflag.NewSwitch(purchase.DefaultKeyWindow)}
	if item.Members == nil {
		word, err := item.Value("a resolver")
		if err != nil {
			return s, err
		}
		return s, s.of(word)
	}
	if len(item.Members) != 1 {
		return s, item.Errorf("a resolver has one key with its settings; write - %s: {…} on a line of its own, indented by two spaces more if the settings are below", item.Members[0].Key)
	}
	m := item.Members[0]
	s.at = m.Value
	if m.Key == directoryResolver {
		folder, err := m.Value.Value("directory")
		s.directory, s.name = m.Value.Path(), EmbeddedResolver
		if err == nil && folder == "" {
			err = m.Value.Errorf("directory names no folder")
		}
		return s, err
	}
	errs := []error{s.of(m.Key)}
	if m.Value.Members == nil {
		return s, errors.Join(append(errs, m.Value.Errorf("%s has settings such as {key_file: FILE}", m.Key))...)
	}
	for _, setting := range m.Value.Members {
		errs = append(errs, s.set(setting.Key, setting.Value))
	}
	return s, errors.Join(errs...)
}

// of sets what the item names.
func (s *resolverSettings) of(word string) error {
	switch {
	case word == EmbeddedResolver || word == directoryResolver:
		return s.at.Errorf("write directory: FOLDER for reference data")
	case strings.ContainsAny(word, ":/"):
		s.address, s.name = word, serviceResolver
	default:
		s.name = word
	}
	return nil
}

// settingOfResolver reads a setting.
type settingOfResolver struct {
	name string
	read func(s *resolverSettings, v cliflag.Tree) error
}

// resolverSettingsByName are the settings of a resolver.
var resolverSettingsByName = []settingOfResolver{
	{"key_file", func(s *resolverSettings, v cliflag.Tree) (err error) {
		_, err = v.Value("key_file")
		s.keyFile = v.Path()
		return err
	}},
	{"name", func(s *resolverSettings, v cliflag.Tree) (err error) {
		if s.address == "" {
			return v.Errorf("name is for services; a provider has the name of its entry")
		}
		if s.name, err = v.Value("name"); err == nil && !IsResolverName(s.name) {
			err = v.Errorf("name %q has other characters than letters, digits, - and _; choose one such as leads", s.name)
		}
		return err
	}},
	{"rate", func(s *resolverSettings, v cliflag.Tree) error {
		texts, err := v.Values("rate")
		for _, text := range texts {
			r, ok := provider.ParseRate(text)
			if err == nil && !ok {
				err = v.Errorf("rate %q; write it as 100/min, or 100 keys/min", text)
			}
			s.rates = append(s.rates, r)
		}
		return err
	}},
	{"concurrency", func(s *resolverSettings, v cliflag.Tree) error {
		text, err := v.Value("concurrency")
		if s.concurrency, _ = strconv.Atoi(text); err == nil && s.concurrency < 1 {
			err = v.Errorf("concurrency is %s; it must be a number of at least 1", text)
		}
		return err
	}},
	{"timeout", func(s *resolverSettings, v cliflag.Tree) error {
		text, err := v.Value("timeout")
		if s.timeout, _ = time.ParseDuration(text); err == nil && s.timeout < time.Millisecond {
			err = v.Errorf("timeout is %s; it must be a time such as 30s", text)
		}
		return err
	}},
	{"max_credits", flagValue("max_credits", func(s *resolverSettings) setter { return &s.maxCredits })},
	{"max_calls", flagValue("max_calls", func(s *resolverSettings) setter { return &s.maxCalls })},
	{"refresh_older_than", flagValue("refresh_older_than", func(s *resolverSettings) setter { return &s.refresh })},
	{"refresh_no_match_older_than", flagValue("refresh_no_match_older_than", func(s *resolverSettings) setter { return &s.refreshNoMatch })},
	{"idempotent", flagValue("idempotent", func(s *resolverSettings) setter { return &s.idempotent })},
	{"min_match", flagValue("min_match", func(s *resolverSettings) setter { return &s.minMatch })},
	{"for", func(s *resolverSettings, v cliflag.Tree) (err error) {
		s.wants, err = v.Values("for")
		return err
	}},
	{"accept", func(s *resolverSettings, v cliflag.Tree) error {
		if v.Members == nil {
			return v.Errorf("accept has a list of values for each column, as in {email_status: [valid]}")
		}
		s.accept = map[string][]string{}
		var errs []error
		for _, m := range v.Members {
			values, err := m.Value.Values(m.Key)
			s.accept[m.Key] = values
			errs = append(errs, err)
		}
		return errors.Join(errs...)
	}},
	{"else", func(s *resolverSettings, v cliflag.Tree) error {
		word, err := v.Value("else")
		if s.elseNext = word == "next"; err == nil && !s.elseNext {
			err = v.Errorf("else is %q; it can be next", word)
		}
		return err
	}},
	{"ask", func(s *resolverSettings, v cliflag.Tree) (err error) {
		if s.ask, err = v.Value("ask"); err == nil && !slices.Contains([]string{string(resolution.Person), string(resolution.Email)}, s.ask) {
			err = v.Errorf("ask is %q; it can be person or email", s.ask)
		}
		return err
	}},
	{"strict", func(s *resolverSettings, v cliflag.Tree) error {
		word, err := v.Value("strict")
		if s.strict = word == "true"; err == nil && !s.strict && word != "false" {
			err = v.Errorf("strict is %q; it is true or false", word)
		}
		return err
	}},
}

type setter interface{ Set(text string) error }

// flagValue reads a setting as the flag of that name is read.
func flagValue(name string, of func(*resolverSettings) setter) func(*resolverSettings, cliflag.Tree) error {
	return func(s *resolverSettings, v cliflag.Tree) error {
		text, err := v.Value(name)
		if err == nil {
			if bad := of(s).Set(text); bad != nil {
				err = v.Errorf("%s %q: %v", name, text, bad)
			}
		}
		return err
	}
}

func (s *resolverSettings) set(name string, v cliflag.Tree) error {
	i := slices.IndexFunc(resolverSettingsByName, func(known settingOfResolver) bool { return known.name == name })
	if i < 0 {
		var names []string
		for _, known := range resolverSettingsByName {
			names = append(names, known.name)
		}
		if meant := suggest.Name(name, names); meant != "" {
			return v.Errorf("unknown setting %q of resolver %s%s", name, s.name, meant)
		}
		if name == "url" || name == "address" {
			return v.Errorf("unknown setting %q of resolver %s; the address stands in place of the name, as in - https://leads.example: {name: NAME}", name, s.name)
		}
		return v.Errorf("unknown setting %q of resolver %s; the settings are %s", name, s.name, strings.Join(names, ", "))
	}
	return resolverSettingsByName[i].read(s, v)
}

// IsResolverName reports whether a name can be that of a resolver, and of its variable.
func IsResolverName(name string) bool {
	return name != "" && len(name) <= 64 && !strings.ContainsFunc(name, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' && c != '_'
	})
}

// keyVariable is the environment variable with the key of a resolver.
func keyVariable(name string) string {
	return "LEADETL_KEY_" + strings.Map(func(c rune) rune {
		switch {
		case c >= 'a' && c <= 'z':
			return c - 'a' + 'A'
		case c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
			return c
		}
		return '_'
	}, name)
}

// checkResolverNames refuses names that two resolvers share, or whose keys would be in one variable.
func checkResolverNames(all []*resolverSettings) error {
	var errs []error
	names, variables := map[string]bool{}, map[string]string{}
	for _, s := range all {
		variable := keyVariable(s.name)
		other, taken := variables[variable]
		switch {
		case names[s.name] && s.address != "":
			errs = append(errs, s.at.Errorf("two resolvers are called %s; give this one another name: with {name: …}", s.name))
		case names[s.name]:
			errs = append(errs, s.at.Errorf("resolver %s is named twice", s.name))
		case taken:
			errs = append(errs, s.at.Errorf("the keys of resolvers %s and %s would both be in %s; rename one", other, s.name, variable))
		}
		names[s.name], variables[variable] = true, s.name
	}
	return errors.Join(errs...)
}

// perSecond is the rate that keeps all limits of up to a minute, with calls spaced evenly; keys says
// that they count keys. 0 is no limit. windows are the longer limits.
func perSecond(rates []provider.Rate) (calls float64, keys bool, windows []pace.Window) {
	for _, r := range rates {
		if r.Per > time.Minute {
			windows = append(windows, pace.Window{Count: r.Count, Per: r.Per, Keys: r.Keys})
			continue
		}
		if of := float64(r.Count) / r.Per.Seconds(); calls == 0 || of < calls {
			calls = of
		}
		keys = keys || r.Keys
	}
	return calls, keys, windows
}

// givenName is the name that somebody has given a service; "" without one.
func (s *resolverSettings) givenName() string {
	if s.name != serviceResolver {
		return s.name
	}
	return s.stored
}

// storedName is the name of the resolver in stored answers.
func (s *resolverSettings) storedName() string {
	if s.address == "" {
		return s.name
	}
	return strings.TrimRight(cmp.Or(s.givenName(), s.address), "/")
}

// ofKey is the variable with the key, and settingOfKey the setting with its file.
func (s *resolverSettings) ofKey() string        { return cmp.Or(s.variable, keyVariable(s.name)) }
func (s *resolverSettings) settingOfKey() string { return cmp.Or(s.keySetting, "key_file") }

// remote is how the resolver may be asked, as far as its settings and those of the job say it.
func (s *resolverSettings) remote(job *remoteFlags) *purchase.Remote {
	return &purchase.Remote{
		Name: s.storedName(), Offline: job.offline, RetryUnknown: job.retryUnknown && !job.offline, NewKey: job.newKey,
		RefreshMatch: time.Duration(s.refresh), RefreshNoMatch: time.Duration(s.refreshNoMatch), Strict: s.strict,
		Budget:   purchase.Budget{MaxCredits: s.maxCredits.Or(-1), MaxCalls: s.maxCalls.Or(-1), MaxDuration: job.maxDuration},
		Counters: &stats.CallCounters{},
	}
}

// entriesOf are the entries of the program and of the files that the job names, which win.
func entriesOf(files []string, read func(path string) ([]byte, error)) (provider.Entries, error) {
	all := provider.Entries{}
	for name, e := range provider.Shipped() {
		all[name] = e
	}
	var errs []error
	for _, path := range files {
		text, err := read(path)
		if err == nil {
			var own provider.Entries
			if own, err = provider.Parse(path, text); err == nil {
				for name, e := range own {
					all[name] = e
				}
			}
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("providers: %w", err))
		}
	}
	return all, errors.Join(errs...)
}

// entry finds the entry of a provider that can be asked by an operation.
func (s *resolverSettings) entry(all provider.Entries, op resolution.Operation) (e *provider.Entry, kind resolution.Identifier, err error) {
	e, known := all[s.name]
	if !known {
		return nil, "", s.at.Errorf("there is no provider %s%s; leadetl provider list has those of the program, and providers: FILE adds yours", s.name, suggest.Name(s.name, all.Names()))
	}
	if op.IsKeyword() {
		return nil, "", s.at.Errorf("%s asks one service; provider %s has no searches", op, s.name)
	}
	kind = e.KindOf(op)
	if e.Check != "" && s.ask != "" {
		return nil, "", s.at.Errorf("ask is for resolvers that find values; provider %s verifies them", s.name)
	}
	_, can := e.Request(kind)
	for _, other := range []resolution.Identifier{resolution.Person, resolution.Email} { // by which others are asked for what they have found
		_, is := e.Request(other)
		switch {
		case s.ask == string(other) && !is:
			return nil, "", s.at.Errorf("provider %s cannot be asked by %s; it can be asked about %s", s.name, other, joinKinds(e.Kinds()))
		case s.ask == string(other), is && !can && s.ask == "" && e.Check == "":
			return e, other, nil
		}
	}
	if !can {
		return nil, "", s.at.Errorf("provider %s cannot be asked about %s, as %s needs; it can be asked about %s", s.name, kind, op, joinKinds(e.Kinds()))
	}
	return e, kind, nil
}

func joinKinds(kinds []resolution.Identifier) string {
	var names []string
	for _, k := range kinds {
		names = append(names, string(k))
	}
	return strings.Join(names, ", ")
}
