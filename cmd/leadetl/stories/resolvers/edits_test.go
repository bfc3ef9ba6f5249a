//go:build unix

package resolvers

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/internal/testkit/badservice"
)

// edit replaces text in the entries.
func (x *order) edit(from, to string) {
	x.Helper()
	entries, err := os.ReadFile(x.path("providers.yaml"))
	if err != nil || !strings.Contains(string(entries), from) {
		x.Fatalf("no %q in the entries: %v", from, err)
	}
	x.write("providers.yaml", strings.Replace(string(entries), from, to, 1))
}

// TestEditedEntry: an edit of what answers mean is free. One of the request asks anew, which plan and
// run say as long as it has something to buy.
func TestEditedEntry(t *testing.T) {
	t.Parallel()
	x := newOrder(t, profiles(20))
	o := badservice.DefaultProvider("northwind")
	o.Batch, o.Matched = 10, 1
	p := x.starts(o)
	x.resolvers = []string{"northwind"}
	x.run(cli.ExitDone)
	const says = "20 answers of northwind are stored for another form of its request; they are not used, and what is needed of them is bought again"
	expect := func(said string, calls int, warned bool) {
		t.Helper()
		if n := len(p.Ledger()); n != calls || strings.Contains(said, says) != warned {
			t.Errorf("%d keys are billed, want %d; it says\n%s", n, calls, said)
		}
	}
	for _, free := range [][2]string{
		{"    job_title: person.title\n", ""}, {"size: 10", "size: 5"}, {"match: 1", "match: 3"}, {"200 !person", "200 !person | 410"},
		{"key: header X-Api-Key", "rate: 100/s\n  key: header X-Api-Key"}, {"127.0.0.1", "localhost"},
	} {
		x.edit(free[0], free[1])
		expect(x.executes(cli.ExitDone, x.args("plan", "--overwrite")...)+x.run(cli.ExitDone, "--overwrite"), 20, false)
	}
	x.edit("key: header X-Api-Key", "headers: {X-Version: \"2\"}\n  key: header X-Api-Key")
	expect(x.executes(cli.ExitDone, x.args("plan", "--overwrite")...), 20, true)
	expect(x.run(cli.ExitDone, "--overwrite"), 40, true)
	expect(x.run(cli.ExitDone, "--overwrite"), 40, false)
}

// TestChangedRules: other rules judge stored answers anew, free, and plan says how many. What fits none
// of them is an unknown call, until other rules take it again.
func TestChangedRules(t *testing.T) {
	t.Parallel()
	x := newOrder(t, profiles(20))
	o := badservice.DefaultProvider("northwind")
	o.Batch, o.Matched = 10, 1
	p := x.starts(o)
	x.resolvers = []string{"northwind"}
	x.run(cli.ExitDone)
	without := int64(0)
	for i := range 20 {
		if email, _, _ := p.Says(fmt.Sprintf("network.example/in/person-%d", i)); email == "" {
			without++
		}
	}
	says := fmt.Sprintf("judged anew +%d ", without)
	expect := func(code int, changed bool, outcome string) {
		t.Helper()
		plan := x.executes(code, x.args("plan", "--overwrite")...)
		said := x.run(code, "--overwrite")
		is := regexp.MustCompile(says).MatchString(plan)
		if n := len(p.Ledger()); n != 20 || is != changed || !strings.Contains(plan, "calls ") || outcome != "" && !regexp.MustCompile(fmt.Sprintf(`%s +%d `, outcome, without)).MatchString(said) {
			t.Errorf("%d keys are billed, want 20 and %q; plan says\n%s\nrun says\n%s", n, outcome, plan, said)
		}
	}
	x.edit("- match: 200 person |", "- no_match: 200 person.email=\"\"\n    - match: 200 person |")
	expect(cli.ExitDone, true, "no match")
	x.edit("no_match: 200 person.email=\"\"", "slow_down: 200 person.email=\"\"")
	expect(cli.ExitRejects, true, "failed")
	if listed := x.executes(cli.ExitDone, "answers", "list", "--unknown", "--state", x.path("state")); strings.Count(listed, "northwind") != int(without) {
		t.Errorf("%d unknown calls, and listed are\n%s", without, listed)
	}
	x.edit("- slow_down: 200 person.email=\"\"\n    ", "")
	expect(cli.ExitDone, false, "")
	if listed := x.executes(cli.ExitDone, "answers", "list", "--unknown", "--state", x.path("state")); strings.Contains(listed, "northwind") {
		t.Errorf("calls stay listed:\n%s", listed)
	}
}
