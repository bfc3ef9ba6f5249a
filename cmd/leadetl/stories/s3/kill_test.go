//go:build unix

package s3

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/clitest"
	"github.com/leadetl/leadetl/internal/testkit/s3test"
	"github.com/leadetl/leadetl/sinks"
)

// TestS3Killed kills runs from S3 to S3 with SIGKILL at random moments, while
// answers are lost, connections break and the store is busy. Whatever was done
// to them, they end with the dataset of an undisturbed run, byte for byte;
// nothing is in the manifest that is not there as it says, and no unfinished
// upload and no lock is left.
//
// LEADETL_KILLS is how many kills have to hit (default 5).
func TestS3Killed(t *testing.T) {
	t.Parallel()
	kills := clitest.KillsWanted(t, 5)
	random := rand.New(rand.NewPCG(clitest.S3KillSeed, 0))
	j := clitest.NewS3Job(t)
	for name, rows := range map[string]int{"a.csv": 9_000, "b.csv": 11_000, "c.csv": 1, "d.csv": 10_000} {
		j.Put("small/"+name, clitest.EmailList(rows))
	}
	j.Put("small/e.csv.gz", clitest.Packed(t, clitest.EmailList(10_000)))
	j.Put("large/a.csv", clitest.EmailList(100_000))
	j.Put("parted/a.csv", clitest.Landed(clitest.EmailList(20_000)))
	jobs := []*tormentedJob{
		{S3Job: j, name: "small", flags: []string{"--set", "rows_per_part=3000", "--workers", "3"}},
		{S3Job: j, name: "parted", flags: []string{"--set", "rows_per_part=4000", "--workers", "3", "--partition-by", "land"}},
		{S3Job: j, name: "large", flags: []string{"--set", "rows_per_part=50000", "--set", "compression=none"}}, // parts that go in pieces
	}
	for _, x := range jobs {
		x.begin()
	}
	begun, hits, runs := time.Now(), 0, 0
	for round := 0; hits < kills; round++ {
		x := jobs[min(round%4, 2)] // two of four are large: theirs take longer
		for range 1 + random.IntN(4) {
			hit := x.kill(random)
			if runs++; hit {
				hits++
			}
		}
		x.finish(random)
		if t.Failed() {
			t.Fatalf("in round %d", round)
		}
	}
	counts := j.Proxy.Counts()
	t.Logf("seed %d: %d kills hit %d runs in %v; of %d requests %d answers were lost, %d connections broke before and %d in the middle, %d were refused, %d took longer",
		clitest.S3KillSeed, hits, runs, time.Since(begun).Round(time.Second), j.Proxy.Seen(), counts[s3test.Lose], counts[s3test.Reset], counts[s3test.Cut], counts[s3test.Refuse], counts[s3test.Delayed])
	for _, kind := range []s3test.Kind{s3test.Lose, s3test.Reset, s3test.Cut, s3test.Refuse, s3test.Delayed} {
		if counts[kind] == 0 {
			t.Errorf("no request was %s", kind)
		}
	}
}

// tormentedJob is one job that is killed.
type tormentedJob struct {
	*clitest.S3Job
	name     string
	flags    []string
	want     map[string]string // what an undisturbed run makes
	requests int               // that it takes
	rounds   int
}

// begin finds out what an undisturbed run makes.
func (x *tormentedJob) begin() {
	x.Helper()
	before := x.Proxy.Seen()
	x.Run(cli.ExitDone, x.in(), x.out("undisturbed"), append(x.flags, "--quiet")...)
	x.requests = x.Proxy.Seen() - before
	x.want = clitest.Files(x, x.Object(x.name+"-undisturbed"))
	if len(x.want) < 3 {
		x.Fatalf("%d files", len(x.want))
	}
}

func (x *tormentedJob) in() string { return "s3://" + clitest.S3Bucket + "/" + x.name + "/" }

func (x *tormentedJob) out(name string) string {
	return "s3://" + clitest.S3Bucket + "/" + x.name + "-" + name + "/"
}

func (x *tormentedJob) round() string { return fmt.Sprint("round-", x.rounds) }

// kill starts the job and kills it at a random moment; hit says that it had
// not ended.
func (x *tormentedJob) kill(random *rand.Rand) (hit bool) {
	x.Helper()
	reached := make(chan struct{})
	after, delay := random.IntN(x.requests*5/4), time.Duration(random.IntN(20))*time.Millisecond
	faults, seen := s3Faults(random), 0
	x.Proxy.Do(func(r *http.Request) s3test.Fault {
		if seen++; seen == after+1 {
			close(reached)
		}
		return faults(r)
	})
	p := clitest.StartProgram(x, x.command()...)
	select {
	case <-reached:
		timer := time.NewTimer(delay)
		defer timer.Stop()
		<-timer.C
	case <-p.Gone:
	}
	hit = p.Kill()
	if code := p.Code(); !hit && code != cli.ExitDone {
		x.Fatalf("a run ended with %d:\n%s", code, clitest.Tail(p.Said.String()))
	}
	x.checkWreck()
	return hit
}

func (x *tormentedJob) command() []string {
	return x.Args(x.in(), x.out(x.round()), append(x.flags, "--quiet", "--set", "s3_give_up_after=2m")...)
}

// checkWreck looks at what a kill left: every part that is there is whole.
func (x *tormentedJob) checkWreck() {
	x.Helper()
	folder := x.Object(x.name + "-" + x.round())
	if _, err := os.Stat(folder); err != nil {
		return // killed before it wrote
	}
	got := clitest.Files(x, folder)
	for name, data := range got {
		if name != "_lock" && data != x.want[name] {
			x.Errorf("a kill left a broken %s", name)
		}
	}
	if _, done := got["_SUCCESS"]; done {
		delete(got, "_lock")
		clitest.RequireFiles(x, "_SUCCESS is there", got, x.want)
	}
}

// finish lets the job run to its end, under faults, and looks at what it made.
func (x *tormentedJob) finish(random *rand.Rand) {
	x.Helper()
	x.Proxy.Do(s3Faults(random))
	p := clitest.StartProgram(x, x.command()...)
	if code := p.Code(); code != cli.ExitDone {
		x.Fatalf("the last run ended with %d:\n%s", code, clitest.Tail(p.Said.String()))
	}
	folder := x.Object(x.name + "-" + x.round())
	clitest.RequireFiles(x, x.round(), clitest.Files(x, folder), x.want)
	x.requireManifest(folder)
	if left := x.Server.Uploads(x, clitest.S3Bucket); len(left) > 0 {
		x.Errorf("unfinished uploads: %q", left)
	}
	for _, left := range []string{"state/s3/*", "state/runs/*"} {
		if found, _ := filepath.Glob(x.Path(left)); len(found) > 0 {
			x.Errorf("left: %q", found)
		}
	}
	if err := os.RemoveAll(folder); err != nil {
		x.Fatal(err)
	}
	x.rounds++
}

// requireManifest compares what the manifest says with what is there.
func (x *tormentedJob) requireManifest(folder string) {
	x.Helper()
	var m sinks.Manifest
	data, err := os.ReadFile(filepath.Join(folder, "_manifest.json"))
	if err == nil {
		err = json.Unmarshal(data, &m)
	}
	if err != nil {
		x.Fatal(err)
	}
	listed := 1 // _SUCCESS
	for _, p := range m.Parts {
		for _, f := range p.All() {
			listed++
			sum := sha256.Sum256([]byte(x.want[f.Name]))
			if f.Bytes != int64(len(x.want[f.Name])) || f.SHA256 != hex.EncodeToString(sum[:]) {
				x.Errorf("the manifest has another %s", f.Name)
			}
		}
	}
	if listed != len(x.want) {
		x.Errorf("the manifest lists %d files of %d", listed, len(x.want))
	}
}

// s3Faults are what can happen to requests, at random.
func s3Faults(random *rand.Rand) func(*http.Request) s3test.Fault {
	own := rand.New(rand.NewPCG(random.Uint64(), 0))
	refuse := func(status int, code string) s3test.Fault {
		return s3test.Fault{Kind: s3test.Refuse, Status: status, Code: code}
	}
	return func(r *http.Request) s3test.Fault {
		conditional := r.Header.Get("If-None-Match")+r.Header.Get("If-Match") != "" && s3test.IsWrite(r)
		switch n := own.IntN(100); {
		case n < 4:
			return s3test.Fault{Kind: s3test.Lose}
		case n < 6:
			return s3test.Fault{Kind: s3test.Reset}
		case n < 8:
			return refuse(500, "InternalError")
		case n < 10:
			return refuse(503, "SlowDown")
		case n < 12 && conditional:
			return refuse(409, "ConditionalRequestConflict")
		case n < 14 && conditional:
			return refuse(412, "PreconditionFailed")
		case n < 20 && r.Method == http.MethodGet:
			return s3test.Fault{Kind: s3test.Cut}
		case n < 30:
			return s3test.Fault{Kind: s3test.Delayed, Delay: time.Duration(own.IntN(30)) * time.Millisecond}
		}
		return s3test.Fault{}
	}
}
