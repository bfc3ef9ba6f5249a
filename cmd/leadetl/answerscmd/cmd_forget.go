package answerscmd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/wire"
	"github.com/leadetl/leadetl/internal/cliflag"
	"github.com/leadetl/leadetl/internal/figures"
	"github.com/leadetl/leadetl/pipeline"
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
	column        string
	identifier    string
	delimiter     string
	networkHosts  []string
	hashes        []string
	olderThan     cliflag.Age
	evenOpen      bool
}

func newAnswersForgetCommand(std cli.Streams) *cobra.Command {
	var f forgetFlags
	c := f.stored.command(&cobra.Command{
		Use:   "forget --file FILE… | --in FILE… | --key-hash HASH… | --older-than AGE",
		Short: "Delete stored answers, by person, by identifier, by key hash or by age",
		Long: `Delete what is stored about people or addresses, so that their bytes are gone
from the file and its log (copies of it are yours to delete):

  --file        of the people on lists like those of leadetl run --suppress:
                emails, phones, profile URLs, IPs, or digests of them. Every
                stored answer is read, and everything goes that is asked about
                them or names them in its answer, a whole page of a search too.
  --in          of the identifiers in CSV or Parquet files: the answers to all
                operations that are asked about them, of every service. They
                are brought into canonical form as a run would; an email is
                forgotten under its digests too. Rows that are no identifiers
                are counted and named by their numbers.
  --key-hash    of questions that a report or leadetl answers list names
  --older-than  the answers received before that

Answers to keyword searches hold people that no key names: --file finds them,
or forget those by age or by key hash. Datasets that were written stay as they are.

A question with an open call is kept, unless --even-open says otherwise: it
may have been billed, and asked again it may be bought twice.`,
		Example: `  leadetl answers forget --file optouts.csv
  leadetl answers forget --in requests.csv --column email
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
	flags.StringArrayVar(&f.files, "file", nil, "`file` or glob of people: emails, phones, profile URLs, IPs or digests of them, one a line or in CSV or Parquet columns; may be given again")
	flags.StringArrayVar(&f.in, "in", nil, "input `URI`: a path, a glob in quotes, or - for standard input; CSV or Parquet, .gz and .zst too; may be given again")
	flags.StringVar(&f.column, "column", "", "`name` of the identifier's column (default: email, network_url or ip, whichever there is; of --file as of --suppress)")
	flags.StringVar(&f.identifier, "identifier", "", "`kind` of what --column holds: email, network_url or ip (default: its name)")
	flags.StringVar(&f.delimiter, "delimiter", "", "`character` between CSV fields, or \"tab\" (default: detected)")
	flags.StringSliceVar(&f.networkHosts, "network-hosts", pipeline.DefaultJob("").NetworkHosts, "`hosts` whose profile addresses are known by their form")
	flags.StringVar(&f.defaultRegion, "default-region", pipeline.DefaultJob("").DefaultRegion, "`region` of phone numbers of --file without a country code")
	flags.StringArrayVar(&f.hashes, "key-hash", nil, "key `hash` of a question; may be given again")
	flags.Var(&f.olderThan, "older-than", "`age` of the answers that are deleted, such as 400d")
	flags.BoolVar(&f.evenOpen, "even-open", false, "also forget questions with an open call, which may then be bought twice")
	return c
}

func (f *forgetFlags) forget(ctx context.Context, std cli.Streams) error {
	ways := 0
	for _, given := range []bool{len(f.files) > 0, len(f.in) > 0, len(f.hashes) > 0, f.olderThan > 0} {
		if given {
			ways++
		}
	}
	if ways != 1 {
		return cli.UsageError(errors.New("say what to forget with one of --file, --in, --key-hash and --older-than"))
	}
	switch {
	case len(f.files) > 0:
		return f.forgetLists(ctx, std)
	case len(f.in) > 0:
		return f.forgetInput(ctx, std)
	case len(f.hashes) > 0:
		hashes, err := parseHashes(f.hashes)
		if err != nil {
			return cli.UsageError(err)
		}
		return f.stored.on(ctx, func(s *answers.Store) error {
			e := eraser{store: s, evenOpen: f.evenOpen}
			return e.report(std, errors.Join(e.erase(ctx, hashes), e.emptyLog(ctx)))
		})
	}
	return f.stored.on(ctx, func(s *answers.Store) error {
		n, err := s.Prune(ctx, time.Now().Add(-time.Duration(f.olderThan)))
		fmt.Fprintf(std.Out, "%s forgotten\n", figures.Plural(n, "answer"))
		return err
	})
}

func parseHashes(texts []string) (hashes []answers.Hash, err error) {
	for i, text := range texts {
		h, err := answers.ParseHash(strings.TrimSpace(text))
		if err != nil {
			return nil, fmt.Errorf("--key-hash, the %d. one: %w; leadetl answers list shows them", i+1, err)
		}
		hashes = append(hashes, h)
	}
	return hashes, nil
}

// forgetInput forgets the identifiers of the input.
func (f *forgetFlags) forgetInput(ctx context.Context, std cli.Streams) (err error) {
	delimiter, err := wire.ParseDelimiter(f.delimiter)
	if err != nil {
		return cli.UsageError(err)
	}
	input, err := wire.OpenInput(ctx, f.in, sources.Options{Delimiter: delimiter, Stdin: std.In})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, input.Close()) }()
	column, kind, err := f.identifiers(input.Files()[0])
	if err != nil {
		return cli.UsageError(err)
	}
	reader, err := input.Reader([]string{column})
	if err != nil {
		return cli.UsageError(err)
	}
	defer func() { err = errors.Join(err, reader.Close()) }()
	return f.stored.on(ctx, func(s *answers.Store) error {
		scopes, err := s.Scopes(ctx)
		if err != nil {
			return err
		}
		e := eraser{store: s, evenOpen: f.evenOpen}
		return e.report(std, errors.Join(e.eraseAll(ctx, reader, f.keys(kind), ofKind(scopes, kind)), e.emptyLog(ctx)))
	})
}

// kinds are the identifiers that can be forgotten.
var kinds = []resolution.Identifier{resolution.Email, resolution.NetworkURL, resolution.IP}

// identifiers says which column holds the identifiers, and of what kind.
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
	case f.column != "" && kind != "":
		return f.column, kind, nil
	case f.column != "":
		if kind = named(f.column); kind == "" {
			return "", "", fmt.Errorf("--column %q; say what it holds with --identifier email, network_url or ip", f.column)
		}
		return f.column, kind, nil
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
		return "", "", fmt.Errorf("%s has no column email, network_url or ip; name the identifier's with --column", first.URI)
	}
	return "", "", fmt.Errorf("%s has the columns %s; choose one with --column, and forget the other's afterwards", first.URI, strings.Join(found, " and "))
}

// keys brings cells of a kind into canonical form.
func (f *forgetFlags) keys(kind resolution.Identifier) func(cell string) ([]string, error) {
	return func(cell string) ([]string, error) { return keys.Canonical(kind, cell, f.networkHosts) }
}

// ofKind are the scopes whose questions are asked about a kind of identifier.
func ofKind(scopes []answers.Scope, kind resolution.Identifier) (of []answers.Scope) {
	for _, s := range scopes {
		if s.Operation.Identifier() == kind {
			of = append(of, s)
		}
	}
	return of
}

// eraser forgets questions and counts what became of them.
type eraser struct {
	store     *answers.Store
	evenOpen  bool
	forgotten int
	open      int                   // of these, had an open call
	kept      map[answers.Hash]bool // for their open calls
	bad       int                   // rows without an identifier
	places    []string              // of the first of these
	chosen    []answers.Hash
	found     []answers.Found
}

// eraseAll forgets all that is asked in the scopes about the identifiers of a
// column.
func (e *eraser) eraseAll(ctx context.Context, from *sources.Reader, keys func(cell string) ([]string, error), scopes []answers.Scope) error {
	for {
		b, err := from.Next(ctx, 0)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		var questions []answers.Hash
		for i, row := range b.Rows {
			all, err := keys(b.Columns[0].Value(i))
			if err != nil {
				e.passOver(fmt.Sprintf("%s: row %d: %v", b.Source, row, err))
			}
			for _, key := range all {
				for _, scope := range scopes {
					questions = append(questions, answers.Question{Scope: scope, Key: key}.Hash())
				}
			}
		}
		for _, r := range b.Rejects {
			e.passOver(fmt.Sprintf("%s:%d: %s", r.Source, r.Line, r.Reason))
		}
		b.Release()
		if err := e.erase(ctx, questions); err != nil {
			return err
		}
	}
}

func (e *eraser) passOver(place string) {
	if e.bad++; len(e.places) < wire.ShownPlaces {
		e.places = append(e.places, strings.Clone(place))
	}
}

// erase forgets those of the questions about which something is stored. It
// orders them.
func (e *eraser) erase(ctx context.Context, questions []answers.Hash) (err error) {
	slices.SortFunc(questions, func(a, b answers.Hash) int { return bytes.Compare(a[:], b[:]) })
	questions = slices.Compact(questions)
	if e.found, err = e.store.LookupHashes(ctx, questions, answers.Freshness{}, e.found[:0]); err != nil {
		return err
	}
	e.chosen = e.chosen[:0]
	open := 0
	for i, f := range e.found {
		switch {
		case f.Open != "" && !e.evenOpen:
			if e.kept == nil {
				e.kept = map[answers.Hash]bool{}
			}
			e.kept[questions[i]] = true
			continue
		case f.Open != "":
			open++
		case !f.Stored:
			continue
		}
		e.chosen = append(e.chosen, questions[i])
	}
	if len(e.chosen) == 0 {
		return nil
	}
	n, err := e.store.Forget(ctx, e.chosen)
	e.forgotten += n
	e.open += open
	return err
}

// emptyLog takes what was deleted out of the log, also what an earlier command
// deleted and could not, for somebody else was reading: there is nothing left
// then that erase would find.
func (e *eraser) emptyLog(ctx context.Context) error {
	_, err := e.store.Forget(ctx, nil)
	return err
}

// report says what became of the questions. Its error is failure, or about the
// rows and questions that came to nothing.
func (e *eraser) report(std cli.Streams, failure error) error {
	for _, place := range e.places {
		fmt.Fprintf(std.Err, "no identifier: %s\n", place)
	}
	if more := e.bad - len(e.places); more > 0 {
		fmt.Fprintf(std.Err, "no identifier: and %s more\n", figures.Grouped(int64(more)))
	}
	if e.open > 0 {
		fmt.Fprintf(std.Err, "warning: %s had an open call; asked again, it may be bought twice\n", figures.Plural(e.open, "forgotten question"))
	}
	fmt.Fprintf(std.Out, "%s forgotten\n", figures.Plural(e.forgotten, "question"))
	if failure != nil {
		return failure
	}
	var left []string
	if len(e.kept) > 0 {
		left = append(left, fmt.Sprintf("%s kept for an open call; --even-open forgets such, and they may then be bought twice", figures.Plural(len(e.kept), "question")))
	}
	if e.bad > 0 {
		left = append(left, fmt.Sprintf("%s without an identifier passed over", figures.Plural(e.bad, "row")))
	}
	if len(left) == 0 {
		return nil
	}
	return cli.WithCode(cli.ExitRejects, errors.New(strings.Join(left, "\n")))
}
