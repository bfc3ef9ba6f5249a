//go:build unix

package resolvers

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/clitest"
	"github.com/leadetl/leadetl/internal/testkit/badservice"
	"github.com/leadetl/leadetl/pipeline/report"
)

// set gives a resolver a setting beside its key.
func (x *order) set(name, setting string) {
	x.Helper()
	for i, item := range x.resolvers {
		if item == name || strings.HasPrefix(item, name+": ") {
			x.resolvers[i] = name + ": {key_file: ./key, " + setting + "}"
			return
		}
	}
	x.Fatalf("no resolver %s", name)
}

func (x *order) isFinished() bool {
	_, err := os.Stat(x.path("out/_SUCCESS"))
	return err == nil
}

// TestBudgets: a resolver at the end of its budget leaves the rows that need it skipped, all others
// are made, the same command makes no call, and with more of it the dataset is that of no budget.
func TestBudgets(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, setting, more string
		of                  string // the budget's resolver; "" is all
		limit               int64
	}{
		{"of a provider by batches", "max_credits: 25", "max_credits: 1000", "bulk", 25},
		{"of its keys", "max_calls: 33", "max_calls: 1000", "bulk", 33},
		{"of one that answers later", "max_credits: 52", "max_credits: 1000", "slow", 52},
		{"of all", "max_credits: 100", "max_credits: 3000", "", 100},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			x := newFour(t, profiles(120), nil)
			keys := x.job
			set := func(setting string) {
				if c.of == "" {
					x.job = keys + setting + "\n"
				} else {
					x.set(c.of, setting)
				}
			}
			used := func() (n int64) {
				for name, ledger := range x.ledgers() {
					switch {
					case c.of != "" && c.of != name:
					case strings.HasPrefix(c.setting, "max_calls"):
						n += int64(len(ledger))
					default:
						n += badservice.SpentOf(ledger)
					}
				}
				return n
			}
			set(c.setting)
			said := x.run(cli.ExitBudget)
			if used() > c.limit || used() < c.limit-5 || x.isFinished() || c.of != "" && !strings.Contains(said, c.of) {
				t.Errorf("%d of %d are used; it is finished %v, and says\n%s", used(), c.limit, x.isFinished(), said)
			}
			d := clitest.ReadDataset(t, x.path("out"))
			skipped := 0
			reason := d.Column(t, "reason")
			for _, row := range d.Rows {
				if strings.HasPrefix(row[reason], "budget:") && (c.of == "" || row[reason] == "budget:"+c.of) {
					skipped++
				}
			}
			if skipped == 0 || skipped != d.Count(t, "outcome", "skipped") || skipped == len(d.Rows) || len(d.Rows) != 120 {
				t.Errorf("%d of %d rows are skipped for the budget, %d in all", skipped, len(d.Rows), d.Count(t, "outcome", "skipped"))
			}
			seen := x.seen()
			x.run(cli.ExitBudget)
			if x.seen() != seen {
				t.Errorf("the same command asks about %d keys more", x.seen()-seen)
			}
			set(c.more)
			x.run(cli.ExitDone)
			requireRows(t, x.path("out"), x.all)
			requireAccounts(t, x.path("out"), x.ledgers())
		})
	}
}

// TestCreditsOfDays: what all resolvers cost in so many days counts over the jobs of a state.
func TestCreditsOfDays(t *testing.T) {
	t.Parallel()
	x := newFour(t, profiles(40), func(_, slow *badservice.ProviderOptions, _ *badservice.Options) { slow.Polls = 0 })
	spent := func() (all int64) {
		for _, ledger := range x.ledgers() {
			all += badservice.SpentOf(ledger)
		}
		return all
	}
	x.run(cli.ExitDone)
	limit := spent() + 60
	x.write("in.csv", profiles(100))
	flags := []string{"--out", x.path("more"), "--set", "max_credits_per=" + fmt.Sprintf("30d=%d", limit)}
	if said := x.run(cli.ExitBudget, flags...); spent() > limit || spent() < limit-5 || !strings.Contains(said, fmt.Sprint("max_credits_per 30d=", limit)) {
		t.Errorf("%d credits are spent of %d; it says\n%s", spent(), limit, said)
	}
	before := spent()
	x.run(cli.ExitBudget, flags...)
	if spent() != before {
		t.Errorf("%d credits more are spent", spent()-before)
	}
	x.run(cli.ExitDone, "--out", x.path("more"), "--set", "max_credits_per=30d=100000")
	requireRows(t, x.path("more"), x.all)
	for name, ledger := range x.ledgers() {
		requireOnce(t, name, ledger)
	}
}

// TestNoCredits: an account that is empty stops its resolver alone.
func TestNoCredits(t *testing.T) {
	t.Parallel()
	x := newFour(t, profiles(60), func(bulk, _ *badservice.ProviderOptions, _ *badservice.Options) { bulk.Credits = 20 })
	x.run(cli.ExitBudget)
	d := clitest.ReadDataset(t, x.path("out"))
	if d.Count(t, "reason", "no_credits:bulk") == 0 || d.Count(t, "reason", "no_credits:bulk") != d.Count(t, "outcome", "skipped") || x.isFinished() {
		t.Errorf("%d rows are skipped for want of credits, %d in all", d.Count(t, "reason", "no_credits:bulk"), d.Count(t, "outcome", "skipped"))
	}
	x.bulk.Grant(1000)
	x.run(cli.ExitDone)
	requireRows(t, x.path("out"), x.all)
	requireAccounts(t, x.path("out"), x.ledgers())
}

// TestOutage: keys wait for a resolver that is away, the others are asked on, and the same command
// finishes.
func TestOutage(t *testing.T) {
	t.Parallel()
	x := newFour(t, profiles(60), nil)
	x.stop(x.slow)
	said := x.run(cli.ExitTryAgain, "--set", "give_up_after=1s")
	d := clitest.ReadDataset(t, x.path("out"))
	if n := d.Count(t, "reason", "unavailable:slow"); n == 0 || n != d.Count(t, "outcome", "skipped") || n == len(d.Rows) || x.isFinished() || !strings.Contains(said, "slow") {
		t.Errorf("%d rows of %d are skipped for the outage, %d in all:\n%s", n, len(d.Rows), d.Count(t, "outcome", "skipped"), said)
	}
	if len(x.bulk.Ledger()) < 50 || len(x.slow.Ledger()) > 0 {
		t.Errorf("%d and %d keys are asked", len(x.bulk.Ledger()), len(x.slow.Ledger()))
	}
	x.start(x.slow)
	x.run(cli.ExitDone)
	requireRows(t, x.path("out"), x.all)
	requireAccounts(t, x.path("out"), x.ledgers())
}

func (x *order) stop(p *badservice.Provider) {
	x.Helper()
	if err := p.Stop(); err != nil {
		x.Fatal(err)
	}
}

func (x *order) start(p *badservice.Provider) {
	x.Helper()
	if _, err := p.Start(); err != nil {
		x.Fatal(err)
	}
}

// TestElseNext: rows that went on without a resolver say so, and the next run of the same command heals
// them: then the dataset is that of no outage.
func TestElseNext(t *testing.T) {
	t.Parallel()
	x := newFour(t, profiles(60), nil)
	x.set("slow", "else: next")
	x.stop(x.slow)
	said := x.run(cli.ExitDone, "--set", "give_up_after=1s")
	d := clitest.ReadDataset(t, x.path("out"))
	passed := d.Count(t, "resolvers_skipped", "slow:unavailable")
	if passed == 0 || !x.isFinished() || d.Count(t, "outcome", "skipped") > 0 || !strings.Contains(said, fmt.Sprint(passed, " rows")) {
		t.Errorf("%d rows went on:\n%s", passed, said)
	}
	x.run(cli.ExitDone, "--out", x.path("again"), "--offline")
	clitest.RequireSameRows(t, clitest.ReadDataset(t, x.path("again")), d, "resolvers_skipped") // stored answers do not say why one is not there
	x.start(x.slow)
	x.run(cli.ExitDone)
	requireRows(t, x.path("out"), x.all)
	requireOnce(t, "leads", ledgerOf(x.leads)) // some of these answers do not count any more
	requireAccounts(t, x.path("out"), map[string][]badservice.Asked{"bulk": x.bulk.Ledger(), "slow": x.slow.Ledger()})
	if n := clitest.ReadDataset(t, x.path("out")).Count(t, "resolvers_skipped", "slow:unavailable"); n > 0 {
		t.Errorf("%d rows say that they went on", n)
	}
	seen := x.seen()
	x.run(cli.ExitDone)
	if x.seen() != seen {
		t.Errorf("%d calls of a job that is done", x.seen()-seen)
	}
}

// TestUnknown: a call that may have been billed stops its key, is listed with its resolver, and sent
// once more with --retry-unknown: no other is.
func TestUnknown(t *testing.T) {
	t.Parallel()
	x := newFour(t, profiles(120), func(bulk, slow *badservice.ProviderOptions, _ *badservice.Options) {
		bulk.Faults = badservice.ProviderFaults{Missing: 0.05, Twice: 0.05, ResetAfter: 0.1, Shuffled: 0.5}
		slow.Faults = badservice.ProviderFaults{Failed: 0.05, ResetBefore: 0.05, Truncated: 0.05, Lost: 0.05, Stumbles: 0.2}
	})
	x.run(cli.ExitRejects)
	d := clitest.ReadDataset(t, x.path("out"))
	of := map[string]int{"bulk": d.Count(t, "reason", "unknown_call:bulk"), "slow": d.Count(t, "reason", "unknown_call:slow")}
	if of["bulk"] == 0 || of["slow"] == 0 || of["bulk"]+of["slow"] != d.Count(t, "outcome", "failed") || !x.isFinished() {
		t.Errorf("%v rows of unknown calls, %d failed", of, d.Count(t, "outcome", "failed"))
	}
	listed := clitest.Run(t, "answers", "list", "--unknown", "--json", "--state", x.path("state"))
	before := map[string]map[string]int{}
	for name, n := range of {
		if got := strings.Count(listed, `"service":"`+name+`"`); got != n {
			t.Errorf("%d unknown calls of %s are listed, want %d:\n%s", got, name, n, listed)
		}
		before[name] = map[string]int{}
		for _, a := range x.ledgers()[name] {
			before[name][a.Key]++
		}
	}
	unknown := map[string]string{} // by key
	for _, row := range d.Rows {
		if name, is := strings.CutPrefix(row[d.Column(t, "reason")], "unknown_call:"); is {
			unknown[row[d.Column(t, "key")]] = name
		}
	}
	for name, ledger := range x.ledgers() {
		requireOnce(t, name, ledger)
	}
	x.run(cli.ExitRejects)
	x.bulk.SetFaults(badservice.ProviderFaults{})
	x.slow.SetFaults(badservice.ProviderFaults{})
	x.run(cli.ExitDone, "--retry-unknown")
	for name, keys := range before {
		after := map[string]int{}
		for _, a := range x.ledgers()[name] {
			after[a.Key]++
		}
		for key, times := range after {
			want := keys[key]
			if unknown[key] == name {
				want++
			}
			if times != want && keys[key] > 0 {
				t.Errorf("%s is asked about %s %d times, want %d", name, key, times, want)
			}
		}
	}
	requireRows(t, x.path("out"), x.all)
}

// TestLaterInPart: a batch that comes later without some of its keys leaves these parked: no other
// resolver is asked for them, an offline run says the same, and they are not asked again. When the
// provider says that the answer is gone they are unknown.
func TestLaterInPart(t *testing.T) {
	t.Parallel()
	x := newFour(t, profiles(60), func(_, slow *badservice.ProviderOptions, _ *badservice.Options) {
		slow.Batch, slow.Costs, slow.Faults = 6, "body", badservice.ProviderFaults{Missing: 0.1, Twice: 0.1}
	})
	entries, err := os.ReadFile(x.path("providers.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	x.write("providers.yaml", strings.Replace(string(entries), "wait: 10m", "wait: 3s", 1))
	x.run(cli.ExitRejects)
	out := x.path("out")
	missing := clitest.ReadDataset(t, out).Count(t, "reason", "no_callback:slow")
	if parked := strings.Count(clitest.Run(t, "answers", "list", "--parked", "--json", "--state", x.path("state")), `"service":"slow"`); missing == 0 || parked != missing {
		t.Errorf("%d rows wait, %d calls are parked", missing, parked)
	}
	x.run(cli.ExitRejects, "--out", x.path("again"), "--offline")
	clitest.RequireSameFiles(t, x.path("again"), out)
	seen := x.seen()
	x.slow.Forget()
	x.run(cli.ExitRejects)
	if n := clitest.ReadDataset(t, out).Count(t, "reason", "unknown_call:slow"); n != missing || x.seen() != seen {
		t.Errorf("%d of %d calls are unknown, %d keys are asked about", n, missing, x.seen()-seen)
	}
	x.slow.SetFaults(badservice.ProviderFaults{})
	x.run(cli.ExitDone, "--retry-unknown")
	requireRows(t, out, x.all)
}

// TestPromisedInABudget: a plan awaits what a killed run was promised, and a run gets it although
// its budget is used up.
func TestPromisedInABudget(t *testing.T) {
	t.Parallel()
	slow := badservice.DefaultProvider("slow")
	slow.Polls, slow.Match, slow.NoMatch = 1, 3, 3
	x := newOrder(t, profiles(40))
	p := x.starts(slow)
	x.resolvers = []string{"slow: {key_file: ./key, max_credits: 12}"}
	killed := clitest.StartProgram(t, x.args("run")...)
	for parked := 0; parked < 4 && !killed.Ended(); time.Sleep(5 * time.Millisecond) {
		parked = len(p.Ledger())
	}
	time.Sleep(200 * time.Millisecond) // the promise comes, and the first look is a second later
	killed.Kill()
	if calls := x.plan().Calls; calls.Awaited != calls.Parked || calls.Awaited == 0 || calls.Failed > 0 {
		t.Errorf("of %d parked calls %d are awaited, %d keys fail", calls.Parked, calls.Awaited, calls.Failed)
	}
	if list := clitest.Run(t, "answers", "list", "--parked", "--json", "--state", x.path("state")); strings.Contains(list, "resolution_id") || !strings.Contains(list, `"idempotency_key":""`) {
		t.Errorf("the list has what no provider is sent, or says: %s", list)
	}
	x.run(cli.ExitBudget)
	if listed := strings.Count(clitest.Run(t, "answers", "list", "--parked", "--json", "--state", x.path("state")), "\n"); listed > 0 || len(p.Ledger()) != 4 {
		t.Errorf("%d calls are parked, %d keys were asked about", listed, len(p.Ledger()))
	}
}

// TestWrongKey: the run stops, and names the resolver.
func TestWrongKey(t *testing.T) {
	t.Parallel()
	x := newFour(t, profiles(60), nil)
	x.slow.Deny(true)
	said := x.run(cli.ExitUsage)
	if !strings.Contains(said, "slow") || x.isFinished() || strings.Contains(said, clitest.RemoteKey) {
		t.Errorf("it says\n%s", said)
	}
	var made report.Report
	data, err := os.ReadFile(x.path("out/_report.json"))
	if err != nil || json.Unmarshal(data, &made) != nil {
		t.Fatal(err)
	}
	if bulk := made.Resolvers[1]; bulk.Name != "bulk" || bulk.Credits != badservice.SpentOf(x.bulk.Ledger()) || bulk.Credits != bulk.Service.Budget.Credits || bulk.Credits == 0 || bulk.Matched == 0 || bulk.Asked <= bulk.Matched {
		t.Errorf("bulk was asked for %d credits; the report has %+v", badservice.SpentOf(x.bulk.Ledger()), bulk.ResolverTotals)
	}
	if n := len(x.slow.Ledger()); n > 20 {
		t.Errorf("%d calls with a wrong key", n)
	}
	x.slow.Deny(false)
	x.run(cli.ExitDone)
	requireRows(t, x.path("out"), x.all)
	requireAccounts(t, x.path("out"), x.ledgers())
}

// TestMinMatch: a resolver with too few matches among its first keys is not asked about the others.
func TestMinMatch(t *testing.T) {
	t.Parallel()
	x := newOrder(t, profiles(1500))
	poor, good := badservice.DefaultProvider("poor"), badservice.DefaultProvider("good")
	poor.Batch, poor.Matched = 50, 0.05
	good.Batch, good.Matched, good.Email, good.Phone = 50, 1, 1, 1
	first, second := x.starts(poor), x.starts(good)
	x.resolvers = []string{"poor", "good"}
	x.set("poor", "min_match: 10%")
	x.run(cli.ExitDone)
	d := clitest.ReadDataset(t, x.path("out"))
	if asked, over := len(first.Ledger()), d.Count(t, "resolvers_skipped", "poor:min_match"); asked != 1000 || over != 500 {
		t.Errorf("%d keys are asked about, %d go to the next", asked, over)
	}
	x.run(cli.ExitDone)
	x.run(cli.ExitDone, "--out", x.path("again"), "--offline")
	clitest.RequireSameFiles(t, x.path("again"), x.path("out"))
	if len(first.Ledger()) != 1000 || len(second.Ledger()) > 1500 {
		t.Errorf("%d and %d keys are asked about", len(first.Ledger()), len(second.Ledger()))
	}
}

// TestMinMatchOfFewKeys: a dataset with fewer keys than decide is finished without a verdict. The same command
// changes nothing and calls nobody, and a part that is made again is the same, however few matched.
func TestMinMatchOfFewKeys(t *testing.T) {
	t.Parallel()
	x := newOrder(t, profiles(60))
	poor, good := badservice.DefaultProvider("poor"), badservice.DefaultProvider("good")
	poor.Matched, good.Matched, good.Email, good.Phone = 0.05, 1, 1, 1
	first, second := x.starts(poor), x.starts(good)
	x.resolvers = []string{"poor", "good"}
	x.set("poor", "min_match: 90%")
	flags := []string{"--set", "rows_per_part=20"}
	x.run(cli.ExitDone, flags...)
	before := filepath.Join(t.TempDir(), "before")
	if err := os.CopyFS(before, os.DirFS(x.path("out"))); err != nil {
		t.Fatal(err)
	}
	calls := len(first.Ledger()) + len(second.Ledger())
	x.run(cli.ExitDone, flags...)
	if err := os.Remove(filepath.Join(x.path("out"), "part-00001.parquet")); err != nil {
		t.Fatal(err)
	}
	x.run(cli.ExitDone, flags...)
	clitest.RequireSameFiles(t, x.path("out"), before)
	if asked := len(first.Ledger()) + len(second.Ledger()); asked != calls || len(first.Ledger()) != 60 {
		t.Errorf("%d keys are asked about, then %d, want as many; %d by the first, want 60", calls, asked, len(first.Ledger()))
	}
}

// TestVerifier: it is asked once about each value, over providers and nights, and what it refuses is
// looked for at the next.
func TestVerifier(t *testing.T) {
	t.Parallel()
	x := newOrder(t, profiles(60))
	finder, checker, last := badservice.DefaultProvider("finder"), badservice.DefaultProvider("checker"), badservice.DefaultProvider("last")
	finder.Email, checker.Checks, checker.Matched, last.Email, last.Matched = 1, true, 0.6, 1, 1
	find, check, next := x.starts(finder), x.starts(checker), x.starts(last)
	x.job = strings.Replace(x.job, "[email, phone]", "[email]", 1)
	x.resolvers = []string{"finder", "checker", "last"}
	x.set("checker", "accept: {email_status: [valid]}")
	for _, night := range []int{60, 100} {
		x.write("in.csv", profiles(night))
		x.run(cli.ExitDone, "--overwrite")
		d := clitest.ReadDataset(t, x.path("out"))
		values, missing := 0, 0
		for i, row := range d.Rows {
			email, _, matched := find.Says(row[d.Column(t, "key")])
			by := "finder"
			if matched {
				values++
			}
			if !matched || !check.IsValid(email) {
				email, _, _ = next.Says(row[d.Column(t, "key")])
				by = "last"
				missing++
			}
			if got := row[d.Column(t, "email")]; got != email || row[d.Column(t, "email_answered_by")] != by {
				t.Errorf("row %d has %s of %s, want %s of %s", i+1, got, row[d.Column(t, "email_answered_by")], email, by)
			}
		}
		if asked := len(check.Ledger()); asked != values || len(next.Ledger()) != missing || missing == 0 || missing == night {
			t.Errorf("%d values are verified, want %d; %d keys go to the last, want %d", asked, values, len(next.Ledger()), missing)
		}
		requireOnce(t, "checker", check.Ledger())
		requireAccounts(t, x.path("out"), map[string][]badservice.Asked{"finder": find.Ledger(), "checker": check.Ledger(), "last": next.Ledger()})
	}
}
