//go:build unix

package remote

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/clitest"
	"github.com/leadetl/leadetl/internal/testkit/badservice"
	"github.com/leadetl/leadetl/pipeline/answers"
	"github.com/leadetl/leadetl/resolution"
)

// remoteKillSeed makes the moments and the faults repeatable as far as other
// processes can be.
const remoteKillSeed = 20_261_120

// TestRemoteKilled kills one job with SIGKILL at random moments, while the
// service it asks misbehaves in every way it knows and the network between
// them does too. The job is started again with the same command each time. In
// the end nothing is lost and nothing was paid twice: every input row has its
// output row, the service's ledger has each key once, the dataset is that of a
// undisturbed run but for the times, and it can be made again, byte for
// byte, of what is stored.
//
// LEADETL_KILLS is how many kills have to hit (default 4, 3 on S3).
func TestRemoteKilled(t *testing.T) {
	t.Parallel()
	testRemoteKilled(t, clitest.InFolder, 4)
}

// TestRemoteKilledOnS3 is TestRemoteKilled with the state on S3: no process has
// anything of the one before.
func TestRemoteKilledOnS3(t *testing.T) {
	t.Parallel()
	testRemoteKilled(t, clitest.OnS3(t), 3)
}

func testRemoteKilled(t *testing.T, keep clitest.Keeper, short int) {
	kills := clitest.KillsWanted(t, short)
	l := clitest.ProfileList(250 * min(kills, 12))
	good := newUndisturbed(t, l)
	random := rand.New(rand.NewPCG(remoteKillSeed, 0))
	begun := time.Now()
	x := newTormentor(t, l, random, badservice.Options{HonourKeys: true, Credits: good.service.Spent() / 4}, "--idempotent")
	keep(x.RemoteJob)
	x.In = good.in // its name is a column
	x.refill = good.service.Spent()/4 + 1
	for x.hits < kills {
		x.round(kills)
		if x.finished {
			t.Fatalf("the job was finished after %d kills of %d", x.hits, kills)
		}
	}
	x.finish()
	t.Logf("seed %d: %d kills hit in %v, and %d stops for credits, credentials or a dead service; %v", remoteKillSeed, x.hits, time.Since(begun).Round(time.Second), x.stops, x.service.Fates())

	got := clitest.ReadDataset(t, x.Path("out"))
	if want := l.Rows; len(got.Rows) != want {
		t.Errorf("%d rows of output for %d rows of input", len(got.Rows), want)
	}
	clitest.RequireSameRows(t, got, good.dataset, "resolved_at")
	requirePaidOnce(t, x.service, good.service)
	if calls, ledger := clitest.LastReport(t, x.Path("out")).Service.Calls, x.service.Spent(); calls.Credits+calls.EarlierCredits != ledger {
		t.Errorf("%d credits by earlier runs and %d by the last, the ledger has %d", calls.EarlierCredits, calls.Credits, ledger)
	}
	if left := x.Unknown(); len(left) > 0 {
		t.Errorf("%d calls are unknown still", len(left))
	}
	requireFates(t, x.service, badservice.Answered, badservice.Replayed, badservice.Limited, badservice.Unavailable, badservice.ResetBefore, badservice.Failed,
		badservice.ResetAfter, badservice.Truncated, badservice.WrongTypes, badservice.Slow, badservice.Denied, badservice.NoCredits, badservice.Later)
	if x.service.Delivered() == 0 {
		t.Error("no answer came later")
	}

	// The same command, with flags about calls, makes it again from stored answers.
	x.Run(cli.ExitRejects, "--out", x.Path("again"), "--offline")
	clitest.RequireSameFiles(t, x.Path("again"), x.Path("out"))
}

// TestRemoteKilledWithoutKeys is TestRemoteKilled with a service that ignores
// idempotency keys, and a user who does not say otherwise: whatever may have
// been billed is never sent again, and listed where it has no answer.
func TestRemoteKilledWithoutKeys(t *testing.T) {
	t.Parallel()
	testRemoteKilledWithoutKeys(t, clitest.InFolder, 4)
}

// TestRemoteKilledWithoutKeysOnS3 is that with the state on S3.
func TestRemoteKilledWithoutKeysOnS3(t *testing.T) {
	t.Parallel()
	testRemoteKilledWithoutKeys(t, clitest.OnS3(t), 3)
}

func testRemoteKilledWithoutKeys(t *testing.T, keep clitest.Keeper, short int) {
	kills := clitest.KillsWanted(t, short)
	l := clitest.ProfileList(250 * min(kills, 12))
	random := rand.New(rand.NewPCG(remoteKillSeed, 1))
	// Calls in flight at a kill are lost to the job, which ends the sooner: then
	// there is another.
	for hits := 0; hits < kills; {
		hits += testKilledWithoutKeys(t, l, random, kills-hits, keep)
		if t.Failed() {
			t.Fatalf("after %d kills", hits)
		}
	}
}

// testKilledWithoutKeys is one job, killed so many times as long as it runs.
func testKilledWithoutKeys(t *testing.T, l *clitest.List, random *rand.Rand, kills int, keep clitest.Keeper) (hits int) {
	x := newTormentor(t, l, random, badservice.Options{Credits: -1})
	keep(x.RemoteJob)
	for x.hits < kills && !x.finished {
		x.round(kills)
	}
	x.finish()
	t.Logf("seed %d: %d kills hit; %v", remoteKillSeed, x.hits, x.service.Fates())

	stored, unknown := x.stored(), map[string]bool{}
	for _, hash := range x.Unknown() {
		unknown[hash] = true
		if stored[hash] {
			t.Errorf("%s is unknown, and has an answer", hash)
		}
	}
	lost := 0
	for key, times := range x.service.BilledKeys() {
		hash := x.hash(key)
		if times != 1 {
			t.Errorf("question %s is billed %d times", hash, times)
		}
		if !stored[hash] {
			if lost++; !unknown[hash] {
				t.Errorf("question %s is billed, has no answer, and is not listed", hash)
			}
		}
	}
	if lost == 0 || len(unknown) < lost {
		t.Errorf("%d billed calls have no answer, %d are listed", lost, len(unknown))
	}
	requireSentOnce(t, x)

	got := clitest.ReadDataset(t, x.Path("out"))
	if len(got.Rows) != l.Rows {
		t.Errorf("%d rows of output for %d rows of input", len(got.Rows), l.Rows)
	}
	key, outcome, reason := got.Column(t, "key"), got.Column(t, "outcome"), got.Column(t, "reason")
	for i, row := range got.Rows {
		hash, without := x.hash(row[key]), row[outcome] == "failed"
		switch {
		case row[reason] == "unknown_call" && !unknown[hash] && !stored[hash]: // it may have come by a callback since
			t.Errorf("row %d: its call is unknown, and not listed", i+1)
		case unknown[hash] && !without:
			t.Errorf("row %d is %s, and its call is unknown", i+1, row[outcome])
		case without && row[reason] != "unknown_call" && row[reason] != "refused:validation_error":
			t.Errorf("row %d failed for the reason %s", i+1, row[reason])
		}
	}
	t.Logf("%d keys: %d billed, %d unknown calls of which %d were billed", len(l.Keys), len(x.service.BilledKeys()), len(unknown), lost)
	return x.hits
}

// undisturbed is a run of a list against a service without a fault.
type undisturbed struct {
	in      string
	service *badservice.Service
	dataset *clitest.Dataset
}

// refusedShare of the keys are refused by every service of the kill tests.
const refusedShare = 0.01

func newUndisturbed(t *testing.T, l *clitest.List) undisturbed {
	t.Helper()
	o := badservice.DefaultOptions()
	o.Refused = refusedShare
	s, url := clitest.StartService(t, o)
	j := clitest.NewRemoteJob(t, "enrichment", url, l.CSV, slices.Concat(killedFlags, patient)...)
	j.Run(cli.ExitRejects) // refused rows are failures
	d := clitest.ReadDataset(t, j.Path("out"))
	if len(d.Rows) != l.Rows || d.Count(t, "outcome", "rejected") != l.Rejected || len(s.Calls()) != len(l.Keys) {
		t.Fatalf("%d rows, %d of them rejected, %d calls; want %d, %d, %d", len(d.Rows), d.Count(t, "outcome", "rejected"), len(s.Calls()), l.Rows, l.Rejected, len(l.Keys))
	}
	for _, outcome := range []string{"matched", "no_match", "failed"} {
		if d.Count(t, "outcome", outcome) == 0 {
			t.Fatalf("no row is %s", outcome)
		}
	}
	return undisturbed{j.In, s, d}
}

// killedFlags are those of all jobs of the kill tests.
var killedFlags = []string{
	"--set", "network_hosts=network.example", "--set", "rows_per_part=250", "--workers", "2", "--concurrency", "16", "--set", "timeout=1s", "--set", "give_up_after=1m", "--log-level", "info",
}

// patient is for runs that nothing disturbs but a busy machine.
var patient = []string{"--set", "timeout=1m"}

// tormentor disturbs one job.
type tormentor struct {
	*clitest.RemoteJob
	service  *badservice.Service
	proxy    *clitest.Toxiproxy
	random   *rand.Rand
	keys     int   // to be asked about
	refill   int64 // granted whenever the credits are spent
	rounds   int
	hits     int // kills of a process that had not ended
	stops    int // processes that ended for want of credits, for credentials or for a dead service
	finished bool
}

func newTormentor(t *testing.T, l *clitest.List, random *rand.Rand, o badservice.Options, flags ...string) *tormentor {
	t.Helper()
	o.Seed, o.Matched, o.Refused, o.NoCredits = remoteKillSeed, 0.75, refusedShare, []int{400, 402}
	o.Latency, o.Faults = 3*time.Millisecond, badservice.Storm()
	o.Rate, o.Burst = 400, 40
	s, url := clitest.StartService(t, o)
	proxy := clitest.NewToxiproxy(t, url)
	flags = slices.Concat(killedFlags, []string{"--callback-listen", clitest.FreeAddress(t)}, flags)
	return &tormentor{RemoteJob: clitest.NewRemoteJob(t, "enrichment", proxy.URL, l.CSV, flags...), service: s, proxy: proxy, random: random, keys: len(l.Keys)}
}

// round starts the job and kills it at a random moment, unless it ends before
// that. The kills still to come are spread over the work still to do.
func (x *tormentor) round(kills int) {
	x.Helper()
	x.proxy.Poison(clitest.RandomToxics(x.random)...)
	left := x.keys - len(x.service.BilledKeys())
	calls := x.random.IntN(1 + 2*left/(kills-x.hits+1))
	delay := time.Duration(x.random.IntN(30)) * time.Millisecond
	if x.random.IntN(6) == 0 { // while it starts, or soon after
		calls, delay = 0, time.Duration(x.random.IntN(700))*time.Millisecond
	}
	// One call of nine rounds is denied, and the job stops by itself: in the fourth
	// of them, or in the next if something else stopped it before.
	if x.rounds++; x.rounds%9 >= 4 && x.service.Fates()[badservice.Denied] <= x.rounds/9 {
		after := x.random.IntN(20)
		x.service.Deny(after, 1)
		calls = max(calls, after+20)
	}
	seen := x.service.Seen()
	p := x.Start()
	x.while(p, func() bool { return x.service.Seen() < seen+calls })
	if calls > 0 || delay < 100*time.Millisecond {
		x.while(p, func() bool { return x.service.Seen() == seen }) // it is under way
	}
	end := time.Now().Add(delay)
	x.while(p, func() bool { return time.Now().Before(end) })
	if p.Kill() {
		x.hits++
	} else {
		x.ended(p)
	}
	x.service.Deny(0, 0)
}

// finish runs the job to its end, under the same faults.
func (x *tormentor) finish() {
	x.Helper()
	for try := 0; !x.finished; try++ {
		if try == 20 {
			x.Fatal("the job does not end")
		}
		p := x.Start()
		x.while(p, func() bool { return true })
		x.ended(p)
	}
	// What still comes to the service comes before the books are looked at.
	x.proxy.Stop()
	if err := x.service.Close(); err != nil {
		x.Error(err)
	}
}

// ended looks at a process that ended by itself.
func (x *tormentor) ended(p *clitest.Process) {
	x.Helper()
	switch code := p.Code(); {
	case code == cli.ExitRejects: // the refused rows
		x.finished = true
	case code == cli.ExitBudget && x.refill > 0:
		x.service.Grant(x.refill)
		x.stops++
	case code == cli.ExitUsage && strings.Contains(p.Said.String(), "refuses"):
		x.stops++
	case code == cli.ExitTryAgain: // on a busy machine, all probes of a minute may meet a fault
		x.stops++
	default:
		x.Fatalf("a run ended with exit code %d:\n%s", code, clitest.Tail(p.Said.String()))
	}
}

// while waits as long as something is so and the process runs, and changes the
// toxics now and then.
func (x *tormentor) while(p *clitest.Process, is func() bool) {
	x.Helper()
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	change := time.Now().Add(time.Second)
	for end := time.Now().Add(3 * time.Minute); is() && !p.Ended(); <-look.C {
		now := time.Now()
		if now.After(end) {
			log := p.Said.String()
			_ = p.Process.Signal(syscall.SIGQUIT) // with LEADETL_DEBUG it says what it waits for
			p.Code()
			x.Fatalf("nothing happens any more:\n%s\n%s", clitest.Tail(log), p.Said.String()[len(log):])
		}
		if now.After(change) {
			x.proxy.Poison(clitest.RandomToxics(x.random)...)
			change = now.Add(time.Duration(300+x.random.IntN(2000)) * time.Millisecond)
		}
	}
}

// hash names a question as lists do.
func (x *tormentor) hash(key string) string {
	return answers.Question{Scope: answers.Scope{Service: x.URL, Operation: resolution.Operation(x.Operation)}, Key: key}.Hash().String()
}

// stored are the key hashes of the stored answers. A refusal does not count: such a
// question is asked again by each run.
func (x *tormentor) stored() map[string]bool {
	x.Helper()
	found := map[string]bool{}
	for line := range strings.Lines(x.Answers("list", "--json")) {
		if !strings.Contains(line, `"outcome":"refused"`) {
			found[clitest.KeyHashes(line)[0]] = true
		}
	}
	return found
}

// requirePaidOnce: the ledger has each key once, and the same keys as that of
// an undisturbed run.
func requirePaidOnce(t *testing.T, got, want *badservice.Service) {
	t.Helper()
	billed := got.BilledKeys()
	for key, times := range billed {
		if times != 1 {
			t.Errorf("a key is billed %d times: %v", times, clitest.CallsOf(got, key))
		}
	}
	if !maps.Equal(billed, want.BilledKeys()) || got.Spent() != want.Spent() {
		t.Errorf("%d keys are billed, %d credits; want %d, %d", len(billed), got.Spent(), len(want.BilledKeys()), want.Spent())
	}
}

// requireSentOnce: no call that may have been billed was followed by another.
func requireSentOnce(t *testing.T, x *tormentor) {
	t.Helper()
	surely := []badservice.Fate{badservice.Unavailable, badservice.Limited, badservice.Denied, badservice.NoCredits, badservice.Refused}
	sent := map[string]int{}
	for _, calls := range x.service.Calls() {
		for _, c := range calls {
			if !slices.Contains(surely, c.Fate) {
				sent[c.Key]++
			}
		}
	}
	for key, times := range sent {
		if times > 1 {
			t.Errorf("question %s was sent %d times although it may have been billed: %v", x.hash(key), times, clitest.CallsOf(x.service, key))
		}
	}
}

func requireFates(t *testing.T, s *badservice.Service, want ...badservice.Fate) {
	t.Helper()
	fates := s.Fates()
	for _, f := range want {
		if fates[f] == 0 {
			t.Errorf("no call was %s", f)
		}
	}
}
