package badservice

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leadetl/leadetl/internal/secret"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/provider"
)

// asks starts a provider, and returns a client that knows it by its entry.
func asks(t *testing.T, o ProviderOptions) (*Provider, *provider.Client) {
	t.Helper()
	o.Key = "k"
	p, err := NewProvider(o)
	if err != nil {
		t.Fatal(err)
	}
	url, err := p.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	entries, err := provider.Parse("p.yaml", []byte(p.Entry(url)))
	if err != nil {
		t.Fatalf("%v\n%s", err, p.Entry(url))
	}
	settings := provider.DefaultOptions()
	settings.Key = secret.New("k")
	c, err := provider.New(entries[o.Name], settings)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return p, c
}

// readAll is what a client reads of the answers about some keys, in a word each.
func readAll(t *testing.T, c *provider.Client, n int) (said []string) {
	t.Helper()
	var calls []resolution.Call
	for i := range n {
		calls = append(calls, resolution.Call{Request: resolution.Request{Operation: resolution.Enrichment, Key: fmt.Sprintf("network.example/in/person-%d", i)}})
	}
	results := c.DoBatch(t.Context(), calls)
	for range 5 {
		var ids []string
		for _, r := range results {
			if r.Err == nil && r.Reply.Pending {
				ids = append(ids, r.Reply.ID)
			}
		}
		if len(ids) == n {
			results = c.PollBatch(t.Context(), calls, ids)
		}
	}
	for _, r := range results {
		failed, is := errors.AsType[*resolution.CallError](r.Err)
		switch {
		case is && failed.Billed():
			said = append(said, "unknown")
		case is:
			said = append(said, string(failed.Class))
		case r.Reply.Pending:
			said = append(said, "pending")
		case r.Reply.Found.Matched():
			said = append(said, fmt.Sprint("match ", *r.Reply.Spent))
		default:
			said = append(said, fmt.Sprint("miss ", *r.Reply.Spent))
		}
	}
	return said
}

// TestProviderShapes: a client reads the same from every shape, the fates that it has to bear are what
// they are called, and the ledger has each key once.
func TestProviderShapes(t *testing.T) {
	const unknowns = "unknown unknown unknown unknown"
	batch := func(by By) func(*ProviderOptions) {
		return func(o *ProviderOptions) { o.Batch, o.By = 4, by }
	}
	for _, f := range []struct {
		name   string
		shape  func(*ProviderOptions)
		faults ProviderFaults
		keys   int
		want   string
		billed int
	}{
		{"one at a time", func(*ProviderOptions) {}, ProviderFaults{}, 1, "match 2", 1},
		{"by ref", batch(ByRef), ProviderFaults{}, 4, "match 2 match 2 match 2 match 2", 4},
		{"by position", batch(ByPosition), ProviderFaults{}, 4, "match 2 match 2 match 2 match 2", 4},
		{"by name", batch(ByName), ProviderFaults{}, 4, "match 2 match 2 match 2 match 2", 4},
		{"by header", func(o *ProviderOptions) { o.Batch, o.Costs = 4, "header" }, ProviderFaults{}, 4, "match 2 match 2 match 2 match 2", 4},
		{"without a cost", func(o *ProviderOptions) { o.Batch, o.Costs = 4, "" }, ProviderFaults{}, 4, "match 2 match 2 match 2 match 2", 4},
		{"later", func(o *ProviderOptions) { o.Polls = 2 }, ProviderFaults{}, 1, "match 2", 1},
		{"a batch later", func(o *ProviderOptions) { o.Polls, o.Batch = 2, 4 }, ProviderFaults{}, 4, "match 2 match 2 match 2 match 2", 4},
		{"misses", func(o *ProviderOptions) { o.Matched, o.Batch = 0, 4 }, ProviderFaults{}, 4, "miss 1 miss 1 miss 1 miss 1", 4},
		{"bad rows", func(o *ProviderOptions) { o.BadRow, o.Batch = 1, 4 }, ProviderFaults{}, 4, "invalid invalid invalid invalid", 0},
		{"no credits", func(o *ProviderOptions) { o.Credits, o.Batch = 5, 4 }, ProviderFaults{}, 4, "match 2 match 2 no_credits no_credits", 2},
		{"limited", batch(ByRef), ProviderFaults{Limited: 1}, 4, "limited limited limited limited", 0},
		{"unavailable", batch(ByRef), ProviderFaults{Unavailable: 1}, 4, "unavailable unavailable unavailable unavailable", 0},
		{"reset before", batch(ByRef), ProviderFaults{ResetBefore: 1}, 4, unknowns, 0},
		{"each request is billed", func(o *ProviderOptions) { o.Batch, o.BillsRetries = 4, true }, ProviderFaults{ResetBefore: 1}, 4, unknowns, 4},
		{"failed", batch(ByRef), ProviderFaults{Failed: 1}, 4, unknowns, 4},
		{"reset after", batch(ByRef), ProviderFaults{ResetAfter: 1}, 4, unknowns, 4},
		{"truncated", batch(ByRef), ProviderFaults{Truncated: 1}, 4, unknowns, 4},
		{"shuffled, by ref", batch(ByRef), ProviderFaults{Shuffled: 1}, 4, "match 2 match 2 match 2 match 2", 4},
		{"shuffled, by position", batch(ByPosition), ProviderFaults{Shuffled: 1}, 4, unknowns, 4},
		{"short, by ref", batch(ByRef), ProviderFaults{Short: 1}, 4, "unknown match 2 match 2 match 2", 4},
		{"short, by position", batch(ByPosition), ProviderFaults{Short: 1}, 4, unknowns, 4},
		{"foreign", batch(ByRef), ProviderFaults{Foreign: 1}, 4, unknowns, 4},
		{"twice", batch(ByRef), ProviderFaults{Twice: 1}, 4, unknowns, 4},
		{"missing", batch(ByName), ProviderFaults{Missing: 1}, 4, unknowns, 4},
		{"waits", batch(ByRef), ProviderFaults{Waits: 1}, 4, "limited limited limited limited", 0},
		{"shuffled and later, by position", func(o *ProviderOptions) { o.Polls, o.Batch, o.By = 1, 4, ByPosition }, ProviderFaults{Shuffled: 1}, 4, "pending pending pending pending", 4},
		{"lost", func(o *ProviderOptions) { o.Polls = 1 }, ProviderFaults{Lost: 1}, 1, "unknown", 1},
	} {
		t.Run(f.name, func(t *testing.T) {
			o := DefaultProvider("acme")
			o.Matched, o.Match, o.NoMatch, o.Faults = 1, 2, 1, f.faults
			o.Ledger = filepath.Join(t.TempDir(), "ledger")
			f.shape(&o)
			p, c := asks(t, o)
			if got := strings.Join(readAll(t, c, f.keys), " "); got != f.want {
				t.Errorf("%s, want %s", got, f.want)
			}
			kept, err := ReadLedger(o.Ledger)
			if bills := Bills(p.Ledger()); err != nil || len(bills) != f.billed || !maps.Equal(bills, Bills(kept)) || len(kept) != f.keys {
				t.Errorf("ledger %+v, kept %+v, %v; want %d bills", p.Ledger(), kept, err, f.billed)
			}
		})
	}
}
