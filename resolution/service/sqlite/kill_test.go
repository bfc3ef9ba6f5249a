package sqlite

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/leadetl/leadetl/resolution/service/state"
)

const (
	// killedChild is the environment variable that makes the test binary a
	// service to be killed, on the state folder that it names.
	killedChild = "LEADETL_KILLED_STATE"
	// killSeed makes the moments repeatable as far as another process can be.
	killSeed = 20_261_120
	// killWorkers are in the child at once, so that a kill hits many changes.
	killWorkers = 4
	killReserve = 10
	killGrant   = 1_000_000
)

// TestKilledChild is the service that TestJobsKilled kills.
func TestKilledChild(t *testing.T) {
	dir := os.Getenv(killedChild)
	if dir == "" {
		t.Skip("it is run by TestJobsKilled")
	}
	s, err := Serve(dir)
	if err != nil {
		t.Fatal(err)
	}
	o, err := s.FindOrganization(t.Context(), "killed")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.RequeueLeased(t.Context()); err != nil {
		t.Fatal(err)
	}
	d := &desk{Store: s, t: t, first: o.ID}
	var workers sync.WaitGroup
	for i := range killWorkers {
		workers.Go(func() { d.workUntilKilled(rand.New(rand.NewPCG(killSeed, uint64(i)))) })
	}
	workers.Wait()
}

// workUntilKilled creates, leases, finishes and cancels jobs, and tells what
// was acknowledged: one line in one write, so that a line is whole or missing.
func (d *desk) workUntilKilled(random *rand.Rand) {
	ctx := d.t.Context()
	tell := func(what string, id uuid.UUID) { fmt.Fprintf(os.Stdout, "%s %s\n", what, id) }
	for {
		j := d.job(d.first)
		j.Requested = time.Now()
		if _, err := d.CreateJob(ctx, j, 0, nil); err != nil {
			d.t.Error(err)
			return
		}
		tell("created", j.ID)
		leased, err := d.LeaseJob(ctx, time.Now(), time.Now().Add(time.Hour))
		if err != nil || leased == nil {
			d.t.Errorf("leased %v, %v", leased, err)
			return
		}
		switch random.IntN(8) {
		case 0: // left leased, as by a worker that hangs
		case 1:
			if err := d.CancelJob(ctx, leased.ID, time.Now(), d.callbackOf(leased.ID)); err != nil {
				d.t.Error(err)
				return
			}
			tell("finished", leased.ID)
		default:
			if err := d.FinishJob(ctx, d.finishOf(leased)); err != nil {
				d.t.Error(err)
				return
			}
			tell("finished", leased.ID)
		}
	}
}

// callbackOf is a job's callback; its webhook id differs each time it is made,
// so that a second one would show.
func (d *desk) callbackOf(id uuid.UUID) *state.Callback {
	return &state.Callback{
		WebhookID: "msg_" + uuid.NewString(), Organization: d.first, Resolution: id,
		Receiver: "a.example:443", URL: "https://a.example/hook", Body: []byte("{}"), Due: time.Now(),
	}
}

func (d *desk) finishOf(j *state.Job) state.Finish {
	return state.Finish{ID: j.ID, Lease: j.Lease, Status: state.Completed, Result: []byte("{}"), Spent: 3, Callback: d.callbackOf(j.ID), At: time.Now()}
}

// TestJobsKilled kills a service with SIGKILL, again and again on one state:
// what it had acknowledged is there, and in the end every job has finished
// once, with one callback. LEADETL_KILLS is how many kills (default 6).
func TestJobsKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("kills processes")
	}
	kills := 6
	if text := os.Getenv("LEADETL_KILLS"); text != "" {
		var err error
		if kills, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	dir := filepath.Join(t.TempDir(), "state")
	s, err := Serve(dir)
	if err != nil {
		t.Fatal(err)
	}
	o, err := s.CreateOrganization(t.Context(), "killed", killGrant, nil, time.Now())
	if err := errors.Join(err, s.Close()); err != nil {
		t.Fatal(err)
	}

	random := rand.New(rand.NewPCG(killSeed, 0))
	told := map[uuid.UUID]string{} // what was acknowledged last
	for round := range kills {
		runKilled(t, dir, 1+random.IntN(150), told)
		s, err := Serve(dir)
		if err != nil {
			t.Fatal(err)
		}
		d := &desk{Store: s, t: t, first: o.ID}
		d.checkKilled(told)
		if round == kills-1 {
			d.finishAll()
			d.checkKilled(told)
			t.Logf("seed %d, %d kills, %d jobs acknowledged, %d there", killSeed, kills, len(told), d.count("resolutions"))
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if t.Failed() {
			t.Fatalf("in round %d", round)
		}
	}
}

// runKilled runs a child and kills it when it has acknowledged so much. What
// it still said until then counts.
func runKilled(t *testing.T, dir string, lines int, told map[uuid.UUID]string) {
	t.Helper()
	c := exec.Command(os.Args[0], "-test.run=^TestKilledChild$")
	c.Env = append(os.Environ(), killedChild+"="+dir)
	var stderr bytes.Buffer
	c.Stderr = &stderr
	stdout, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	heard := 0
	for scan := bufio.NewScanner(stdout); scan.Scan(); {
		what, id, _ := strings.Cut(scan.Text(), " ")
		if what != "created" && what != "finished" {
			t.Errorf("the child says %q", scan.Text())
			continue
		}
		// Another worker's line on the same job may have come first.
		if parsed := uuid.MustParse(id); told[parsed] != "finished" {
			told[parsed] = what
		}
		if heard++; heard == lines {
			if err := c.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := c.Wait(); err == nil || heard < lines {
		t.Fatalf("the child ended before it was killed: %v\n%s", err, stderr.String())
	}
}

// finishAll does what a service does after its start, until nothing waits.
func (d *desk) finishAll() {
	d.t.Helper()
	if _, err := d.RequeueLeased(d.t.Context()); err != nil {
		d.t.Fatal(err)
	}
	for {
		j, err := d.LeaseJob(d.t.Context(), time.Now(), time.Now().Add(time.Hour))
		if err != nil {
			d.t.Fatal(err)
		}
		if j == nil {
			break
		}
		if err := d.FinishJob(d.t.Context(), d.finishOf(j)); err != nil {
			d.t.Fatal(err)
		}
	}
	if n := d.count("resolutions WHERE finished IS NULL"); n != 0 {
		d.t.Errorf("%d jobs never finish", n)
	}
}

// checkKilled compares the state with what was acknowledged, and with itself.
func (d *desk) checkKilled(told map[uuid.UUID]string) {
	d.t.Helper()
	for id, what := range told {
		j, err := d.FindJob(d.t.Context(), d.first, id)
		if err != nil {
			d.t.Errorf("an acknowledged job is gone: %v", err)
		} else if what == "finished" && !j.Status.Finished() {
			d.t.Errorf("an acknowledged end is gone: the job is %s", j.Status)
		}
	}
	for what, which := range map[string]string{
		"unfinished jobs with a callback":                 "finished IS NULL AND posted > 0",
		"finished jobs with not one callback":             "finished IS NOT NULL AND posted IS NOT 1",
		"jobs with not one reservation":                   "reserves IS NOT 1",
		"unfinished jobs that were charged":               "finished IS NULL AND open <> r.reserved",
		"finished jobs with a reservation":                "finished IS NOT NULL AND open <> 0",
		"finished jobs charged otherwise than they spent": "finished IS NOT NULL AND captured <> spent",
	} {
		if n := d.count(killedJobs + which); n != 0 {
			d.t.Errorf("%d %s", n, what)
		}
	}
	if n := d.count("outbox LEFT JOIN bodies ON delivery = id WHERE delivery IS NULL"); n != 0 {
		d.t.Errorf("%d callbacks without a body", n)
	}
	if n := d.count("outbox WHERE state = 'pending' AND (organization, receiver) NOT IN (SELECT organization, receiver FROM lanes)"); n != 0 {
		d.t.Errorf("%d callbacks without a waiter", n)
	}
	b := d.balance(d.first)
	spent := 0
	if err := d.db.reads.QueryRowContext(d.t.Context(), "SELECT coalesce(sum(spent), 0) FROM resolutions").Scan(&spent); err != nil {
		d.t.Fatal(err)
	}
	open := int64(d.count("resolutions WHERE finished IS NULL")) * killReserve
	if want := (state.Balance{Available: killGrant - int64(spent) - open, Reserved: open}); b != want {
		d.t.Errorf("balance %+v, want %+v", b, want)
	}
}

// killedJobs are the jobs with what the outbox and the ledger say of each.
const killedJobs = `resolutions r
	LEFT JOIN (SELECT resolution, count(*) AS posted FROM outbox GROUP BY 1) o ON o.resolution = r.id
	LEFT JOIN (SELECT resolution, sum(kind = 'reserve') AS reserves, sum(reserved) AS open, sum(iif(kind = 'capture', credits, 0)) AS captured
		FROM ledger GROUP BY 1) l ON l.resolution = r.id
	WHERE `
