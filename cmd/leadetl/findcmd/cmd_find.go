package findcmd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/runview"
	"github.com/leadetl/leadetl/cmd/leadetl/wire"
	"github.com/leadetl/leadetl/internal/figures"
	"github.com/leadetl/leadetl/internal/invisible"
	"github.com/leadetl/leadetl/pipeline/find"
	"github.com/leadetl/leadetl/pipeline/job"
)

// flags are the flags of find.
type flags struct {
	files         []string
	idColumn      string
	states        []string
	stateGiven    bool
	directories   []string
	lists         []string
	networkHosts  []string
	defaultRegion string
	json          string
	s3            wire.S3
}

// NewCommand returns the command leadetl find.
func NewCommand(std cli.Streams) *cobra.Command {
	var f flags
	c := &cobra.Command{
		Use:   "find --file SUBJECTS [DATASET…]",
		Short: "Say where people are, and how to remove them",
		Long: `Look for people in datasets and folders of nights, stored answers, reference data
and suppression lists, by the lines of SUBJECTS. It compares as --suppress of
leadetl run does, changes nothing, and prints no identifier: a line for each line
of SUBJECTS and place, with counts, and then the commands that remove them.

  DATASET      datasets, finished or not, with _rejects, _changes, _asked and
               _suppressed; also folders above them, as of nights
  --state      stored answers and open calls, by key and body
  --directory  people, searches and visits of reference data
  --suppress   lists that keep people out; nothing is to be removed from these

--json FILE has every place with its checksum or version. Keep one of before and
one of after a deletion as the record that a request was fulfilled: it names
people by line alone, and only its owner can read it.

A hash finds what was hashed alike, not the name, phone or profile of somebody.
A name with a company finds what was asked by these. Give every identifier you
know. _suppressed is known by your own id only. Backups, exports, warehouses and
the state of leadetl serve are not searched.`,
		Example: `  leadetl find --file requests.csv out/leads
  leadetl find --file requests.csv --directory dir --suppress optouts.csv out/nights
  leadetl find --file requests.csv --state s3://leads/state/ s3://leads/nights/ --json before.json`,
		Annotations: cli.ExitCodes(map[int]string{
			cli.ExitRejects:     "something could not be read, or lines of SUBJECTS have no identifier; all else was searched",
			cli.ExitInterrupted: "interrupted",
		}),
		Args: cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			f.stateGiven = c.Flags().Changed("state")
			return f.run(c.Context(), std, args)
		},
	}
	set := c.Flags()
	set.SortFlags = false
	set.StringArrayVar(&f.files, "file", nil, "`file` or glob of people: emails, @domains, phones, profile URLs, IPs, or hashes of these, one a line or in columns of CSV, JSON Lines or Parquet; repeatable")
	set.StringVar(&f.idColumn, "id-column", "", "`name` of the column with identifiers (default: as in --suppress)")
	set.StringArrayVar(&f.states, "state", []string{wire.DefaultStateDir()}, "`folder` with the state of runs, or s3://bucket/prefix/; repeatable")
	set.StringArrayVar(&f.directories, "directory", nil, "`folder` of reference data, made by leadetl directory import; repeatable")
	set.StringArrayVar(&f.lists, "suppress", nil, "`file`, folder, ZIP archive or glob of suppression lists; repeatable")
	set.StringSliceVar(&f.networkHosts, "network-hosts", job.Default("").NetworkHosts, "`hosts` of profile URLs")
	wire.BindRegion(set, &f.defaultRegion, "`region` of phone numbers without a country code")
	set.StringVar(&f.json, "json", "", "`file` for every place with its checksum or version")
	f.s3.RegisterReading(set)
	return c
}

// readSubjects reads the lists of people.
func (f *flags) readSubjects(ctx context.Context) (s subjects, err error) {
	builder, reading := wire.NewBuilder(f.defaultRegion, f.networkHosts), wire.Suppress{Lists: f.files}
	if f.idColumn != "" {
		reading.Columns = []string{f.idColumn}
	}
	numbers, valid, files := map[wire.Cell]uint32{}, map[uint32]bool{}, map[string]bool{}
	s.lists, err = reading.Each(ctx, func(c wire.Cell) error {
		text := c.Text
		c.Text = ""
		number, known := numbers[c]
		if !known {
			number = uint32(len(s.lines))
			numbers[c], s.lines = number, append(s.lines, c)
		}
		files[c.File] = true
		err := builder.AddLine(number, text)
		if err == nil {
			valid[number] = true
		}
		return err
	})
	if s.valid, s.files = len(valid), len(files); err == nil && s.valid == 0 {
		err = cli.UsageError(errors.New("--file: no line has an identifier"))
	}
	s.Subjects = find.NewSubjects(builder)
	return s, err
}

func (f *flags) run(ctx context.Context, std cli.Streams, datasets []string) (err error) {
	if len(f.files) == 0 {
		return cli.UsageError(errors.New("no --file; name a list of the people to find"))
	}
	if err := f.checkPlaces(datasets); err != nil {
		return err
	}
	if _, err := f.s3.Open(ctx, std.Log()); err != nil {
		return cli.UsageError(err)
	}
	who, err := f.readSubjects(ctx)
	if err != nil {
		return err
	}
	record, err := newRecord(f.json, f.files, who)
	if err != nil {
		return cli.UsageError(err)
	}
	defer func() { err = errors.Join(err, record.abort()) }()
	counting, stop := runview.Watch(ctx, std, "searching", "record", true)
	search := search{flags: f, std: std, who: who, record: record}
	err = search.all(counting, datasets)
	stop()
	if err != nil {
		return cli.Interrupted(ctx, err)
	}
	if err := record.finish(search.removals); err != nil {
		return err
	}
	if err := record.print(std.Out, search.removals); err != nil {
		return err
	}
	return f.report(std, who, record)
}

// report says what was not searched.
func (f *flags) report(std cli.Streams, who subjects, r *record) error {
	for _, u := range r.unread {
		fmt.Fprintf(std.Err, "not read: %s: %s\n", invisible.Escape(u.Name), invisible.Escape(u.Why))
	}
	who.lists.Print(std.Err)
	var left []error
	if len(r.unread) > 0 {
		left = append(left, fmt.Errorf("%s could not be read, and may name them; all else was searched", figures.Plural(len(r.unread), "place")))
	}
	if who.lists.Bad > 0 {
		left = append(left, fmt.Errorf("%s of --file without an identifier passed over", figures.Plural(int(who.lists.Bad), "entry")))
	}
	if len(left) == 0 {
		return nil
	}
	return cli.WithCode(cli.ExitRejects, errors.Join(left...))
}

// checkPlaces refuses places that are not there: a misspelled one would look as if it had nobody.
func (f *flags) checkPlaces(datasets []string) error {
	if !f.stateGiven {
		if _, err := os.Stat(filepath.Join(f.states[0], wire.AnswersFolder)); err != nil {
			f.states = nil // no run has stored an answer
		}
	}
	if len(datasets)+len(f.states)+len(f.directories)+len(f.lists) == 0 {
		return cli.UsageError(errors.New("no place to look; name datasets or nights, --state, --directory or --suppress"))
	}
	for _, place := range append(append(f.states[:len(f.states):len(f.states)], f.directories...), datasets...) {
		if place == "" {
			return cli.UsageError(errors.New("a place to look has no name"))
		}
		if err := wire.CheckFolder(place); err != nil {
			return cli.UsageError(err)
		}
	}
	return nil
}
