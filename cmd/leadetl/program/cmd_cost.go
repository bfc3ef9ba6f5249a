package program

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/wire"
	"github.com/leadetl/leadetl/internal/cliflag"
	"github.com/leadetl/leadetl/internal/figures"
	"github.com/leadetl/leadetl/internal/invisible"
	"github.com/leadetl/leadetl/internal/objects"
	"github.com/leadetl/leadetl/pipeline/answers"
	"github.com/leadetl/leadetl/sinks"
)

// costFlags are the flags of cost.
type costFlags struct {
	since  cliflag.Day
	asJSON bool
	s3     wire.S3
}

func newCostCommand(std cli.Streams) *cobra.Command {
	var f costFlags
	c := &cobra.Command{
		Use:   "cost [STATE|DATASET]",
		Short: "Show what answers have cost, by day, operation and service",
		Long: `Show how many credits were paid on each day (UTC) for each operation at each
service, as the stored answers of a state know it: by default those of this
user's state folder. Answers that were forgotten count too. UNPRICED counts the
answers for which the service sent no price; CREDITS does not have them.
max_credits_per counts the same days.

Of a dataset, show what all runs have paid for it, for each match, and what the
last run paid.

It works beside a run, and changes nothing.`,
		Example: `  leadetl cost
  leadetl cost s3://leads/state/ --since 2026-11-01 --json
  leadetl cost out/leads`,
		Annotations: cli.ExitCodes(map[int]string{cli.ExitTryAgain: "S3 out of reach; run the same command later", cli.ExitInterrupted: "interrupted"}),
		Args:        cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			from := wire.DefaultStateDir()
			if len(args) > 0 {
				from = args[0]
			}
			return f.run(c.Context(), from, std)
		},
	}
	flags := c.Flags()
	flags.SortFlags = false
	flags.Var(&f.since, "since", "first `day` of a state to show, such as 2026-11-01 (default: all)")
	flags.BoolVar(&f.asJSON, "json", false, "print JSON Lines, an object for each line")
	f.s3.RegisterReading(flags)
	return c
}

func (f *costFlags) run(ctx context.Context, from string, std cli.Streams) error {
	if f.since.Midnight().After(time.Now()) {
		return cli.UsageError(fmt.Errorf("--since %s is after today (UTC)", f.since.String()))
	}
	if !objects.Is(from) && wire.HoldsAnswers(ctx, from) {
		return f.ofState(ctx, from, std)
	}
	opened, from, err := openNight(ctx, from, &f.s3, std.Log())
	if err != nil {
		return wire.UnlessUnavailable(err)
	}
	m, err := sinks.ReadManifest(opened)
	switch {
	case err == nil:
		return f.ofDataset(m, std)
	case !errors.Is(err, sinks.ErrNoDataset):
		return wire.UnlessUnavailable(fmt.Errorf("%s: %w", from, err))
	case !objects.Is(from):
		return cli.UsageError(fmt.Errorf("%s has neither stored answers nor a dataset; name the folder of a state, or of a dataset", from))
	}
	return f.ofState(ctx, from, std)
}

func (f *costFlags) ofState(ctx context.Context, from string, std cli.Streams) (err error) {
	places, err := wire.OpenAnswers(ctx, from, &f.s3, std)
	if err != nil {
		return err
	}
	contents, err := wire.ReadAnswers(ctx, places, from)
	if errors.Is(err, answers.ErrNone) {
		return cli.UsageError(fmt.Errorf("%s has neither stored answers nor a dataset; name a state, or a dataset", from))
	}
	if err != nil {
		return wire.UnlessUnavailable(err)
	}
	defer func() { err = errors.Join(err, contents.Close()) }()
	return f.print(ctx, contents, std)
}

// dayCost is a line of the cost of a state in JSON.
type dayCost struct {
	Day       string `json:"day"`
	Operation string `json:"operation"`
	Service   string `json:"service"`
	answers.Spending
}

// print shows what is paid by day.
func (f *costFlags) print(ctx context.Context, state *answers.Contents, std cli.Streams) error {
	spent, err := state.SpentSince(ctx, f.since.String())
	if err != nil {
		return wire.UnlessUnavailable(err)
	}
	if f.asJSON {
		encoder := json.NewEncoder(std.Out)
		for _, d := range spent {
			if err := encoder.Encode(dayCost{d.Day, string(d.Operation), d.Service, d.Spending}); err != nil {
				return err
			}
		}
		return nil
	}
	table := tabwriter.NewWriter(std.Out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "DAY\tOPERATION\tSERVICE\tANSWERS\tCREDITS\tUNPRICED")
	line := func(day, operation, service string, p answers.Spending) {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", day, operation, invisible.Escape(service), figures.Grouped(p.Answers), figures.Grouped(p.Credits), figures.Grouped(p.Unpriced))
	}
	var all answers.Spending
	shown := shownOperations(spent)
	for _, d := range spent {
		line(d.Day, shown[d.Scope], d.Service, d.Spending)
		all = all.Plus(d.Spending)
	}
	line("all", "", "", all)
	return table.Flush()
}

// shownOperations are operations as people read them: for a provider what it was asked about, with the
// digest of the request only where several forms were paid for.
func shownOperations(spent []answers.DaySpending) map[answers.Scope]string {
	shown, first := map[answers.Scope]string{}, map[[2]string]answers.Scope{}
	for _, d := range spent {
		kind := [2]string{d.Service, string(d.Identifier())}
		other, known := first[kind]
		switch {
		case !d.IsProvider() || known && other != d.Scope:
			shown[d.Scope] = string(d.Operation)
			if d.IsProvider() {
				shown[other] = string(other.Operation)
			}
		case !known:
			first[kind], shown[d.Scope] = d.Scope, kind[1]
		}
	}
	return shown
}

// datasetCost is the cost of a dataset in JSON.
type datasetCost struct {
	CompletedAt    time.Time `json:"completed_at"`
	Operation      string    `json:"operation"`
	Matched        int64     `json:"matched"`
	CreditsTotal   *int64    `json:"credits_total"`
	CreditsThisRun *int64    `json:"credits_this_run"`
}

// ofDataset shows what is paid for a dataset.
func (f *costFlags) ofDataset(m *sinks.Manifest, std cli.Streams) error {
	if f.since.String() != "" {
		return cli.UsageError(errors.New("--since is for a state; a dataset has the sum of its runs"))
	}
	if f.asJSON {
		return json.NewEncoder(std.Out).Encode(datasetCost{m.CompletedAt, m.Operation, m.Totals.Matched, m.CreditsTotal, m.CreditsThisRun})
	}
	if m.CreditsTotal == nil {
		_, err := fmt.Fprintln(std.Out, "no credits: the rows were answered without a service, or by a version that did not count them")
		return err
	}
	each := "-"
	if m.Totals.Matched > 0 {
		each = fmt.Sprintf("%.2f", float64(*m.CreditsTotal)/float64(m.Totals.Matched))
	}
	last := int64(0)
	if m.CreditsThisRun != nil {
		last = *m.CreditsThisRun
	}
	table := tabwriter.NewWriter(std.Out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "DAY\tOPERATION\tMATCHED ROWS\tCREDITS\tEACH MATCH\tBY LAST RUN")
	fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", answers.DayOf(m.CompletedAt), m.Operation, figures.Grouped(m.Totals.Matched), figures.Grouped(*m.CreditsTotal), each, figures.Grouped(last))
	return table.Flush()
}
