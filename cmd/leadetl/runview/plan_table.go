package runview

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/leadetl/leadetl/internal/figures"
	"github.com/leadetl/leadetl/pipeline"
	"github.com/leadetl/leadetl/sources"
)

// Plan is the table of a plan.
type Plan struct {
	Plan   *pipeline.Plan
	Files  []sources.File // of the input
	Sample int            // lines of a sample, 0 for all
	Out    string         // the dataset
	Rate   string         // of the calls, as the user wrote it
	// Account are the credits of the service's account; nil if it was not asked, or does not
	// tell.
	Account *int64
	// Balances are what providers say is left.
	Balances []Balance
	// NoCallback means that the run needs an address for callbacks, and has
	// none.
	NoCallback bool
}

// Print writes the table.
func (p Plan) Print(to io.Writer) error {
	plan := p.Plan
	t := Table{Title: string(plan.Operation), minNames: len("never asked")}
	rows := "rows"
	if plan.Operation.IsKeyword() {
		rows = "searches"
	}
	t.Count(rows, plan.Rows, inputNames(p.Files, p.Sample))
	t.CountIfAny("not selected", plan.NotSelected, "by --where")
	t.CountIfAny("output rows", plan.OutputRows, "")
	t.Count("malformed", plan.Malformed, figures.Counts(plan.Reasons["malformed"]))
	t.Count("rejected", plan.Rejected, figures.Counts(plan.Reasons["rejected"]))
	t.CountIfAny("suppressed", plan.Suppressed, figures.Counts(plan.Reasons["suppressed"]))
	t.CountIfAny("read more", plan.More, "that identifier_text strict and --multiple reject would reject")
	t.CountIfAny("unusual", plan.Unusual, unusual)
	t.CountIfAny("recorded", plan.Recorded.Rows, "done already, in "+figures.Plural(plan.Recorded.Parts, "part"))
	t.CountIfAny("failed", plan.Failed, "of these rows; the run will exit with 3")
	if !plan.Complete {
		t.CountIfAny("no call", total(plan.Special), figures.Counts(plan.Special))
		t.Count("duplicates", plan.Duplicates, "")
		t.Count("keys", plan.Keys, "")
		if plan.Calls != nil {
			addPlannedCalls(&t, plan.Calls, plan.Resolvers != nil)
			if p.Account != nil {
				t.Text("account", AccountNote(*p.Account, plan.Calls.Credits))
			}
			for _, b := range p.Balances {
				t.Text("balance", b.Resolver+": "+b.Note())
			}
		}
	}
	p.addTexts(&t)
	t.Below = resolversGrid(plan.Resolvers)
	return t.Print(to)
}

// Balance is what a provider says is left.
type Balance struct {
	Resolver string `json:"resolver"`
	Left     int64  `json:"left"`
	// Counts is what is counted, if it is not the credits of prices.
	Counts string `json:"counts,omitempty"`
	// Needs are the credits that a plan costs at most.
	Needs int64 `json:"-"`
}

// Note compares a balance with the plan.
func (b Balance) Note() string {
	if b.Counts != "" {
		return fmt.Sprintf("%s %s, not compared: credits are counted otherwise", figures.Grouped(b.Left), b.Counts)
	}
	return AccountNote(b.Left, b.Needs)
}

// AccountNote compares the credits of an account with the most that a run costs.
func AccountNote(credits, atMost int64) string {
	if missing := atMost - credits; missing > 0 {
		return fmt.Sprintf("%s, up to %s too few: the run may stop; buy more, or set --max-credits", figures.Plural(credits, "credit"), figures.Grouped(missing))
	}
	return figures.Plural(credits, "credit") + ", enough"
}

// addPlannedCalls adds the calls and the keys by their state, if the run uses a
// service.
func addPlannedCalls(t *Table, c *pipeline.PlannedCalls, several bool) {
	calls, credits := "", "at most; leads that are not found cost nothing"
	switch {
	case several:
		calls, credits = "at most; see each resolver below", "at most"
	case c.Miss > 0:
		credits = fmt.Sprintf("at most, %d for each call; no match costs %d", c.Price, c.Miss)
	case c.Price > 0:
		credits = fmt.Sprintf("at most, %d for each call; no match costs nothing", c.Price)
	}
	if c.MorePages {
		calls, credits = "at least; more leads mean more pages", "at most for these pages; leads that are not found cost nothing"
	}
	t.Count("stored", c.Stored, "answered without a call")
	t.CountIfAny("stale", c.Stale, "stored, but too old or refused; looked up again")
	t.CountIfAny("judged anew", c.Changed, "stored, and something else by the rules of the entry today")
	t.CountIfAny("unknown", c.Unknown, "calls without an answer; they may have been billed")
	t.CountIfAny("parked", c.Parked, "calls whose answers have not arrived yet")
	t.CountIfAny("failed", c.Failed, "of the unknown calls; they are not sent again and their rows fail")
	t.CountIfAny("too old", c.TooOld, "of the failed; the service may have forgotten their idempotency keys")
	t.CountIfAny("skipped", c.Skipped, "not stored; --offline makes no calls")
	t.Count("calls", c.Calls, calls)
	t.Count("credits", c.Credits, credits)
}

func (p Plan) addTexts(t *Table) {
	plan := p.Plan
	if p.NoCallback {
		t.Text("callbacks", "the run needs --callback-url or --callback-listen")
	}
	switch {
	case plan.Complete && plan.Failed > 0:
		t.Text("to do", "nothing: the dataset is complete, except for failed rows")
	case plan.Complete:
		t.Text("to do", "nothing: the dataset is complete")
	case plan.Calls != nil && plan.Calls.Calls > 0:
		t.Text("time", planTime(plan, p.Rate))
		if text := BudgetNote(plan); text != "" {
			t.Text("budget", text)
		}
	}
	if plan.MixedCredits {
		t.Text("warning", "the budget of the job counts credits of several resolvers together, which may not be worth the same")
	}
	t.Text("files", planFiles(plan.Files, plan.Complete))
	t.Text("dataset", p.Out)
}

// planTime returns how long the calls take at the rate. The duration of a
// single call is not known in advance.
func planTime(p *pipeline.Plan, rate string) string {
	took := func(c *pipeline.PlannedCalls) time.Duration {
		return time.Duration(min(max(math.Round(c.Seconds), 1), math.MaxInt64/float64(time.Second))) * time.Second
	}
	if p.Resolvers != nil {
		slowest := p.Slowest()
		if slowest == nil {
			return "unknown without a rate for each resolver: as fast as they answer"
		}
		most := "at most"
		if slowest.Calls.Later {
			most = "or more"
		}
		unless := ""
		if slices.ContainsFunc(p.Resolvers, func(r pipeline.PlannedResolver) bool {
			return r.Calls != nil && r.Calls.Calls > 0 && r.Calls.Allowed == 0
		}) {
			unless = ", unless one allows less"
		}
		return fmt.Sprintf("about %s %s, at the rate of %s, the slowest%s", took(slowest.Calls), most, slowest.Name, unless)
	}
	rate, _, _ = strings.Cut(rate, " ") // without the burst
	c := p.Calls
	if rate == "0" { // the resolver has one of its own
		rate = figures.Decimal(c.Rate) + "/s"
	}
	switch {
	case c.Rate == 0:
		return "unknown without --rate: as fast as the service answers"
	case c.Allowed == 0:
		return fmt.Sprintf("about %s at %s, unless the service allows less", took(c), rate)
	case c.Rate == c.Allowed:
		return fmt.Sprintf("about %s at %s/s, which the service allows", took(c), figures.Decimal(c.Allowed))
	}
	return fmt.Sprintf("about %s at %s", took(c), rate)
}

// BudgetNote says which budgets are, or may be, too small; "" if none is.
func BudgetNote(p *pipeline.Plan) string {
	const then = ": the run would stop; raise the limit and run it again to resume"
	if p.Calls == nil || p.Calls.Calls == 0 {
		return ""
	}
	var may, certain []string
	add := func(c *pipeline.PlannedCalls, called func(name string) string) {
		for _, name := range c.Short {
			if slices.Contains(c.NotEnough, name) {
				certain = append(certain, called(name))
			} else {
				may = append(may, called(name))
			}
		}
	}
	add(p.Calls, func(name string) string {
		if name == "max_credits" || name == "max_calls" {
			return "--" + strings.ReplaceAll(name, "_", "-")
		}
		return name // a key of the job
	})
	for _, r := range p.Resolvers {
		if r.Calls != nil {
			add(r.Calls, func(name string) string { return name + " of " + r.Name })
		}
	}
	if len(certain)+len(may) == 0 {
		return ""
	}
	var texts []string
	switch len(certain) {
	case 0:
	case 1:
		texts = append(texts, certain[0]+" is not enough")
	default:
		texts = append(texts, strings.Join(certain, " and ")+" are not enough")
	}
	if len(may) > 0 {
		texts = append(texts, strings.Join(may, " and ")+" may not be enough")
	}
	return strings.Join(texts, ", ") + then
}

// resolversGrid has what each of several resolvers would be asked.
func resolversGrid(resolvers []pipeline.PlannedResolver) Grid {
	g := Grid{Heads: []string{"resolver", "keys", "stored", "calls", "credits", "counts", "expected"}, Notes: 2}
	for _, r := range resolvers {
		row := []string{r.Name, figures.Grouped(r.Keys), "", "", "", "exact", "free"}
		if r.AtMost {
			row[5] = "at most"
		}
		if c := r.Calls; c != nil {
			row[2], row[3], row[4], row[6] = figures.Grouped(c.Stored), figures.Grouped(c.Calls), figures.Grouped(c.Credits), expected(r)
		}
		g.Rows = append(g.Rows, row)
	}
	return g
}

// expected says what a resolver would be asked if others answer as the stored answers say.
func expected(r pipeline.PlannedResolver) string {
	switch e := r.Expected; {
	case e == nil && r.Calls.Calls == 0:
		return ""
	case e == nil:
		return "not known: too few answers are stored"
	default:
		return fmt.Sprintf("%s, %s, by %s", figures.Plural(e.Calls, "call"), figures.Plural(e.Credits, "credit"), figures.Plural(e.Answers, "stored answer"))
	}
}

func planFiles(f pipeline.PlannedFiles, complete bool) string {
	text := figures.Plural(f.Parts, "part")
	if f.Partitioned > 0 {
		text += " in " + figures.Plural(f.Partitioned, "file")
	}
	if f.Rejects > 0 {
		text += fmt.Sprintf(", %d of them with malformed lines", f.Rejects)
	}
	switch {
	case complete:
		return text + ", " + figures.Size(f.Bytes)
	case !f.AtLeast:
		return text + ", about " + figures.Size(f.Bytes)
	case f.Bytes > 0:
		return text + ", without answers about " + figures.Size(f.Bytes)
	}
	return text
}
