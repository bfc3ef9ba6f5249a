//go:build unix

package resolvers

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/clitest"
	"github.com/leadetl/leadetl/internal/testkit/badservice"
	"github.com/leadetl/leadetl/pipeline/answers"
	"github.com/leadetl/leadetl/resolution"
)

// killSeed makes the moments and the faults repeatable as far as other processes can be.
const killSeed = 20_261_126

// killedKeys is how many keys a job has.
const killedKeys = 240

// TestOrdersKilled kills jobs of three faulty providers with SIGKILL at random moments: one by batches,
// one that answers later, one that bills each request; each is a process with a ledger, and is killed
// itself now and then. The same command goes on each time, with more of the budgets when they are used
// up. In the end no key was billed twice at any provider and no budget was exceeded; each row whose key
// has no unknown call is that of the rule, and the others are those that are listed; the dataset is made
// again of what is stored, byte for byte. Then --retry-unknown sends each listed call once more and no
// other.
//
// LEADETL_KILLS is how many kills have to hit (default 6). Jobs end, so there are several.
func TestOrdersKilled(t *testing.T) {
	t.Parallel()
	kills := clitest.KillsWanted(t, 6)
	seed := uint64(killSeed)
	begun, jobs, unknown := time.Now(), 0, 0
	for hits := 0; hits < kills; jobs++ {
		t.Run("", func(t *testing.T) {
			x := newKilled(t, seed+uint64(jobs))
			for !x.finished && hits+x.hits < kills {
				x.round()
			}
			hits += x.hits
			unknown += x.end()
		})
		if t.Failed() {
			t.Fatalf("after %d kills", hits)
		}
	}
	t.Logf("%d kills hit in %d jobs of %d keys, %d calls were unknown; %v", kills, jobs, killedKeys, unknown, time.Since(begun).Round(time.Second))
}

// killed is a job that is killed.
type killed struct {
	*order
	random    *rand.Rand
	names     []string
	providers map[string]*clitest.ProviderProcess
	known     []known
	budget    map[string]int64 // by provider; "" is that of all
	hits      int
	finished  bool
}

// step is what a budget gets more of each time.
var step = map[string]int64{"bulk": 120, "slow": 150, "last": 120, "": 300}

func newKilled(t *testing.T, seed uint64) *killed {
	bulk, slow, last := badservice.DefaultProvider("bulk"), badservice.DefaultProvider("slow"), badservice.DefaultProvider("last")
	bulk.Batch, bulk.Match, bulk.NoMatch, bulk.Matched = 6, 2, 1, 0.5
	bulk.By = []badservice.By{badservice.ByRef, badservice.ByName, badservice.ByPosition}[seed%3]
	slow.Polls, slow.Match, slow.NoMatch, slow.Batch = 1, 3, 1, int(seed%2)*4
	last.Match, last.NoMatch, last.BillsRetries = 2, 1, true
	x := &killed{
		order: newOrder(t, profiles(killedKeys)), random: rand.New(rand.NewPCG(seed, 0)), names: []string{"bulk", "slow", "last"},
		providers: map[string]*clitest.ProviderProcess{}, budget: map[string]int64{"bulk": 60, "slow": 60, "last": 60, "": 150},
	}
	entries := ""
	for i, o := range []badservice.ProviderOptions{bulk, slow, last} {
		o.Key, o.Seed, o.Ledger, o.Faults, o.Latency = clitest.RemoteKey, seed, x.path(o.Name+".ledger"), badservice.ProviderStorm(), time.Duration(i+1)*2*time.Millisecond
		o.Faults.Limited /= 4 // takes time alone
		if o.Polls > 0 {      // what a poll cannot read is polled for again
			o.Faults.Missing, o.Faults.Twice, o.Faults.Foreign, o.Faults.Short, o.Faults.Waits = 0, 0, 0, 0, 0
		}
		model, err := badservice.NewProvider(badservice.ProviderOptions{Name: o.Name, Matched: o.Matched, Email: o.Email, Phone: o.Phone})
		if err != nil {
			t.Fatal(err)
		}
		p := clitest.StartProvider(t, o)
		shape, err := badservice.NewProvider(o)
		if err != nil {
			t.Fatal(err)
		}
		entries += shape.Entry(p.URL)
		_ = shape.Close() // it has never listened
		x.providers[o.Name] = p
		x.known = append(x.known, provides(o.Name, model, o.Match, o.NoMatch))
	}
	x.write("providers.yaml", entries)
	x.resolvers = x.names
	x.raise(false)
	return x
}

// raise writes the budgets into the job, with more of each if that is so.
func (x *killed) raise(more bool) {
	x.Helper()
	settings := map[string]string{}
	for name := range x.budget {
		if more {
			x.budget[name] += step[name]
		}
		text, _ := json.Marshal(x.budget[name])
		settings[name] = "max_credits: " + string(text)
	}
	x.resolvers = nil
	for _, name := range x.names {
		x.resolvers = append(x.resolvers, name+": {key_file: ./key, concurrency: 3, "+settings[name]+"}")
	}
	x.job = "operation: enrichment\nnetwork_hosts: [network.example]\nwant: [email, phone]\nrows_per_part: 60\ntimeout: 2s\ngive_up_after: 1m\n" + settings[""] + "\n"
}

// within holds the ledgers to the budgets, and to one bill a key.
func (x *killed) within() {
	x.Helper()
	var all int64
	for _, name := range x.names {
		ledger := x.providers[name].Ledger()
		spent := badservice.SpentOf(ledger)
		if all += spent; spent > x.budget[name] {
			x.Errorf("%s has billed %d of %d", name, spent, x.budget[name])
		}
		requireOnce(x, name, ledger)
	}
	if all > x.budget[""] {
		x.Errorf("%d are billed of %d", all, x.budget[""])
	}
}

// round starts the job and kills it at a random moment, unless it ends before that.
func (x *killed) round() {
	x.Helper()
	p := clitest.StartProgram(x, x.args("run")...)
	written := x.written()
	lines := int64(x.random.IntN(40)) // of ledgers
	delay := time.Duration(x.random.IntN(60)) * time.Millisecond
	switch x.random.IntN(6) {
	case 0: // while it starts
		lines, delay = 0, time.Duration(x.random.IntN(500))*time.Millisecond
	case 1: // while it waits for answers that come later
		delay += 1500 * time.Millisecond
	}
	limit := time.Now().Add(time.Duration(1+x.random.IntN(3)) * time.Second)
	x.while(p, func() bool { return x.written() < written+lines*70 && time.Now().Before(limit) })
	end := time.Now().Add(delay)
	x.while(p, func() bool { return time.Now().Before(end) })
	if x.random.IntN(8) == 0 {
		of := x.providers[x.names[x.random.IntN(3)]]
		of.Kill()
		defer of.Start()
	}
	if p.Kill() {
		x.hits++
		x.within()
	} else {
		x.ended(p)
	}
}

func (x *killed) written() (bytes int64) {
	for _, p := range x.providers {
		bytes += p.Written()
	}
	return bytes
}

// while waits as long as something is so and the process runs.
func (x *killed) while(p *clitest.Process, is func() bool) {
	x.Helper()
	look := time.NewTicker(2 * time.Millisecond)
	defer look.Stop()
	for end := time.Now().Add(3 * time.Minute); is() && !p.Ended(); <-look.C {
		if time.Now().After(end) {
			x.Fatalf("nothing happens any more:\n%s", clitest.Tail(p.Said.String()))
		}
	}
}

// ended looks at a process that ended by itself.
func (x *killed) ended(p *clitest.Process) {
	x.Helper()
	x.within()
	switch code := p.Code(); code {
	case cli.ExitDone, cli.ExitRejects:
		x.finished = true
	case cli.ExitBudget:
		x.raise(true)
	case cli.ExitTryAgain:
	default:
		x.Fatalf("a run ended with exit code %d:\n%s", code, clitest.Tail(p.Said.String()))
	}
}

// end runs the job to its end, and proves it. It returns how many calls were unknown.
func (x *killed) end() (n int) {
	t := x.TB.(*testing.T)
	for try := 0; !x.finished; try++ {
		if try == 60 {
			x.Fatal("the job does not end")
		}
		p := clitest.StartProgram(x, x.args("run")...)
		x.while(p, func() bool { return true })
		x.ended(p)
	}
	unknown := x.unknown()
	x.requireUnknown(t, unknown)
	x.executes(cli.ExitRejects, x.args("run", "--out", x.path("again"), "--offline", "--set", "max_credits=100000")...)
	clitest.RequireSameFiles(t, x.path("again"), x.path("out"))

	before := map[string]int{}
	for _, name := range x.names {
		for _, a := range x.providers[name].Ledger() {
			before[name+" "+a.Key]++
		}
	}
	x.stormless()
	for name := range x.budget {
		x.budget[name] = 100_000
	}
	x.raise(false)
	x.run(cli.ExitDone, "--retry-unknown")
	for _, name := range x.names {
		after := map[string]int{}
		for _, a := range x.providers[name].Ledger() {
			after[a.Key]++
		}
		for key, times := range after {
			want := before[name+" "+key]
			if slices.Contains(unknown[name], key) {
				want++
			}
			if times != want && want > 0 {
				t.Errorf("%s is asked about %s %d times, want %d", name, key, times, want)
			}
		}
		n += len(unknown[name])
	}
	requireRows(t, x.path("out"), func(string) []known { return x.known })
	return n
}

// stormless starts the providers again without faults.
func (x *killed) stormless() {
	for _, p := range x.providers {
		p.Kill()
		p.Options.Faults = badservice.ProviderFaults{}
		p.Start()
	}
}

// unknown are the keys of the unknown calls that are listed, by provider.
func (x *killed) unknown() map[string][]string {
	x.Helper()
	of, listed := map[string][]string{}, 0
	for line := range strings.Lines(clitest.Run(x, "answers", "list", "--unknown", "--json", "--state", x.path("state"))) {
		var call struct {
			Hash      string `json:"key_hash"`
			Service   string
			Operation resolution.Operation
		}
		if err := json.Unmarshal([]byte(line), &call); err != nil {
			x.Fatal(err)
		}
		listed++
		for i := range killedKeys {
			q := answers.Question{Scope: answers.Scope{Service: call.Service, Operation: call.Operation}, Key: fmt.Sprint("network.example/in/person-", i)}
			if q.Hash().String() == call.Hash {
				of[call.Service] = append(of[call.Service], q.Key)
				listed--
			}
		}
	}
	if listed != 0 {
		x.Errorf("%d unknown calls are about no key of the job", listed)
	}
	return of
}

// requireUnknown holds a dataset to the model, but for the rows whose call is unknown: these are those
// that are listed, each key at one provider.
func (x *killed) requireUnknown(t *testing.T, unknown map[string][]string) {
	t.Helper()
	d := clitest.ReadDataset(t, x.path("out"))
	column := func(name string) int { return d.Column(t, name) }
	key, outcome, reason, by := column("key"), column("outcome"), column("reason"), column("answered_by")
	email, phone, emailBy, phoneBy, credits := column("email"), column("phone"), column("email_answered_by"), column("phone_answered_by"), column("credits")
	if len(d.Rows) != killedKeys {
		t.Errorf("%d rows of %d keys", len(d.Rows), killedKeys)
	}
	failed := 0
	for i, row := range d.Rows {
		if row[outcome] == "failed" {
			failed++
			if name, is := strings.CutPrefix(row[reason], "unknown_call:"); !is || !slices.Contains(unknown[name], row[key]) {
				t.Errorf("row %d failed for %s, and no such call is listed", i+1, row[reason])
			}
			continue
		}
		want := asks(row[key], x.known)
		got := expected{answeredBy: row[by], email: row[email], phone: row[phone], emailBy: row[emailBy], phoneBy: row[phoneBy], asked: want.asked}
		for _, cell := range []*string{&got.answeredBy, &got.email, &got.phone, &got.emailBy, &got.phoneBy} {
			if *cell == "null" {
				*cell = ""
			}
		}
		if got.credits, _ = strconv.ParseInt(row[credits], 10, 64); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("row %d: %+v, want %+v", i+1, got, want)
		}
	}
	stored := map[string]bool{}
	asked := clitest.ReadAsked(t, x.path("out"))
	for _, row := range asked.Rows {
		stored[row[asked.Column(t, "resolver")]+" "+row[asked.Column(t, "key")]] = true
	}
	for _, name := range x.names {
		failed -= len(unknown[name])
		for key := range badservice.Bills(x.providers[name].Ledger()) {
			if !stored[name+" "+key] {
				t.Errorf("%s has billed %s, which has no answer and is not listed", name, key)
			}
		}
	}
	if failed != 0 {
		t.Errorf("%d rows failed more than calls are listed", failed)
	}
}
