//go:build unix

package remote

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/clitest"
	"github.com/leadetl/leadetl/internal/figures"
	"github.com/leadetl/leadetl/internal/testkit/badservice"
	"github.com/leadetl/leadetl/pipeline/report"
)

// TestNumbersAfterAKill kills a run of many small parts with calls in flight,
// interrupts the next one and finishes with a third. Table, page and JSON count
// every credit once, as the service's ledger does, and the rows of the whole
// input.
func TestNumbersAfterAKill(t *testing.T) {
	t.Parallel()
	l := clitest.ProfileList(1200)
	o := badservice.DefaultOptions()
	o.HonourKeys, o.Latency, o.Matched, o.Credits = true, 20*time.Millisecond, 0.75, -1
	s, url := clitest.StartService(t, o)
	j := clitest.NewRemoteJob(t, "enrichment", url, l.CSV, "--set", "network_hosts=network.example", "--set", "rows_per_part=30", "--concurrency", "16", "--idempotent", "--log-level", "info")
	until := func(p *clitest.Process, calls int) {
		t.Helper()
		for end := time.Now().Add(time.Minute); s.Seen() < calls; time.Sleep(time.Millisecond) {
			if p.Ended() || time.Now().After(end) {
				t.Fatalf("%d calls:\n%s", s.Seen(), clitest.Tail(p.Said.String()))
			}
		}
	}
	p := j.Start()
	until(p, 300)
	if stat := clitest.Run(t, "answers", "stat", "--json", "--state", j.Path("state")); !regexp.MustCompile(`"unknown":0,"parked":0,"under_way":\d+}`).MatchString(stat) ||
		!strings.Contains(stat, `"outcome":"matched"`) {
		t.Errorf("beside the run: %s", stat)
	}
	if !p.Kill() {
		t.Fatal("the run had ended")
	}
	open := len(j.Unknown())
	if open == 0 {
		t.Fatal("no call was in flight at the kill")
	}

	p = j.Start()
	until(p, 600)
	if err := p.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if code := p.Code(); code != cli.ExitInterrupted {
		t.Fatalf("exit code %d:\n%s", code, clitest.Tail(p.Said.String()))
	}
	finishing := regexp.MustCompile(`level=WARN msg="finishing \d+ calls?, up to 30s; press Ctrl-C again to leave them unknown"`)
	if told := finishing.FindAllString(p.Said.String(), -1); len(told) != 1 {
		t.Errorf("%d lines about the calls in flight, want one:\n%s", len(told), clitest.Tail(p.Said.String()))
	}
	// Some of the unknown calls may be of rows that were not reached again.
	_, maybe := requireNumbers(t, s, j.Path("out"), p.Said.String())
	if most := int64(2 * open); maybe > most {
		t.Errorf("%d credits for calls without an answer, of %d calls at most", maybe, open)
	}
	at := requireRows(t, p.Said.String(), j.Path("out"))
	if at.Rows < 300 || at.Rows > 1000 || at.Of < 1100 || at.Of > 1300 {
		t.Errorf("%+v after 600 calls, of %d rows", at, l.Rows)
	}

	p = j.Run(cli.ExitDone)
	if paid, maybe := requireNumbers(t, s, j.Path("out"), p.Printed.String()); paid != s.Spent() || maybe != 0 {
		t.Errorf("%d credits and %d for calls without an answer, want %d", paid, maybe, s.Spent())
	}
}

// requireNumbers holds table, page and JSON against each other and the ledger.
func requireNumbers(t *testing.T, s *badservice.Service, out, table string) (paid, maybe int64) {
	t.Helper()
	r := clitest.LastReport(t, out)
	paid = r.Service.Calls.Credits + r.Service.Calls.EarlierCredits
	maybe = r.Service.Budget.Credits - paid
	if ledger := s.Spent(); r.Service.Calls.EarlierCredits == 0 || paid > ledger || paid+maybe < ledger {
		t.Errorf("%d credits by earlier runs, %d by this one, and maybe %d; the ledger has %d", r.Service.Calls.EarlierCredits, r.Service.Calls.Credits, maybe, ledger)
	}
	want := "  " + figures.Grouped(r.Service.Calls.Credits) + "  " + figures.Grouped(paid) + " including earlier runs of this job"
	if maybe > 0 {
		want += ", up to " + figures.Grouped(maybe) + " more for calls without an answer"
	}
	if line := regexp.MustCompile(`(?m)^  credits .*$`).FindString(table); !strings.HasSuffix(line, want) {
		t.Errorf("the table has %q, want %q", line, want)
	}
	page, err := os.ReadFile(out + "/_report.html")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"paid by earlier runs " + figures.Grouped(r.Service.Calls.EarlierCredits), "paid by this run " + figures.Grouped(r.Service.Calls.Credits)} {
		if !strings.Contains(string(page), want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	return paid, maybe
}

// requireRows holds the rows of the table of a stopped run against the JSON: those that were read
// against those that are done, and what is known of all.
func requireRows(t *testing.T, said, out string) report.Progress {
	t.Helper()
	requireSum(t, said)
	done := clitest.LastReport(t, out).Progress
	row := regexp.MustCompile(`(?m)^  rows +([\d,]+)  (?:of about ([\d,]+) )?from`).FindStringSubmatch(said)
	if row == nil {
		t.Fatalf("no rows in\n%s", clitest.Tail(said))
	}
	read, err := strconv.ParseInt(strings.ReplaceAll(row[1], ",", ""), 10, 64)
	if err != nil || read < done.Rows || read > done.Of || read < done.Of && row[2] != figures.Grouped(done.Of) {
		t.Errorf("the table says %q, the JSON %+v", row[0], done)
	}
	return done
}

// TestLongerListAfterAKill: a killed run continues with a longer suppression list.
// Only parts with somebody who is listed since are made again, of stored answers.
func TestLongerListAfterAKill(t *testing.T) {
	t.Parallel()
	l := clitest.ProfileList(900)
	o := badservice.DefaultOptions()
	o.HonourKeys, o.Latency, o.Credits = true, 10*time.Millisecond, -1
	s, url := clitest.StartService(t, o)
	j := clitest.NewRemoteJob(t, "enrichment", url, l.CSV, "--set", "network_hosts=network.example", "--set", "rows_per_part=30", "--concurrency", "8", "--idempotent", "--log-level", "info")
	var keys []string // in the order of the rows
	for line := range strings.Lines(l.CSV) {
		if key := regexp.MustCompile(`network\.example/in/[a-z0-9-]+`).FindString(line); key != "" {
			keys = append(keys, key)
		}
	}
	lists := j.Path("lists.txt")
	suppress := func(some ...string) {
		t.Helper()
		if err := os.WriteFile(lists, []byte(strings.Join(some, "\n")+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	suppress(keys[2])
	p := j.Start("--suppress", lists)
	for end := time.Now().Add(time.Minute); s.Seen() < 400 && !p.Ended() && time.Now().Before(end); time.Sleep(time.Millisecond) {
	}
	if !p.Kill() {
		t.Fatalf("the run had ended:\n%s", clitest.Tail(p.Said.String()))
	}
	suppress(keys[2], keys[70], "stranger@mail.example")
	p = j.Run(cli.ExitDone, "--suppress", lists)
	again := regexp.MustCompile(`somebody who is listed since, and will be made again" part=(\S+)`).FindAllStringSubmatch(p.Said.String(), -1)
	earlier := regexp.MustCompile(`(?m)^  files .*, (\d+) from earlier runs$`).FindStringSubmatch(p.Printed.String())
	if len(again) == 0 || len(again) > 2 || earlier == nil {
		t.Errorf("%d parts are made again:\n%s\n%s", len(again), clitest.Tail(p.Said.String()), p.Printed)
	}
	for key, times := range s.BilledKeys() {
		if times != 1 {
			t.Errorf("%s is billed %d times", key, times)
		}
	}
	j.Run(cli.ExitDone, "--suppress", lists, "--out", j.Path("again"), "--offline")
	clitest.RequireSameFiles(t, j.Path("again"), j.Path("out"))
}
