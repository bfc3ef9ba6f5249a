//go:build unix

package resolvers

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/clitest"
	"github.com/leadetl/leadetl/cmd/leadetl/program"
	"github.com/leadetl/leadetl/internal/testkit/badservice"
	"github.com/leadetl/leadetl/internal/testkit/s3test"
	"github.com/leadetl/leadetl/pipeline"
)

// night is a run of a job into a partition of its own, which is compared with the one before.
type night struct {
	change func(x *four) // what is different since
	flags  []string
	code   int
	// alike: the rows are those of the model, and of what is stored.
	alike bool
	// calls are the keys that are asked about: of a resolver that is not named any number.
	calls map[string]int
	// counts are those of the changes, "" any that the two datasets have.
	counts string
}

// TestNights has a night after another, and compares each with the one before: who has found a value
// is no change of it. Plan, dataset, verify and report agree in each.
func TestNights(t *testing.T) {
	t.Parallel()
	none := map[string]int{"bulk": 0, "slow": 0, "leads": 0}
	list := func(from, to int) func(*four) {
		return func(x *four) {
			all := strings.SplitAfter(profiles(to), "\n")
			x.write("in.csv", all[0]+strings.Join(all[from+1:], ""))
		}
	}
	move := func(x *four) {
		x.resolvers[1], x.resolvers[3] = x.resolvers[3], x.resolvers[1]
		x.known[1], x.known[3] = x.known[3], x.known[1]
	}
	for _, c := range []struct {
		name   string
		onS3   bool
		nights []night
	}{
		{"other people", false, []night{
			{alike: true, counts: "40 0 0"},
			{change: list(5, 50), alike: true, counts: "10 0 5"},
			{alike: true, calls: none, counts: "0 0 0"},
		}},
		{"other people, all on S3", true, []night{
			{alike: true, counts: "40 0 0"},
			{change: list(5, 50), alike: true, counts: "10 0 5"},
		}},
		{"another order", false, []night{{alike: true}, {change: move, calls: none}}},
		{"one more resolver", false, []night{
			{change: func(x *four) { x.resolvers, x.known = x.resolvers[:2], x.known[:2] }, alike: true},
			{change: func(x *four) { x.resolvers, x.known = x.resolvers[:4], x.known[:4] }, alike: true, calls: map[string]int{"bulk": 0}},
		}},
		{"own data have what was bought", false, []night{
			{change: func(x *four) {
				x.job += "select: [input, key, email, phone, credits, answered_by, email_answered_by, phone_answered_by, resolvers_skipped]\n"
				x.resolvers = []string{"bulk: {key_file: ./key, min_match: 1%}", x.resolvers[2]}
				x.known = x.known[1:3]
			}, alike: true},
			{change: func(x *four) {
				x.ownsWhat(x.bulk, 40)
				x.resolvers = append([]string{"directory: ./own"}, x.resolvers...)
			}, calls: none, counts: "0 4 0"}, // rows without a match: the reason is that of own data
			{flags: []string{"--set", "changes_compare=email_answered_by"}, calls: none, counts: "0 0 0"},
		}},
		{"one is away", false, []night{
			{change: func(x *four) { x.set("slow", "else: next") }, alike: true},
			{change: func(x *four) { list(0, 60)(x); x.stop(x.slow) }, flags: []string{"--set", "give_up_after=1s"}, calls: map[string]int{"slow": 0}, counts: "20 0 0"},
			{change: func(x *four) { x.start(x.slow) }, calls: map[string]int{"bulk": 0}},
		}},
		{"old answers are renewed", false, []night{
			{alike: true},
			{change: func(x *four) { x.set("slow", "refresh_older_than: 1ns, refresh_no_match_older_than: 1ns") }, alike: true, calls: map[string]int{"bulk": 0, "slow": 28, "leads": 0}, counts: "0 0 0"},
		}},
		{"calls are unknown", false, []night{
			{change: func(x *four) { x.set("slow", "refresh_older_than: 1ns") }, alike: true},
			{change: func(x *four) { list(0, 60)(x); x.slow.SetFaults(badservice.ProviderFaults{Failed: 0.4}) }, code: cli.ExitRejects},
			{change: func(x *four) { x.slow.SetFaults(badservice.ProviderFaults{}) }, flags: []string{"--retry-unknown"}, alike: true},
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			x := newFour(t, profiles(40), func(_, slow *badservice.ProviderOptions, _ *badservice.Options) { slow.Polls = 0 })
			x.job += "rows_per_part: 17\n"
			if c.onS3 {
				x.server = s3test.Start(t, clitest.S3Bucket)
			}
			before := &clitest.Dataset{}
			for i, n := range c.nights {
				if n.change != nil {
					n.change(x)
				}
				before = x.night(t, i, n, before)
			}
		})
	}
}

// ownsWhat imports a directory of what a provider says.
func (x *order) ownsWhat(p *badservice.Provider, people int) {
	x.Helper()
	var b strings.Builder
	b.WriteString("network_url,first_name,last_name,email,phone\n")
	for i := range people {
		key := fmt.Sprintf("network.example/in/person-%d", i)
		if email, phone, matched := p.Says(key); matched {
			fmt.Fprintf(&b, "%s,Own,Person %d,%s,%s\n", key, i, email, phone)
		}
	}
	x.write("people.csv", b.String())
	if err := os.RemoveAll(x.path("own")); err != nil {
		x.Fatal(err)
	}
	clitest.Run(x, "directory", "import", "--directory", x.path("own"), "--people", x.path("people.csv"), "--network-hosts", "network.example")
}

// night makes a night and checks it.
func (x *four) night(t *testing.T, i int, n night, before *clitest.Dataset) *clitest.Dataset {
	t.Helper()
	folder := fmt.Sprintf("dt=2026-11-%d", 10+i)
	flags := slices.Concat([]string{"--partition-by", folder, "--changes-from", "previous"}, n.flags)
	asked := func() map[string]int {
		all := map[string]int{}
		for name, ledger := range x.ledgers() {
			all[name] = len(ledger)
		}
		return all
	}
	had := asked()
	planned := x.planned(flags...)
	said := x.run(n.code, flags...)
	for name, now := range asked() {
		calls := now - had[name]
		if want, is := n.calls[name]; is && calls != want {
			t.Errorf("night %d: %s is asked about %d keys, want %d", i, name, calls, want)
		}
		if most, is := planned[name]; is && int64(calls) > most {
			t.Errorf("night %d: %s is asked about %d keys; the plan says at most %d", i, name, calls, most)
		}
	}
	out := x.dataset(folder)
	x.executes(cli.ExitDone, clitest.OnStore(x.store(), "verify", strings.TrimSuffix(x.at("out"), "/")+"/"+folder)...)
	now := clitest.ReadDataset(t, out)
	if n.alike {
		requireRows(t, out, x.all)
		x.run(n.code, slices.Concat([]string{"--out", x.path("again"), "--offline", "--overwrite"})...)
		clitest.RequireSameFiles(t, x.path("again"), out)
	}
	requireChanges(t, said, before, now, clitest.ReadParts(t, out+"/_changes"), n)
	return now
}

// planned are the calls to each resolver that a plan names.
func (x *order) planned(flags ...string) map[string]int64 {
	x.Helper()
	calls := map[string]int64{}
	for _, r := range x.plan(flags...).Resolvers {
		if r.Calls != nil {
			calls[r.Name] = r.Calls.Calls
		}
	}
	return calls
}

func (x *order) plan(flags ...string) (plan pipeline.Plan) {
	x.Helper()
	var out, problems bytes.Buffer
	if code := program.Execute(x.Context(), x.args("plan", append(flags, "--json")...), strings.NewReader(""), &out, &problems); code != cli.ExitDone && code != cli.ExitRejects {
		x.Fatalf("leadetl plan ended with exit code %d:\n%s", code, problems.String())
	}
	if err := json.Unmarshal(out.Bytes(), &plan); err != nil {
		x.Fatal(err)
	}
	return plan
}

// notCompared: of these columns no change tells.
var notCompared = []string{"source", "source_row", "resolution_id", "resolved_at", "answered_by", "credits", "email_answered_by", "phone_answered_by", "resolvers_skipped"}

// requireChanges holds the changes of a night to what the two datasets have.
func requireChanges(t *testing.T, said string, before, now, made *clitest.Dataset, n night) {
	t.Helper()
	rows := func(d *clitest.Dataset) map[string][]string {
		all := map[string][]string{}
		for _, row := range d.Rows {
			all[row[d.Column(t, "key")]] = row
		}
		return all
	}
	was, is := rows(before), rows(now)
	var want []string
	counts := [3]int{}
	for _, row := range now.Rows {
		key := row[now.Column(t, "key")]
		old, there := was[key]
		if !there {
			want = append(want, key+" added null")
			counts[0]++
			continue
		}
		failed := slices.Contains([]string{"failed", "skipped"}, row[now.Column(t, "outcome")])
		names := ""
		differ := false
		for c, name := range now.Names {
			if slices.Contains(notCompared, name) || old[before.Column(t, name)] == row[c] {
				continue
			}
			differ = true
			if !failed || row[c] != "null" {
				names += `,"` + name + `"`
			}
		}
		if differ {
			want = append(want, key+" changed ["+strings.TrimPrefix(names, ",")+"]")
			counts[1]++
		}
	}
	for _, row := range before.Rows {
		if key := row[before.Column(t, "key")]; is[key] == nil {
			want = append(want, key+" removed null")
			counts[2]++
		}
	}
	var got []string
	for _, row := range made.Rows {
		got = append(got, row[made.Column(t, "key")]+" "+row[made.Column(t, "change")]+" "+row[made.Column(t, "changed")])
	}
	if !slices.Equal(got, want) {
		t.Errorf("%d changes, want %d:\n%s\nwant\n%s", len(got), len(want), strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if all := fmt.Sprintf("%d %d %d", counts[0], counts[1], counts[2]); n.counts != "" && n.counts != all {
		t.Errorf("the changes are %s, want %s", all, n.counts)
	}
	if table := fmt.Sprintf("+%d new", counts[0]); !strings.Contains(said, table) {
		t.Errorf("the run says\n%s\nwant %s", said, table)
	}
}

// TestOtherNights: nights whose columns differ are refused before anything is paid, and so are the
// steps of a run on many machines.
func TestOtherNights(t *testing.T) {
	t.Parallel()
	x := newFour(t, profiles(10), func(_, slow *badservice.ProviderOptions, _ *badservice.Options) { slow.Polls = 0 })
	x.run(cli.ExitDone, "--partition-by", "dt=2026-11-10")
	seen := x.seen()
	refuses := func(says string, args ...string) {
		t.Helper()
		if said := x.executes(cli.ExitUsage, args...); !strings.Contains(said, says) || x.seen() != seen {
			t.Errorf("%d calls, and it says\n%s\nwant %s", x.seen()-seen, said, says)
		}
	}
	next := func() []string { return x.args("run", "--partition-by", "dt=2026-11-11", "--changes-from", "previous") }
	x.job = strings.Replace(x.job, "[email, phone]", "[email, job_title]", 1)
	refuses("only the earlier one has phone_answered_by; only the new one has job_title_answered_by; give both runs the same --select, --hem-types, --hem-profiles and phone_profiles, and of resolvers the same want, else and min_match", next()...)
	x.job = strings.Replace(x.job, "job_title", "phone", 1)
	x.set("bulk", "else: next")
	refuses("only the new one has resolvers_skipped; give both runs", next()...)
	refuses("survey makes no calls to a service; leave out --resolver and resolvers, or use leadetl run", x.args("survey")...)
}
