//go:build unix

package resolvers

import (
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/internal/testkit/badservice"
)

// TestRateOfDay: a limit a day can be used at once, and what earlier runs have asked counts: of a
// batch, the request.
func TestRateOfDay(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, rate   string
		batch        int
		first, asked int // keys
	}{
		{"calls", "[100/s, 10/day]", 0, 8, 10},
		{"keys", "[100/s, 12 keys/day]", 4, 8, 12},
		{"batches", "[100/s, 3/day]", 4, 8, 12},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			x := newOrder(t, profiles(c.first))
			o := badservice.DefaultProvider("acme")
			o.Batch = c.batch
			acme := x.starts(o)
			x.resolvers = []string{"acme: {key_file: ./key, rate: " + c.rate + "}"}
			x.run(cli.ExitDone)
			if n := len(acme.Ledger()); n != c.first {
				t.Fatalf("%d keys were asked, want %d", n, c.first)
			}
			x.write("in.csv", profiles(20))
			x.run(cli.ExitBudget, "--overwrite", "--max-duration", "2s")
			if n := len(acme.Ledger()); n != c.asked {
				t.Errorf("%d keys were asked, want %d", n, c.asked)
			}
		})
	}
	x := newOrder(t, profiles(1))
	o := badservice.DefaultProvider("bulk")
	o.Batch = 10
	x.starts(o)
	x.resolvers = []string{"bulk: {key_file: ./key, rate: 9 keys/day}"}
	if said := x.run(cli.ExitUsage); !strings.Contains(said, "rate is 9 keys, and a request to bulk has up to 10; ask for a higher limit") {
		t.Errorf("it says %s", said)
	}
}

// TestPlannedTime: the time of a plan counts requests, as the limit does, and looks for answers that
// come later.
func TestPlannedTime(t *testing.T) {
	t.Parallel()
	for _, f := range []struct {
		batch, polls int
		rate         string
		seconds      float64 // for 40 keys
	}{
		{0, 0, "4/s", 10},
		{5, 0, "4/s", 2},
		{5, 0, "10 keys/s", 4},
		{0, 1, "4/s", 20},
		{5, 1, "4/s", 4},
	} {
		o := badservice.DefaultProvider("one")
		o.Batch, o.Polls = f.batch, f.polls
		x := newOrder(t, profiles(40))
		x.starts(o)
		x.resolvers = []string{"one: {key_file: ./key, rate: " + f.rate + "}"}
		if c := x.plan().Calls; math.Abs(c.Seconds/f.seconds-1) > 0.01 || c.Later != (f.polls > 0) {
			t.Errorf("%+v: %g s, later %t", f, c.Seconds, c.Later)
		}
	}
}

// TestPlannedLimits: a plan asks each service of an order for its limit, and the slowest decides.
func TestPlannedLimits(t *testing.T) {
	t.Parallel()
	x := newOrder(t, profiles(40))
	x.starts(badservice.DefaultProvider("acme"))
	limited := func(requests int) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/account/balance" {
				t.Errorf("a plan asks for %s", r.URL.Path)
			}
			w.Header().Set("Api-Version", "1")
			fmt.Fprintf(w, `{"available":1000,"rate_limits":{"single":{"requests":%d,"seconds":1}}}`, requests)
		}))
		t.Cleanup(s.Close)
		return s.URL
	}
	for _, f := range []struct {
		first, second int
		rate, want    string
	}{
		{5, 2, "", "about 20s at most, at the rate of second, the slowest\n"},
		{2, 5, "", "about 20s at most, at the rate of first, the slowest\n"},
		{2, 5, "1/s", "about 40s at most, at the rate of second, the slowest\n"},
		{2, 0, "1/s", "about 40s at most, at the rate of second, the slowest, unless one allows less\n"},
	} {
		second := limited(f.second) + ": {key_file: ./key, name: second"
		if f.rate != "" {
			second += ", rate: " + f.rate
		}
		x.resolvers = []string{limited(f.first) + ": {key_file: ./key, name: first}", second + "}"}
		if plan := x.executes(cli.ExitDone, x.args("plan")...); !strings.Contains(plan, f.want) {
			t.Errorf("%d and %d a second, rate %q: %s lacks %q", f.first, f.second, f.rate, plan, f.want)
		}
	}
}
