//go:build unix

package resolvers

import (
	"os"
	"strings"
	"testing"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/internal/testkit/badservice"
)

// TestOverPrice: answers that cost more than the price of the entry are booked in full, later calls
// hold what they cost, and the report counts them. A resolver with strict stops at the first.
func TestOverPrice(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		settings string
		spent    int64
		over     string
		says     string
	}{
		{"max_credits: 20", 18, `"over_price":6`, "leadetl: the budget is too small for one more call: max_credits of acme 20, 18 spent; 2 left, and the call may cost 3; raise the limit"},
		{"strict: true", 3, `"over_price":1`, "leadetl: an answer cost 3 credits, more than its price of 1, and strict stops then; correct the price in the entry of the provider, or leave out strict"},
	} {
		x := newOrder(t, profiles(12))
		o := badservice.DefaultProvider("acme")
		o.Matched, o.Match = 1, 3
		acme := x.starts(o)
		entries, err := os.ReadFile(x.path("providers.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		x.write("providers.yaml", strings.Replace(string(entries), "{match: 3,", "{match: 1,", 1))
		x.resolvers = []string{"acme: {key_file: ./key, concurrency: 1, " + c.settings + "}"}
		said := x.run(cli.ExitBudget)
		if spent := badservice.SpentOf(acme.Ledger()); spent != c.spent || !strings.Contains(said, c.says) {
			t.Errorf("%s: %d credits are spent, want %d; it says\n%s", c.settings, spent, c.spent, said)
		}
		made, err := os.ReadFile(x.path("out/_report.json"))
		if err != nil || !strings.Contains(strings.ReplaceAll(string(made), " ", ""), c.over) {
			t.Errorf("%s: the report lacks %s (%v)", c.settings, c.over, err)
		}
		x.resolvers = []string{"acme: {key_file: ./key}"}
		x.run(cli.ExitDone)
		if spent := badservice.SpentOf(acme.Ledger()); spent != 36 {
			t.Errorf("%s: %d credits are spent in the end, want 36", c.settings, spent)
		}
	}
}
