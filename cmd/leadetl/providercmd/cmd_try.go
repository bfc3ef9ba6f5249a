package providercmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/runcmd"
	"github.com/leadetl/leadetl/cmd/leadetl/wire"
	"github.com/leadetl/leadetl/internal/figures"
	"github.com/leadetl/leadetl/internal/suggest"
	"github.com/leadetl/leadetl/pipeline/keys"
	"github.com/leadetl/leadetl/pipeline/order"
	"github.com/leadetl/leadetl/pipeline/outcome"
	"github.com/leadetl/leadetl/pipeline/purchase"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/provider"
	"github.com/leadetl/leadetl/sources"
	"github.com/leadetl/leadetl/transforms/person"
	"github.com/leadetl/leadetl/transforms/phone"
	"github.com/leadetl/leadetl/transforms/profile"
)

// tryFlags are the flags of try.
type tryFlags struct {
	trial    runcmd.Trial
	in       []string
	idColumn string
	from     map[string]string // columns by values of a person
	maxCalls int
	save     string
}

func newTryCommand(std cli.Streams) *cobra.Command {
	var f tryFlags
	c := &cobra.Command{
		Use:   "try NAME --in LIST --key-file FILE",
		Short: "Ask a provider about a few keys, and show how its entry reads the answers",
		Long: `Ask a provider about the first keys of a list, and show for each the request
without the key, the status, headers that tell limits or credits, the rule that
fits, columns and where they come from, the credits, and which members of the
answer the entry does not read.

It pays as a run does: in the same state, at the pace of the entry, within
--max-credits. Answers are stored, so that no run pays for them again, and neither
does another try: after a change of fields or rules it shows what is stored anew,
free. A call that was killed may have been billed: it is listed by leadetl answers
list --unknown and is not sent again.

--save DIR adds each answer to NAME.answers.yaml there, for leadetl provider check:
only what the entry reads, with other people and companies of the same form. Look
at it before you give it to others.

What is printed is the data of people, as by leadetl head. Of what the entry does
not read, it prints the paths alone.`,
		Example: `  leadetl provider try hunter --in people.csv --key-file hunter.key
  leadetl provider try icypeas --in people.csv --from company_domain=Website --key-file i.key
  leadetl provider try acme --providers acme.yaml --in - --key-file acme.key --save tried`,
		Annotations: cli.ExitCodes(map[int]string{
			cli.ExitRejects:  "a call is unknown: its answer fits no rule, or is lost",
			cli.ExitBudget:   "the account has no credits, or --max-credits is not enough",
			cli.ExitTryAgain: "provider or S3 out of reach, or state in use; run the same command later", cli.ExitInterrupted: "interrupted",
		}),
		Args: cli.OneArgument("name of a provider"),
		RunE: func(c *cobra.Command, args []string) error {
			f.trial.Name = args[0]
			return f.run(c.Context(), std)
		},
	}
	f.trial.Hosts, f.trial.GiveUpAfter = profile.DefaultRules().Hosts, 30*time.Second
	flags := c.Flags()
	flags.SortFlags = false
	flags.StringArrayVar(&f.in, "in", nil, "input `URI` with the keys: a path, s3://bucket/key, or - for standard input; CSV, JSON Lines or Parquet; repeatable")
	flags.StringVar(&f.idColumn, "id-column", "", "`name` of the keys' column (default: what the entry is asked about, or the only column)")
	flags.StringToStringVar(&f.from, "from", nil, "`columns` with the values of a person, such as first_name=Given,company_domain=Website (default: those with the names of the values)")
	flags.StringVar(&f.trial.KeyFile, "key-file", "", "`file` with the key of the provider (default: the environment variable LEADETL_KEY_NAME)")
	flags.StringArrayVar(&f.trial.Providers, "providers", nil, "`file` of entries of your own, which win; repeatable")
	flags.IntVar(&f.maxCalls, "max-calls", 3, "`number` of keys to ask about at most")
	flags.Var(&f.trial.MaxCredits, "max-credits", "`number` of credits that it may cost (default: no limit)")
	flags.StringVar(&f.save, "save", "", "`folder` to add the answers to, as documented answers without people")
	flags.StringVar(&f.trial.State, "state", wire.DefaultStateDir(), "`folder` with the state of runs, or s3://bucket/prefix/")
	flags.StringSliceVar(&f.trial.Hosts, "network-hosts", f.trial.Hosts, "`hosts` whose profile URLs are recognized")
	flags.StringVar(&f.trial.CAFile, "ca-file", "", "`file` of certificates (PEM) to trust in place of the system's")
	f.trial.S3.Register(flags)
	return c
}

// run tries the provider.
func (f *tryFlags) run(ctx context.Context, std cli.Streams) (err error) {
	e, file, err := f.trial.Entry(ctx)
	if err == nil {
		err = f.check()
	}
	if err != nil {
		return cli.UsageError(err)
	}
	f.trial.Log = std.Warnings()
	kind, all, err := f.keys(ctx, e, std)
	if err != nil {
		return err
	}
	kept, err := openSaved(f.save, e, file)
	if err != nil {
		return cli.UsageError(err)
	}
	v := &tryView{out: std.Out, entry: e, saved: kept, hosts: f.trial.Hosts}
	f.trial.Observe = v.exchange
	step, closeTrial, err := f.trial.Open(ctx, e, kind)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeTrial()) }()
	return errors.Join(f.ask(ctx, step, e, kind, all, v), v.close())
}

func (f *tryFlags) check() error {
	switch {
	case len(f.in) == 0:
		return errors.New("no --in; name a list of keys, or - for standard input")
	case f.maxCalls < 1:
		return fmt.Errorf("--max-calls is %d; it must be at least 1", f.maxCalls)
	}
	return nil
}

// keys are the first keys of the list, in canonical form, and their kind.
func (f *tryFlags) keys(ctx context.Context, e *provider.Entry, std cli.Streams) (kind resolution.Identifier, all []string, err error) {
	objects, err := f.trial.S3.Open(ctx, f.trial.Log)
	if err != nil {
		return "", nil, cli.UsageError(err)
	}
	list, err := wire.OpenInput(ctx, f.in, sources.Options{Stdin: std.In, Objects: objects})
	if err != nil {
		return "", nil, err
	}
	defer list.Close()
	kind, columns, err := f.columns(e, list)
	if err != nil {
		return "", nil, cli.UsageError(err)
	}
	r, err := list.Reader(columns)
	if err != nil {
		return "", nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	for len(all) < f.maxCalls {
		batch, err := r.Next(ctx, 0)
		if err == io.EOF {
			break
		}
		if err != nil {
			return "", nil, err
		}
		for i := range batch.Len() {
			of, key := f.key(e, kind, batch.Columns[0].Value(i))
			if kind == resolution.Person {
				key = f.person(e, columns, batch, i)
			}
			if key != "" && !slices.Contains(all, key) && len(all) < f.maxCalls {
				kind, all = of, append(all, key)
			}
		}
	}
	if len(all) == 0 {
		return "", nil, cli.UsageError(fmt.Errorf("column %s of the list has no %s, which %s is asked about", strings.Join(columns, ", "), kinds(e), e.Name))
	}
	return kind, all, nil
}

// columns finds the column of the keys, or those of the values of a person. The kind is "" if the keys say it.
func (f *tryFlags) columns(e *provider.Entry, list *sources.List) (kind resolution.Identifier, columns []string, err error) {
	all := list.Files()[0].Columns
	named := func(name string) (column string) {
		if i := slices.IndexFunc(all, func(c string) bool { return strings.EqualFold(c, name) }); i >= 0 {
			column = all[i]
		}
		return column
	}
	column := f.idColumn
	for _, kind := range e.Kinds() {
		column = cmp.Or(column, named(string(kind)))
	}
	if request, byPerson := e.Request(resolution.Person); byPerson && (column == "" || len(f.from) > 0) {
		columns, err = f.personColumns(e, request.Values(), named)
		if err == nil || len(f.from) > 0 || len(e.Kinds()) == 1 {
			return resolution.Person, columns, err
		}
	} else if len(f.from) > 0 {
		return "", nil, fmt.Errorf("--from is for entries that are asked by person; %s is asked about %s", e.Name, kinds(e))
	}
	if column == "" && len(all) == 1 {
		column = all[0]
	}
	if column == "" {
		return "", nil, fmt.Errorf("the list has no column %s, which %s is asked about; name the column of the keys with --id-column", kinds(e), e.Name)
	}
	for _, known := range e.Kinds() {
		if strings.EqualFold(column, string(known)) || len(e.Kinds()) == 1 {
			return known, []string{column}, nil
		}
	}
	return "", []string{column}, nil
}

// personColumns finds the columns of the values of a person.
func (f *tryFlags) personColumns(e *provider.Entry, values []string, named func(string) string) (columns []string, err error) {
	for name := range f.from {
		if !slices.Contains(values, name) {
			return nil, fmt.Errorf("--from has %s%s", name, suggest.OneOf(name, values))
		}
	}
	var lacks []string
	for _, name := range values {
		wanted := cmp.Or(f.from[name], name)
		if columns = append(columns, named(wanted)); columns[len(columns)-1] == "" {
			lacks = append(lacks, wanted)
		}
	}
	if len(lacks) > 0 {
		return nil, fmt.Errorf("%s is asked by %s; the list has no column %s; say which it has: --from %s=COLUMN", e.Name, strings.Join(values, ", "), strings.Join(lacks, ", "), strings.Join(values, "=COLUMN,"))
	}
	return columns, nil
}

// person is the key of the values of a row; "" if one is missing.
func (f *tryFlags) person(e *provider.Entry, columns []string, batch *sources.Batch, row int) string {
	request, _ := e.Request(resolution.Person)
	of := map[string]string{}
	for n, name := range request.Values() {
		if of[name] = person.Canonical(name, batch.Columns[n].Value(row)); of[name] == "" {
			return ""
		}
	}
	return person.Key(of)
}

func kinds(e *provider.Entry) string {
	var names []string
	for _, kind := range e.Kinds() {
		names = append(names, string(kind))
	}
	return strings.Join(names, " or ")
}

// key is the first identifier of a cell in canonical form, of a kind, or with "" of the first one that fits; ""
// without one.
func (f *tryFlags) key(e *provider.Entry, kind resolution.Identifier, cell string) (of resolution.Identifier, key string) {
	for _, of := range e.Kinds() {
		switch {
		case kind != "" && of != kind, of == resolution.Person:
		case of == resolution.Phone:
			if n, err := phone.Parse(cell, "US"); err == nil {
				return of, n.E164
			}
		default:
			if all, _ := keys.Canonical(of, cell, f.trial.Hosts); len(all) > 0 {
				return of, all[0]
			}
		}
	}
	return kind, ""
}

// ask asks about the keys: one after another, or in one request if a request may have several.
func (f *tryFlags) ask(ctx context.Context, step *order.Step, e *provider.Entry, kind resolution.Identifier, all []string, v *tryView) error {
	request, _ := e.Request(kind)
	v.begin(kind, all)
	if counts, is := e.Balance(); is {
		step.Remote.BeforeFirst = nil // which would ask, too
		left, err := step.Remote.Service.(*provider.Client).Balance(ctx)
		v.balance(left, counts, err)
	}
	var questions []string
	for _, key := range all {
		question, askable := step.Question(key)
		if !askable {
			v.notAskable(key)
		} else if !slices.Contains(questions, question) {
			questions = append(questions, question)
		}
	}
	buyer, ctx, err := purchase.Open(ctx, step.Remote, provider.OperationOf(kind), uuid.NewString(), f.trial.Log)
	if err != nil {
		return err
	}
	defer buyer.Close()
	open := 0
	for some := range slices.Chunk(questions, max(e.BatchSize(kind), 1)) {
		stored, err := step.Remote.Answers.Lookup(ctx, step.Remote.Scope(provider.OperationOf(kind)), some, step.Remote.Freshness(time.Now()), true, nil)
		if err != nil {
			return err
		}
		v.asks = some
		err = buyer.Answer(ctx, some, len(some), func(got []purchase.Result) {
			for i, a := range got {
				if a.Outcome == outcome.Failed && a.Open {
					open++
				}
				v.result(request, some[i], stored[i], a)
			}
		})
		if err != nil {
			return err
		}
	}
	if err := buyer.Refused(); err != nil {
		return err
	}
	if open > 0 {
		return cli.WithCode(cli.ExitRejects, fmt.Errorf("%s may have been billed; see leadetl answers list --unknown, which also says how to send them again", figures.Plural(open, "call")))
	}
	return nil
}

// openSaved opens the folder of --save; nil without one.
func openSaved(folder string, e *provider.Entry, file string) (*saved, error) {
	if folder == "" {
		return nil, nil
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, fmt.Errorf("--save: %w", err)
	}
	return newSaved(folder, e, file)
}
