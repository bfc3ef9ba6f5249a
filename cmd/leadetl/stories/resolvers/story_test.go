//go:build unix

package resolvers

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/clitest"
	"github.com/leadetl/leadetl/internal/testkit/badservice"
)

// four is an order of own reference data, a provider by batches, one that answers later and a service
// of the interface.
type four struct {
	*order
	bulk, slow *badservice.Provider
	leads      *badservice.Service
	known      []known
}

var owned = []int{1, 2, 3, 5, 8, 13, 21}

// newFour starts them; change may be nil.
func newFour(t testing.TB, list string, change func(bulk, slow *badservice.ProviderOptions, leads *badservice.Options)) *four {
	t.Helper()
	bulk, slow, leads := badservice.DefaultProvider("bulk"), badservice.DefaultProvider("slow"), badservice.DefaultOptions()
	bulk.Batch, bulk.Matched, bulk.Match = 10, 0.6, 2
	slow.Polls, slow.Match, slow.NoMatch, slow.Costs = 1, 5, 1, "header"
	leads.HonourKeys = false
	if change != nil {
		change(&bulk, &slow, &leads)
	}
	x := &four{order: newOrder(t, list)}
	x.owns(owned...)
	x.bulk, x.slow = x.starts(bulk), x.starts(slow)
	var url string
	x.leads, url = clitest.StartService(t, leads)
	x.resolvers = []string{"directory: ./own", "bulk", "slow", url + ": {key_file: ./key, name: leads}"}
	x.known = []known{ownsSome(owned...), provides("bulk", x.bulk, bulk.Match, bulk.NoMatch), provides("slow", x.slow, slow.Match, slow.NoMatch), serves("leads", x.leads)}
	return x
}

func (x *four) ledgers() map[string][]badservice.Asked {
	return map[string][]badservice.Asked{"bulk": x.bulk.Ledger(), "slow": x.slow.Ledger(), "leads": ledgerOf(x.leads)}
}

// all are the resolvers that a key is asked of.
func (x *four) all(string) []known { return x.known }

// seen is how many keys were asked about, of all.
func (x *four) seen() (n int) {
	for _, ledger := range x.ledgers() {
		n += len(ledger)
	}
	return n
}

// TestOrder: rows, what was asked, ledgers and accounts are what the rule of an order says. The
// dataset is made again of what is stored, byte for byte, and in another order without a call.
func TestOrder(t *testing.T) {
	t.Parallel()
	x := newFour(t, profiles(120)+"nobody\nnetwork.example/in/Person-7\nhttps://www.network.example/in/person-3?x=y\n", nil)
	x.run(cli.ExitDone)
	out := x.path("out")
	requireRows(t, out, x.all)
	requireAccounts(t, out, x.ledgers())
	if requests := x.bulk.Requests(); requests > 20 {
		t.Errorf("%d requests for %d keys in batches of 10", requests, len(x.bulk.Ledger()))
	}

	seen := x.seen()
	x.run(cli.ExitDone, "--out", x.path("again"), "--offline")
	clitest.RequireSameFiles(t, x.path("again"), out)
	x.run(cli.ExitDone) // nothing to do
	x.resolvers[1], x.resolvers[3] = x.resolvers[3], x.resolvers[1]
	x.run(cli.ExitDone, "--out", x.path("other"))
	if x.seen() != seen {
		t.Errorf("%d keys were asked about once more", x.seen()-seen)
	}
	other := clitest.ReadDataset(t, x.path("other"))
	if other.Count(t, "answered_by", "leads") <= clitest.ReadDataset(t, out).Count(t, "answered_by", "leads") {
		t.Error("another order makes the same rows")
	}

	// Another template is another question, and another entry another job.
	x.resolvers[1], x.resolvers[3] = x.resolvers[3], x.resolvers[1]
	entries, err := os.ReadFile(x.path("providers.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	x.write("providers.yaml", strings.Replace(string(entries), `"POST /v1/bulk"`, `"POST /v1/bulk?v=2"`, 1))
	if said := x.run(cli.ExitUsage); !strings.Contains(said, "--overwrite") || x.seen() != seen {
		t.Errorf("%d calls, and the other job says\n%s", x.seen()-seen, said)
	}
	bulk := len(x.bulk.Ledger())
	x.run(cli.ExitDone, "--overwrite")
	passed := 0
	for _, a := range x.bulk.Ledger()[:bulk] {
		if passes(a.Key, x.known, "bulk") {
			passed++
		}
	}
	if again := len(x.bulk.Ledger()) - bulk; again != bulk-passed || passed == 0 || x.seen() != seen+again {
		t.Errorf("%d of %d keys are asked about with another template, and %d others; want %d", again, bulk, x.seen()-seen-again, bulk-passed)
	}
	requireRows(t, out, func(key string) []known {
		if passes(key, x.known, "bulk") {
			return slices.Concat(x.known[:1], x.known[2:])
		}
		return x.known
	})
}
