package answerscmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/leadetl/leadetl/internal/suggest"
	"github.com/leadetl/leadetl/pipeline/job"
	"github.com/leadetl/leadetl/transforms/person"
	"github.com/leadetl/leadetl/transforms/profile"

	"github.com/spf13/cobra"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/runview"
	"github.com/leadetl/leadetl/cmd/leadetl/wire"
	"github.com/leadetl/leadetl/internal/cliflag"
	"github.com/leadetl/leadetl/internal/figures"
	"github.com/leadetl/leadetl/internal/objects"
	"github.com/leadetl/leadetl/pipeline/answers"
	"github.com/leadetl/leadetl/pipeline/keys"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/sources"
)

// forgetFlags are the flags of answers forget.
type forgetFlags struct {
	stored        stored
	in            []string
	files         []string
	defaultRegion string
	idColumn      string
	identifier    string
	from          map[string]string // columns by values of a person
	delimiter     string
	networkHosts  []string
	hashes        []string
	olderThan     cliflag.Age
	evenOpen      bool

	deleteVersions bool
}

func newAnswersForgetCommand(std cli.Streams) *cobra.Command {
	var f forgetFlags
	c := f.stored.changing(&cobra.Command{
		Use:   "forget --file FILE… | --in FILE… | --key-hash HASH… | --older-than AGE",
		Short: "Delete stored answers, by person, by identifier, by key hash or by age",
		Long: `Delete stored answers about people or identifiers. The bytes are removed from the
database and its log; backups of it are yours to delete. On S3, the files that
hold them are written anew, and the old ones deleted at once.

  --file        people on lists like those of leadetl run --suppress: emails,
                @domains, phones, profile URLs, IPs, or hashes of these, or names
                with companies. Reads every stored answer, and deletes all
                answers whose question or body names a listed person, also
                whole pages of searches.
  --in          identifiers in files, as in a run: deletes their answers for
                all operations and resolvers, and what verifiers say about
                emails and phones in these. Identifiers are normalized as in
                a run; emails are also deleted by their digests. Rows without
                a valid identifier are counted and listed by row number.
                --from deletes what was asked by name and company, too.
  --key-hash    questions by their key hash, from a report or leadetl answers list
  --older-than  answers received before that age

Answers to keyword searches name people that are not in their keys: use --file,
or delete them by age or key hash. Existing datasets are not changed.

Questions with an open call are kept, because the call may have been billed and
a new one could be billed again. --even-open deletes them too.`,
		Example: `  leadetl answers forget --file optouts.csv
  leadetl answers forget --in requests.csv --id-column email
  leadetl answers forget --in people.csv --from full_name=Name,company_domain=Website
  leadetl answers forget --older-than 400d`,
		Args: cli.NoArguments,
		RunE: func(c *cobra.Command, _ []string) error { return f.forget(c.Context(), std) },
	})
	c.Annotations = cli.ExitCodes(map[int]string{
		cli.ExitRejects:     "done, but rows had no identifier or open calls were kept",
		cli.ExitTryAgain:    "stored answers in use by another process, or S3 out of reach; run the same command later",
		cli.ExitInterrupted: "interrupted; answers forgotten so far stay forgotten",
	})
	flags := c.Flags()
	flags.StringArrayVar(&f.files, "file", nil, "`file`, folder, ZIP archive or glob of people, also on S3: emails, @domains, phones, profile URLs, IPs, or hashes of these, one a line or in columns of CSV, JSON Lines or Parquet; repeatable")
	flags.StringArrayVar(&f.in, "in", nil, "input `URI`: a path, a quoted glob, or - for standard input; CSV or JSON Lines (.gz and .zst too) or, from files, Parquet; repeatable")
	flags.StringVar(&f.idColumn, "id-column", "", "`name` of the column with identifiers (default: email, network_url or ip; with --file as in --suppress)")
	flags.StringVar(&f.identifier, "identifier", "", "`kind` of identifier in --id-column: email, network_url or ip (default: the column's name)")
	flags.StringToStringVar(&f.from, "from", nil, "`columns` of --in with the values of a person, as the job has them: first_name=First,company_domain=Website; rows that have any need no identifier")
	flags.StringVar(&f.delimiter, "delimiter", "", "`character` between CSV fields, or \"tab\" (default: detected)")
	flags.StringSliceVar(&f.networkHosts, "network-hosts", job.Default("").NetworkHosts, "`hosts` of profile URLs")
	wire.BindRegion(flags, &f.defaultRegion, "`region` of phone numbers in --file without a country code")
	flags.StringArrayVar(&f.hashes, "key-hash", nil, "`hash` of a key; repeatable")
	flags.Var(&f.olderThan, "older-than", "minimum `age` of the answers to delete, such as 400d")
	flags.BoolVar(&f.deleteVersions, "delete-versions", false, "on S3: also delete earlier versions of the objects, in a bucket that keeps them")
	flags.BoolVar(&f.evenOpen, "even-open", false, "also forget identifiers with an open call; they may be billed twice")
	return c
}

func (f *forgetFlags) forget(ctx context.Context, std cli.Streams) (err error) {
	ways := 0
	for _, given := range []bool{len(f.files) > 0, len(f.in) > 0, len(f.hashes) > 0, f.olderThan > 0} {
		if given {
			ways++
		}
	}
	if ways != 1 {
		return cli.UsageError(errors.New("say what to forget with one of --file, --in, --key-hash and --older-than"))
	}
	if len(f.from) > 0 && len(f.in) == 0 {
		return cli.UsageError(errors.New("--from names columns of --in; name the file with it"))
	}
	unit := "answer"
	if len(f.in) > 0 {
		unit = "byte" // of the input
	}
	ctx, stop := runview.Watch(ctx, std, "forgetting", unit, true)
	defer stop()
	versions, err := f.versions(ctx, std)
	if err != nil {
		return cli.Interrupted(ctx, err)
	}
	stores, err := f.stored.stores(ctx, std)
	if err != nil {
		return cli.Interrupted(ctx, err)
	}
	defer func() { err = errors.Join(err, stores.Close()) }()
	e := &eraser{}
	done, err := f.erase(ctx, std, e, stores)
	if err == nil && versions != nil {
		err = versions(ctx)
	}
	if err = cli.Interrupted(ctx, err); f.olderThan > 0 {
		fmt.Fprintf(std.Out, "%s forgotten\n", figures.Plural(done.Questions, "answer"))
		return err
	}
	return e.report(std, done, err)
}

// versions returns what deletes the earlier versions of objects, in a bucket that keeps them; nil elsewhere.
func (f *forgetFlags) versions(ctx context.Context, std cli.Streams) (func(context.Context) error, error) {
	if !objects.Is(f.stored.state) {
		if f.deleteVersions {
			return nil, cli.UsageError(errors.New("--delete-versions: only a state on S3 has versions"))
		}
		return nil, nil
	}
	state, err := wire.OpenObjectState(ctx, f.stored.state, &f.stored.s3, std)
	if err != nil {
		return nil, err
	}
	keeps, err := state.KeepsVersions(ctx)
	switch {
	case err != nil || !keeps:
		return nil, err
	case !f.deleteVersions:
		return nil, cli.UsageError(fmt.Errorf("%s is in a bucket that keeps earlier versions of objects, and with them what is forgotten; --delete-versions deletes the versions too", state))
	}
	return state.RemoveVersions, nil
}

// erase forgets what is chosen, in one place after the other.
func (f *forgetFlags) erase(ctx context.Context, std cli.Streams, e *eraser, stores *answers.Stores) (done answers.Forgotten, err error) {
	all, err := stores.All(ctx)
	if err != nil {
		return done, wire.AnswersError(f.stored.state, err)
	}
	contents, err := stores.Contents(ctx)
	if err != nil {
		return done, err
	}
	choice, err := f.choose(ctx, std, e, contents)
	if err = errors.Join(err, contents.Close()); err != nil {
		return done, err
	}
	for _, stored := range all {
		some, err := stored.Forget(ctx, choice)
		done.Questions, done.Open, done.Kept = done.Questions+some.Questions, done.Open+some.Open, append(done.Kept, some.Kept...)
		if err != nil {
			return done, err
		}
	}
	return done, nil
}

// choose reads the lists or the input.
func (f *forgetFlags) choose(ctx context.Context, std cli.Streams, e *eraser, contents *answers.Contents) (c answers.Choice, err error) {
	c.EvenOpen = f.evenOpen
	switch {
	case len(f.files) > 0:
		lists, err := f.readLists(ctx, std)
		if err != nil {
			return c, err
		}
		e.PassedOver = lists.PassedOver
		who := lists.Set.Finder()
		c.Answer = func(i *answers.Item) bool { return who.Names(i.Key) || who.NamesInBody(i.Body) }
		c.Call = func(call *answers.OpenCall) bool { return namesCall(call, who) }
	case len(f.in) > 0:
		c.Hashes, err = f.chooseInput(ctx, std, e, contents)
	case len(f.hashes) > 0:
		c.Hashes, err = parseHashes(f.hashes)
		err = cli.UsageError(err)
	default:
		before := time.Now().Add(-time.Duration(f.olderThan))
		c.Answer = func(i *answers.Item) bool { return i.Received.Before(before) }
		c.Body = func(call *answers.OpenCall) bool { return call.Sent.Before(before) }
	}
	return c, err
}

// chooseInput returns the questions about the identifiers of the input, and those to verifiers about what the
// answers to these have found. It is not nil: an empty input chooses nothing.
func (f *forgetFlags) chooseInput(ctx context.Context, std cli.Streams, e *eraser, contents *answers.Contents) (hashes []answers.Hash, err error) {
	scopes, err := contents.Scopes(ctx)
	if err != nil {
		return nil, err
	}
	hashes = []answers.Hash{}
	err = f.readInput(ctx, std, func(reader *sources.Reader, kind resolution.Identifier, from []string) error {
		about := subjects{kind: kind, scopes: scopes, region: f.defaultRegion}
		named := subjects{kind: resolution.Person, scopes: scopes}
		err := e.eachKey(ctx, reader, f.keys(kind), from, func(keys, persons []string) {
			hashes = append(append(hashes, about.questions(keys)...), named.questions(persons)...)
		})
		if err != nil {
			return err
		}
		found, err := about.found(counted(ctx, contents.List(ctx, answers.Filter{Bodies: true})), hashes)
		hashes = append(hashes, found...)
		return err
	})
	return hashes, err
}

func parseHashes(texts []string) (hashes []answers.Hash, err error) {
	for i, text := range texts {
		h, err := answers.ParseHash(strings.TrimSpace(text))
		if err != nil {
			return nil, fmt.Errorf("--key-hash number %d: %w; leadetl answers list shows key hashes", i+1, err)
		}
		hashes = append(hashes, h)
	}
	return hashes, nil
}

// readInput opens the columns of the input: that with the identifiers, unless their kind is "", then those with
// the values from of a person.
func (f *forgetFlags) readInput(ctx context.Context, std cli.Streams, use func(r *sources.Reader, kind resolution.Identifier, from []string) error) (err error) {
	delimiter, err := wire.ParseDelimiter(f.delimiter)
	if err != nil {
		return cli.UsageError(err)
	}
	input, err := wire.OpenInput(ctx, f.in, sources.Options{Delimiter: delimiter, Stdin: std.In, Wanted: f.wanted()})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, input.Close()) }()
	column, kind, err := f.identifiers(input.Files()[0])
	if err != nil {
		return cli.UsageError(err)
	}
	from := slices.Sorted(maps.Keys(f.from))
	var columns []string
	if kind != "" {
		columns = append(columns, column)
	}
	for _, name := range from {
		if !person.Is(name) {
			return cli.UsageError(fmt.Errorf("--from has %s%s", name, suggest.OneOf(name, person.Names)))
		}
		columns = append(columns, f.from[name])
	}
	reader, err := input.Reader(columns)
	if err != nil {
		return cli.UsageError(err)
	}
	defer func() { err = errors.Join(err, reader.Close()) }()
	return use(reader, kind, from)
}

// kinds are the identifiers that can be forgotten.
var kinds = []resolution.Identifier{resolution.Email, resolution.NetworkURL, resolution.IP}

// wanted are the names that the column of the identifiers may have.
func (f *forgetFlags) wanted() (names []string) {
	if f.idColumn != "" {
		return []string{f.idColumn}
	}
	for _, kind := range kinds {
		names = append(names, string(kind))
	}
	return append(names, slices.Sorted(maps.Values(f.from))...)
}

// identifiers returns the column that holds the identifiers, and their kind; "" where persons alone are told.
func (f *forgetFlags) identifiers(first sources.File) (column string, kind resolution.Identifier, err error) {
	named := func(name string) (found resolution.Identifier) {
		for _, k := range kinds {
			if strings.EqualFold(string(k), name) {
				found = k
			}
		}
		return found
	}
	if f.identifier != "" {
		if kind = named(f.identifier); kind == "" {
			return "", "", fmt.Errorf("unknown --identifier %q; it is email, network_url or ip", f.identifier)
		}
	}
	switch {
	case f.idColumn != "" && kind != "":
		return f.idColumn, kind, nil
	case f.idColumn != "":
		if kind = named(f.idColumn); kind == "" {
			return "", "", fmt.Errorf("--id-column %q; say what it holds with --identifier email, network_url or ip", f.idColumn)
		}
		return f.idColumn, kind, nil
	case kind != "":
		return string(kind), kind, nil
	}
	var found []string
	for _, c := range first.Columns {
		if named(c) != "" {
			found = append(found, c)
		}
	}
	switch len(found) {
	case 1:
		return found[0], named(found[0]), nil
	case 0:
		if len(f.from) > 0 {
			return "", "", nil
		}
		return "", "", fmt.Errorf("%s has no column email, network_url or ip; name the column with --id-column", first.URI)
	}
	return "", "", fmt.Errorf("%s has the columns %s; choose one with --id-column, then run again for the other", first.URI, strings.Join(found, " and "))
}

// keys returns a function that normalizes cells of a kind; nil without one.
func (f *forgetFlags) keys(kind resolution.Identifier) func(cell string) ([]string, error) {
	if kind == "" {
		return nil
	}
	return func(cell string) ([]string, error) { return keys.Canonical(kind, cell, f.networkHosts) }
}

// eraser notes what cannot be forgotten.
type eraser struct{ wire.PassedOver }

// eachKey calls do with the keys of the identifiers in the first column, if keys is not nil, and with those of the
// values of persons in the others.
func (e *eraser) eachKey(ctx context.Context, reader *sources.Reader, keys func(cell string) ([]string, error), from []string, do func(keys, persons []string)) error {
	for {
		b, err := reader.Next(ctx, 0)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		var some, persons []string
		for i, row := range b.Rows {
			named := personKeys(b.Columns[len(b.Columns)-len(from):], from, i)
			persons = append(persons, named...)
			var all []string
			err := profile.ErrEmpty
			if keys != nil {
				all, err = keys(b.Columns[0].Value(i))
			}
			if err != nil && (len(named) == 0 || err.Error() != profile.ErrEmpty.Error()) { // of whatever kind
				e.Add(fmt.Sprintf("%s: row %d: %v", b.Source, row, err))
			}
			some = append(some, all...)
		}
		for _, r := range b.Rejects {
			e.Add(fmt.Sprintf("%s:%d: %s", r.Source, r.Line, r.Reason))
		}
		b.Release()
		do(some, persons)
	}
}

// report prints the result. It returns failure, or an error about rows without
// an identifier and questions that were kept.
func (e *eraser) report(std cli.Streams, done answers.Forgotten, failure error) error {
	e.Print(std.Err)
	if done.Open > 0 {
		fmt.Fprintf(std.Err, "warning: %s had an open call; asked again, it may be bought twice\n", figures.Plural(done.Open, "forgotten identifier"))
	}
	fmt.Fprintf(std.Out, "%s forgotten\n", figures.Plural(done.Questions, "identifier"))
	if failure != nil {
		return failure
	}
	var left []error
	if len(done.Kept) > 0 {
		left = append(left, fmt.Errorf("%s kept for an open call; --even-open forgets such, and they may then be bought twice", figures.Plural(len(done.Kept), "identifier")))
	}
	if e.Bad > 0 {
		left = append(left, fmt.Errorf("%s without an identifier passed over", figures.Plural(e.Bad, "row")))
	}
	if len(left) == 0 {
		return nil
	}
	return cli.WithCode(cli.ExitRejects, errors.Join(left...))
}
