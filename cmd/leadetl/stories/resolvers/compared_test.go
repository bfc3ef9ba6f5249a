//go:build unix

package resolvers

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/clitest"
	"github.com/leadetl/leadetl/internal/testkit/badservice"
	compared "github.com/leadetl/leadetl/pipeline/order"
)

// TestCompareOrders: a sample asks all resolvers about the same keys, once, within its budget. By their answers a plan
// names the order that would have been the cheapest; the dataset of the job stays as it is.
func TestCompareOrders(t *testing.T) {
	t.Parallel()
	x := newOrder(t, profiles(400))
	x.job = strings.Replace(x.job, "[email, phone]", "[email]", 1)
	providers := map[string]*badservice.Provider{}
	for name, price := range map[string]int64{"dear": 8, "cheap": 1} {
		o := badservice.DefaultProvider(name)
		o.Matched, o.Email, o.Match, o.NoMatch = 0.7, 1, price, 0
		providers[name] = x.starts(o)
	}
	x.resolvers = []string{"dear", "cheap"}
	sample := []string{"--sample", "300", "--ask-all"}
	with := func(more ...string) []string { return append(slices.Clone(sample), more...) }

	for _, f := range []struct {
		flags []string
		says  string
	}{
		{sample, "--ask-all pays every resolver for every key: set a budget"},
		{[]string{"--ask-all", "--max-credits", "9"}, "--ask-all needs --sample"},
	} {
		if said := x.run(cli.ExitUsage, f.flags...); !strings.Contains(said, f.says) {
			t.Errorf("%v says %q, want %q", f.flags, said, f.says)
		}
	}
	if said := x.executes(cli.ExitDone, x.args("plan", with("--max-credits", "5000")...)...); !strings.Contains(said, "dear       300       0    300    2,400  exact") || !strings.Contains(said, "cheap      300       0    300      300  exact") {
		t.Errorf("the plan of a sample that asks all says\n%s", said)
	}
	x.run(cli.ExitBudget, with("--max-credits", "700")...)
	x.run(cli.ExitDone, with("--max-credits", "5000")...)
	for name, p := range providers {
		if asked := p.Ledger(); len(asked) != 300 {
			t.Errorf("%s was asked %d questions, want 300", name, len(asked))
		}
	}
	x.executes(cli.ExitDone, "verify", x.path("out"))

	x.resolvers = []string{"dear", "cheap: {key_file: ./key, min_match: 90%}"}
	var got compared.Comparison
	if err := json.Unmarshal([]byte(clitest.Run(t, x.args("plan", "--sample", "300", "--orders", "--json")...)), &got); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"cheap", "cheap dear"} {
		if o := got.Orders[i]; strings.Join(o.Resolvers, " ") != want || !o.Cheapest || o.Keys != 300 {
			t.Errorf("order %d is %+v, want %s", i, o, want)
		}
	}
	if got.Keys != 300 || got.All != 300 || got.Some != 0 || len(got.Orders) != 4 {
		t.Errorf("compared by %+v", got)
	}
	table := clitest.Run(t, x.args("plan", "--orders")...)
	for _, line := range []string{"  keys          400", "  asked of all  300", "cheap, dear   300", "the job's, not the cheapest"} {
		if !strings.Contains(table, line) {
			t.Errorf("the table lacks %q:\n%s", line, table)
		}
	}
	x.resolvers = []string{"cheap"}
	if said := x.executes(cli.ExitUsage, x.args("plan", "--orders")...); !strings.Contains(said, "--orders compares orders of several resolvers") {
		t.Errorf("a plan of a single one says %q", said)
	}
}
