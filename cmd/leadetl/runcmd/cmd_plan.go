package runcmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"

	"github.com/spf13/cobra"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/runview"
	"github.com/leadetl/leadetl/internal/figures"
	"github.com/leadetl/leadetl/pipeline"
	"github.com/leadetl/leadetl/pipeline/order"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/sinks"
)

// NewPlanCommand returns the command plan.
func NewPlanCommand(std cli.Streams) *cobra.Command {
	f := runFlags{planning: true}
	as := planned{}
	c := &cobra.Command{
		Use:   "plan OPERATION --in URI… --out FOLDER",
		Short: "Show what a run would do and cost, without spending anything",
		Long: `Show what leadetl run with the same arguments would do: how many rows it reads,
how many it rejects and why, how many distinct keys there are, how many of
these are stored, how many calls remain, the most they can cost, how long they
take, and which files it writes.

plan takes the same flags as run. It reads the whole input, and the files of
--directory that the run would look into, makes no calls that cost anything and
changes nothing. If the API key is given, it asks each service for the balance of
the account, and for its limit.
Of several resolvers, by the keys want, providers and resolvers of the job file
(docs/resolvers.md), it shows what each would be asked.
With --on it reads the input itself too, and needs no worker.
With --orders it says instead, by the stored answers, what other orders of the
resolvers would have cost: all of up to six, each with the share of keys of which
nothing would be missing. A run with --sample and --ask-all buys these answers.
With more than a million keys it needs 36 bytes a row in --state while it works.
The numbers hold for the next run as long as the input and the stored answers do
not change.`,
		Example: `  leadetl plan enrichment --in people.csv --out leads --resolver https://leads.example --rate 9/s
  leadetl plan --job nightly.yaml --json`,
		Annotations: cli.ExitCodes(map[int]string{
			cli.ExitRejects:     "the run would exit with 3: failed rows, rejects over --max-rejects, or no rows; see --fail-on",
			cli.ExitTryAgain:    "",
			cli.ExitInterrupted: "interrupted",
		}),
		Args: OneOperation,
		RunE: func(c *cobra.Command, args []string) error {
			operation, err := f.settle(c.Context(), args)
			if err != nil {
				return err
			}
			return f.plan(c.Context(), operation, as, std)
		},
	}
	c.ValidArgs = resolution.OperationNames()
	f.register(c, cli.Group{Title: "Plan", Settings: []cli.Setting{
		{Name: "json", To: &as.json, Use: cli.Everyday, Text: "print the plan as JSON"},
		{Name: "orders", To: &as.orders, Use: cli.Everyday, Text: "compare orders of the resolvers by the stored answers"},
	}})
	return c
}

// planned is what a plan prints.
type planned struct{ json, orders bool }

// plan prints what a run would do, or what orders of its resolvers would have cost.
func (f *runFlags) plan(ctx context.Context, operation string, as planned, std cli.Streams) (err error) {
	run, closeRun, err := f.open(ctx, std)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeRun()) }()
	stop := f.display(run.Log, std).Plan(run.Progress)
	var plan *pipeline.Plan
	var compared *order.Comparison
	if as.orders {
		compared, err = pipeline.CompareOrders(ctx, run)
	} else {
		plan, err = pipeline.MakePlan(ctx, run)
	}
	stop()
	if errors.Is(err, context.Canceled) {
		return cli.WithCode(cli.ExitInterrupted, errors.New("interrupted; nothing was changed"))
	}
	if err != nil {
		return err
	}
	if compared != nil {
		return as.print(std, compared, runview.Orders{Comparison: compared, Want: run.Order.Want})
	}
	noCallback := f.lacksCallback(run.Job.Operation)
	account, balances := f.balance(ctx, plan, run.Log)
	if as.json || !f.log.Quiet {
		err = as.print(std, plannedJSON{plan, account, balances, noCallback}, runview.Plan{
			Plan: plan, Files: run.Input.Files(), Sample: run.Job.Sample, Out: f.out, Rate: f.remote.rate.String(), Account: account, Balances: balances, NoCallback: noCallback,
		})
	}
	if err != nil {
		return err
	}
	f.warnOfRejects(plannedTotals(plan), run.Log)
	return f.foresee(plan)
}

// print prints a plan as JSON or as a table.
func (as planned) print(std cli.Streams, plan any, table interface{ Print(io.Writer) error }) error {
	if !as.json {
		return table.Print(std.Out)
	}
	encoder := json.NewEncoder(std.Out)
	encoder.SetIndent("", "  ")
	return encoder.Encode(plan)
}

// plannedJSON is a plan in JSON output.
type plannedJSON struct {
	*pipeline.Plan
	// AccountCredits are those of the account of the key; absent if it was not asked, or does
	// not tell.
	AccountCredits *int64 `json:"account_credits,omitempty"`
	// Balances are what providers say is left.
	Balances []runview.Balance `json:"balances,omitempty"`
	// NoCallback means that a run would refuse these flags because
	// --callback-url or --callback-listen is missing.
	NoCallback bool `json:"no_callback,omitempty"`
}

// balance asks each service how often it may call, and each provider for what is left if its entry says how, if a
// plan has calls to it and its key can be read. It returns the credits of the account of a single service. A plan
// is one without it too.
func (f *asked) balance(ctx context.Context, plan *pipeline.Plan, log *slog.Logger) (account *int64, all []runview.Balance) {
	timed, done := context.WithTimeout(ctx, planPatience)
	defer done()
	planned := plan.Resolvers
	if planned == nil && len(f.items) == 1 {
		planned = []pipeline.PlannedResolver{{Name: f.items[0].name, Calls: plan.Calls}}
	}
	for _, r := range planned {
		s := f.items[slices.IndexFunc(f.items, func(s *resolverSettings) bool { return s.name == r.Name })]
		switch {
		case r.Calls == nil || r.Calls.Credits == 0 || s.name == EmbeddedResolver:
		case s.address != "":
			if told := f.service(s).allow(timed, plan.Operation, r.Calls); len(f.items) == 1 {
				account = told
			}
		default:
			left, err := f.balanceOf(timed, s)
			if left != nil {
				left.Needs = r.Calls.Credits
				all = append(all, *left)
			} else if err != nil {
				log.Warn("a balance is not known", "why", err)
			}
		}
	}
	return account, all
}

// balanceOf asks a provider for what is left; nil if its entry does not say how, or there is no key.
func (f *asked) balanceOf(ctx context.Context, s *resolverSettings) (*runview.Balance, error) {
	entries, err := f.order.entries(ctx)
	if err != nil {
		return nil, err
	}
	counts, is := "", false
	if e := entries[s.name]; e != nil {
		counts, is = e.Balance()
	}
	if !is {
		return nil, nil
	}
	c, err := s.client(ctx, entries[s.name], "", 1, &f.remote)
	if err != nil { // a plan needs no key, and doctor says what is wrong with it
		return nil, nil
	}
	defer c.Close()
	left, err := c.Balance(ctx)
	if err != nil {
		return nil, err
	}
	return &runview.Balance{Resolver: s.name, Left: left, Counts: counts}, nil
}

// allow asks the service for the limit of calls that are planned, and for the credits of the account; nil if it
// does not tell.
func (f *service) allow(ctx context.Context, op resolution.Operation, calls *pipeline.PlannedCalls) *int64 {
	account, err := f.account(ctx)
	if err != nil || !account.Told {
		return nil
	}
	if op.IsKeyword() {
		calls.Allow(account.Create)
	} else {
		calls.Allow(account.Single)
	}
	return &account.Credits
}

// plannedTotals are the counts of a plan that checkRejects looks at.
func plannedTotals(p *pipeline.Plan) sinks.Totals {
	t := sinks.Totals{Rows: p.Rows, Rejected: p.Rejected, Malformed: p.Malformed, Reasons: p.Reasons}
	if p.OutputRows > 0 || p.NotSelected > 0 {
		t.Rows, t.SourceRows, t.NotSelected = max(p.OutputRows, p.Rows-p.NotSelected), p.Rows, p.NotSelected
	}
	return t
}

// foresee returns the error with which the run would exit with code 3, as far
// as it is known.
func (f *runFlags) foresee(p *pipeline.Plan) error {
	if p.Failed > 0 && f.failOn.failed {
		return cli.WithCode(cli.ExitRejects, fmt.Errorf("%s of the dataset failed, and the same command would not change that; see leadetl answers list --unknown", figures.Plural(p.Failed, "row")))
	}
	if err := f.checkRejects(plannedTotals(p), "would be"); err != nil {
		return err
	}
	if p.Calls != nil && p.Calls.Failed > 0 && f.failOn.failed {
		return cli.WithCode(cli.ExitRejects, fmt.Errorf("the rows of %s would fail because their calls may have been billed; see leadetl answers list --unknown", figures.Plural(p.Calls.Failed, "key")))
	}
	return nil
}
