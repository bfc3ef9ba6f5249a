package answers

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/leadetl/leadetl/internal/filelock"
)

const (
	// killedChild is the environment variable that makes the test binary a run
	// to be killed, on the folder that it names; its first key follows.
	killedChild = "LEADETL_KILLED_ANSWERS"
	// killSeed makes the moments repeatable as far as another process can be.
	killSeed = 20_261_120
	// killCallers are in the child at once, so that a kill hits many calls.
	killCallers = 16
)

// killed is what becomes of the i-th question; the price of an answer can be
// told from it too.
func killed(i int) string {
	return []string{"put", "put", "put", "put", "free", "billed", "parked"}[i%7]
}

func killedQuestion(i int) Question { return person(fmt.Sprint("killed-", i)) }

func killedBody(i int) []byte { return bytes.Repeat([]byte{'a' + byte(i%26)}, i*37%5000) }

// TestKilledChild is the run that TestKilled kills. It says what was
// acknowledged: one line in one write, so that a line is whole or missing.
func TestKilledChild(t *testing.T) {
	dir, first, _ := strings.Cut(os.Getenv(killedChild), "\n")
	if dir == "" {
		t.Skip("it is run by TestKilled")
	}
	s, err := Open(t.Context(), InFolder(dir), Options{LogBytes: 20_000}) // there are many logs, and kills while they are brought into the database
	must(t, err)
	from, err := strconv.Atoi(first)
	must(t, err)
	ctx := context.Background()
	for c := range killCallers {
		go func() {
			for i := from + c; ; i += killCallers {
				q := killedQuestion(i)
				call, err := s.Intent(ctx, q, Send{Run: "killed", At: noon})
				fmt.Fprintf(os.Stdout, "intent %d %s\n", i, call.IdempotencyKey)
				switch killed(i) {
				case "put":
					err = errors.Join(err, s.Put(ctx, q, Answer{Run: "killed", Outcome: Matched, Status: 200, Body: killedBody(i), Credits: credits(int64(i % 3)), Received: noon}))
				case "free":
					err = errors.Join(err, s.Fail(ctx, q, Failure{Reason: "refused"}))
				case "billed":
					err = errors.Join(err, s.Fail(ctx, q, Failure{Reason: "timeout", MayBeBilled: true}))
				case "parked":
					err = errors.Join(err, s.Park(ctx, q, Parking{Resolution: fmt.Sprint("res_", i), Deadline: noon}))
				}
				if err != nil {
					panic(err)
				}
				fmt.Fprintf(os.Stdout, "%s %d %s\n", killed(i), i, call.IdempotencyKey)
			}
		}()
	}
	select {}
}

// TestKilled kills a run with SIGKILL, again and again on one folder: each
// answer it had acknowledged is there, whole, and each call that it had said
// to begin is answered or open under its idempotency key. LEADETL_KILLS is how
// many kills (default 6).
func TestKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("kills processes")
	}
	kills := 6
	if n, err := strconv.Atoi(os.Getenv("LEADETL_KILLS")); err == nil {
		kills = n
	}
	dir := t.TempDir()
	random := rand.New(rand.NewPCG(killSeed, 0))
	told := map[int][2]string{} // by question: what was acknowledged last, and the call's key
	for round := range kills {
		runKilled(t, dir, round*1_000_000, 1+random.IntN(600), told)
		checkKilled(t, dir, told)
		if t.Failed() {
			t.Fatalf("in round %d", round)
		}
	}
	t.Logf("seed %d, %d kills, %d calls acknowledged", killSeed, kills, len(told))
}

// runKilled runs a child and kills it when it has acknowledged so much. What
// it still said until then counts. While it runs, its folder is its own.
func runKilled(t *testing.T, dir string, from, lines int, told map[int][2]string) {
	t.Helper()
	c := exec.Command(os.Args[0], "-test.run=^TestKilledChild$")
	c.Env = append(os.Environ(), fmt.Sprintf("%s=%s\n%d", killedChild, dir, from))
	var stderr bytes.Buffer
	c.Stderr = &stderr
	stdout, err := c.StdoutPipe()
	must(t, err, c.Start())
	heard := 0
	for scan := bufio.NewScanner(stdout); scan.Scan(); {
		var what, key string
		var i int
		if _, err := fmt.Sscan(scan.Text(), &what, &i, &key); err != nil {
			t.Errorf("the child says %q", scan.Text())
			continue
		}
		told[i] = [2]string{what, key}
		if heard++; heard == 1 {
			if _, err := Open(t.Context(), InFolder(dir), Options{}); !errors.Is(err, filelock.ErrLocked) {
				t.Errorf("a second process: %v, want ErrLocked", err)
			}
		}
		if heard%100 == 1 && heard < lines {
			checkBeside(t, dir, told)
		}
		if heard == lines {
			must(t, c.Process.Kill())
		}
	}
	if err := c.Wait(); err == nil || heard < lines {
		t.Fatalf("the child ended before it was killed: %v\n%s", err, stderr.String())
	}
}

func checkKilled(t *testing.T, dir string, told map[int][2]string) {
	t.Helper()
	before := statOf(t, dir)
	s, err := Open(t.Context(), InFolder(dir), Options{})
	must(t, err)
	defer s.Close()
	if after, err := contents(t, s).Stat(t.Context()); err != nil || !reflect.DeepEqual(before, after) {
		t.Errorf("read beside it: %+v, opened: %+v, %v", before, after, err)
	}
	open := map[Hash]OpenCall{}
	for _, state := range []State{Unknown, Parked} {
		for _, c := range all(t, s.openCalls(t.Context(), state)) {
			open[c.Hash] = c
		}
	}
	for i, said := range told {
		q, what, key := killedQuestion(i), said[0], said[1]
		f, c := look(t, s, q, Freshness{Now: noon}), open[killedQuestion(i).Hash()]
		whole := f.Stored && bytes.Equal(f.Answer.Body, killedBody(i)) && *f.Answer.Credits == int64(i%3)
		ours := c.IdempotencyKey == key
		var good bool
		switch what {
		case "put":
			good = whole && f.Open == ""
		case "free":
			good = !f.Stored && f.Open == ""
		case "billed":
			good = !f.Stored && f.Open == Unknown && ours && c.Reason == "timeout"
		case "parked":
			good = !f.Stored && f.Open == Parked && ours && c.Resolution == fmt.Sprint("res_", i)
		case "intent": // and perhaps what was to follow, unheard
			good = f.Open == Unknown && ours || killed(i) == "put" && whole && f.Open == "" || killed(i) == "free" && f.Open == "" ||
				killed(i) == "parked" && f.Open == Parked && ours
		}
		if !good {
			t.Errorf("question %d: %s was acknowledged, found %q and %+v", i, what, f.Open, c)
		}
	}
	// The files agree with each other.
	c := contents(t, s)
	sums := map[string]Spending{}
	for i, err := range c.List(t.Context(), Filter{}) {
		must(t, err)
		spent := sums[i.Run]
		spent.add(i.Answer)
		sums[i.Run] = spent
		if _, open := c.calls[i.Hash]; open {
			t.Errorf("%s has an answer and an open call", i.Key)
		}
	}
	for run, spent := range sums {
		if total := s.memtable.total(run).Spending; total != spent {
			t.Errorf("%s has spent %+v, and its answers cost %+v", run, total, spent)
		}
	}
	for _, call := range c.calls {
		if call.State == UnderWay {
			t.Errorf("%s is under way", call.Key)
		}
	}
}
