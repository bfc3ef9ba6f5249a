//go:build unix

package remote

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/clitest"
	"github.com/leadetl/leadetl/cmd/leadetl/runcmd"
	"github.com/leadetl/leadetl/internal/testkit/badservice"
	"github.com/leadetl/leadetl/pipeline/answers"
	"github.com/leadetl/leadetl/resolution"
)

// TestRemoteStops has services that end a run. Each run stops cleanly and,
// once the cause is gone, continues with the same command, and pays for nothing
// twice.
func TestRemoteStops(t *testing.T) {
	t.Parallel()
	const rows = 300
	for _, c := range []struct {
		name   string
		set    func(*badservice.Options)
		before func(*testing.T, *badservice.Service)
		during func(*testing.T, *badservice.Service)
		code   int
		says   string
		again  bool // that a second run stops as the first
		relief func(*testing.T, *badservice.Service)
	}{
		{
			name: "out of credits, as 400",
			set:  func(o *badservice.Options) { o.Credits, o.NoCredits = 100, []int{400} },
			code: cli.ExitBudget, says: "out of credits", again: true,
			relief: func(_ *testing.T, s *badservice.Service) { s.Grant(1000) },
		},
		{
			name: "out of credits, as 402",
			set:  func(o *badservice.Options) { o.Credits, o.NoCredits = 100, []int{402} },
			code: cli.ExitBudget, says: "out of credits", again: true,
			relief: func(_ *testing.T, s *badservice.Service) { s.Grant(1000) },
		},
		{
			name:   "the key is revoked in the middle",
			before: func(_ *testing.T, s *badservice.Service) { s.Deny(100, -1) },
			code:   cli.ExitUsage, says: "done; correct it, then run the same command", again: true,
			relief: func(_ *testing.T, s *badservice.Service) { s.Deny(0, 0) },
		},
		{
			name:   "the service goes away",
			during: stopAfter(100),
			code:   cli.ExitTryAgain, says: "out of reach", again: true,
			relief: startAgain,
		},
		{
			name:   "the service was never there",
			before: func(t *testing.T, s *badservice.Service) { stopAfter(0)(t, s) },
			code:   cli.ExitTryAgain, says: "out of reach",
			relief: startAgain,
		},
		{
			name:   "nothing but 503",
			before: func(_ *testing.T, s *badservice.Service) { s.SetFaults(badservice.Faults{Unavailable: 1}) },
			code:   cli.ExitTryAgain, says: "out of reach",
			relief: func(_ *testing.T, s *badservice.Service) { s.SetFaults(badservice.Faults{}) },
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			o := badservice.DefaultOptions()
			o.Matched = 1
			if c.set != nil {
				c.set(&o)
			}
			s, url := clitest.StartService(t, o)
			j := clitest.NewRemoteJob(t, "ip_to_company", url, clitest.AddressList(rows), "--idempotent", "--set", "rows_per_part=100", "--concurrency", "8", "--set", "give_up_after=2s")
			if c.before != nil {
				c.before(t, s)
			}
			p := j.Start()
			if c.during != nil {
				c.during(t, s)
			}
			if code := p.Code(); code != c.code || !strings.Contains(p.Said.String(), c.says) {
				t.Fatalf("exit code %d, want %d and %q:\n%s", code, c.code, c.says, clitest.Tail(p.Said.String()))
			}
			requireSum(t, p.Said.String())
			if _, err := os.Stat(j.Path("out/_SUCCESS")); err == nil {
				t.Error("a dataset that is not finished says it is")
			}
			billed := len(s.Ledger())
			if c.again {
				j.Run(c.code)
				if len(s.Ledger()) != billed && c.code == cli.ExitBudget {
					t.Errorf("without relief %d answers more were billed", len(s.Ledger())-billed)
				}
			}
			c.relief(t, s)
			j.Run(cli.ExitDone)
			if len(s.Ledger()) != rows || len(s.BilledKeys()) != rows || len(j.Unknown()) > 0 {
				t.Errorf("%d answers are billed, about %d keys, and %d calls unknown; want %d of each, 0", len(s.Ledger()), len(s.BilledKeys()), len(j.Unknown()), rows)
			}
			if d := clitest.ReadDataset(t, j.Path("out")); d.Count(t, "outcome", "matched") != rows {
				t.Errorf("%d rows of %d are matched", d.Count(t, "outcome", "matched"), rows)
			}
		})
	}
}

// requireSum compares the rows of the table of a stopped run with their outcomes.
func requireSum(t *testing.T, said string) {
	t.Helper()
	_, table, found := strings.Cut(said, ", not finished\n")
	counts := map[string]int{}
	for _, m := range regexp.MustCompile(`(?m)^  ([a-z]+(?: [a-z]+)?) +([\d,]+)(?:  |$)`).FindAllStringSubmatch(table, -1) {
		counts[m[1]], _ = strconv.Atoi(strings.ReplaceAll(m[2], ",", ""))
	}
	sum := 0
	for _, name := range []string{"matched", "no match", "rejected", "failed", "suppressed", "skipped", "not yet"} {
		sum += counts[name]
	}
	if !found || counts["rows"] == 0 || sum != counts["rows"] {
		t.Errorf("the table of the stopped run does not add up to %d rows, but to %d:\n%s", counts["rows"], sum, said)
	}
}

// TestRemoteBlip: one call that is denied is asked again.
func TestRemoteBlip(t *testing.T) {
	t.Parallel()
	const rows = 200
	s, url := clitest.StartService(t, badservice.DefaultOptions())
	j := clitest.NewRemoteJob(t, "ip_to_company", url, clitest.AddressList(rows), "--concurrency", "8")
	s.Deny(100, 1)
	j.Run(cli.ExitDone)
	if len(s.BilledKeys()) != len(s.Ledger()) || s.Seen() != rows+1 {
		t.Errorf("%d calls, %d answers are billed about %d keys", s.Seen(), len(s.Ledger()), len(s.BilledKeys()))
	}
}

// stopAfter takes the service away when it has seen so many calls.
func stopAfter(calls int) func(*testing.T, *badservice.Service) {
	return func(t *testing.T, s *badservice.Service) {
		t.Helper()
		clitest.Until(t, "the service is asked", func() bool { return s.Seen() >= calls })
		if err := s.Stop(); err != nil {
			t.Fatal(err)
		}
	}
}

func startAgain(t *testing.T, s *badservice.Service) {
	t.Helper()
	if _, err := s.Start(); err != nil {
		t.Fatal(err)
	}
}

// TestRemoteHalfOpen has a network that swallows everything: connections are
// made, and nothing comes back.
func TestRemoteHalfOpen(t *testing.T) {
	t.Parallel()
	const rows = 100
	o := badservice.DefaultOptions()
	o.Matched = 1
	s, url := clitest.StartService(t, o)
	proxy := clitest.NewToxiproxy(t, url)
	j := clitest.NewRemoteJob(t, "ip_to_company", proxy.URL, clitest.AddressList(rows), "--idempotent", "--concurrency", "8", "--set", "timeout=300ms", "--set", "give_up_after=3s")
	proxy.Poison(clitest.Toxic{Type: "timeout", Stream: "downstream", Toxicity: 1, Attributes: map[string]int{"timeout": 0}})
	if p := j.Run(cli.ExitTryAgain); !strings.Contains(p.Said.String(), "out of reach") {
		t.Errorf("it says\n%s", clitest.Tail(p.Said.String()))
	}
	if len(s.Ledger()) == 0 || len(j.Unknown()) == 0 {
		t.Errorf("%d answers are billed, %d calls unknown", len(s.Ledger()), len(j.Unknown()))
	}
	proxy.Poison()
	j.Run(cli.ExitDone)
	if len(s.Ledger()) != rows || len(j.Unknown()) != 0 {
		t.Errorf("%d answers are billed for %d rows, %d calls unknown", len(s.Ledger()), rows, len(j.Unknown()))
	}
}

// TestRemoteDoubtEnds: a call that broke off and is refused when it is sent
// again has an answer, and nothing is left open.
func TestRemoteDoubtEnds(t *testing.T) {
	t.Parallel()
	o := badservice.DefaultOptions()
	o.Refused, o.Faults.ResetBefore = 1, 1
	s, url := clitest.StartService(t, o)
	j := clitest.NewRemoteJob(t, "ip_to_company", url, clitest.AddressList(3), "--idempotent", "--concurrency", "1")
	p := j.Start()
	clitest.Until(t, "a call has broken off", func() bool { return s.Seen() > 0 })
	s.SetFaults(badservice.Faults{})
	if code := p.Code(); code != cli.ExitRejects {
		t.Fatalf("exit code %d:\n%s", code, clitest.Tail(p.Said.String()))
	}
	if d := clitest.ReadDataset(t, j.Path("out")); len(j.Unknown()) > 0 || d.Count(t, "reason", "refused:validation_error") != 3 {
		t.Errorf("%d calls are unknown; rows %v", len(j.Unknown()), d.Rows)
	}
}

// TestRemoteFullDisk fills the disk that the answers are on. It is one of the
// test's own, in a namespace of its own, where that is allowed.
func TestRemoteFullDisk(t *testing.T) {
	t.Parallel()
	if out, err := exec.Command("unshare", "--mount", "--map-root-user", "sh", "-c", "mount -t tmpfs -o size=1m none /mnt").CombinedOutput(); err != nil {
		t.Skipf("no disk of its own: unshare and mount: %v %s", err, out)
	}
	const rows = 3000
	o := badservice.DefaultOptions()
	o.Matched = 1
	s, url := clitest.StartService(t, o)
	j := clitest.NewRemoteJob(t, "ip_to_company", url, clitest.AddressList(rows), "--idempotent", "--set", "rows_per_part=1000", "--log-level", "warn")
	if err := os.Mkdir(j.Path("state"), 0o700); err != nil {
		t.Fatal(err)
	}
	program, err := exec.LookPath("leadetl")
	if err != nil {
		t.Fatal(err)
	}
	script := `mount -t tmpfs -o size=1m,mode=700 none "$STATE" && { "$@"; first=$?; mount -o remount,size=100m "$STATE" && "$@"; echo "codes $first $?"; }`
	c := exec.Command("unshare", append([]string{"--mount", "--map-root-user", "sh", "-c", script, "sh", program}, j.Args()...)...)
	c.Env = append(os.Environ(), "GORACE="+clitest.Hasty, runcmd.APIKeyVariable+"="+clitest.RemoteKey, "STATE="+j.Path("state"))
	said, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	if !strings.Contains(string(said), "codes 1 0") || !strings.Contains(string(said), "full") {
		t.Errorf("it says\n%s", clitest.Tail(string(said)))
	}
	if len(s.Ledger()) != rows || len(s.BilledKeys()) != rows {
		t.Errorf("%d answers are billed, about %d keys of %d", len(s.Ledger()), len(s.BilledKeys()), rows)
	}
}

// TestRemoteKeysAge: the calls of an earlier night have no answers. They are sent again
// while the service knows their keys, and then no more unless the user wants it.
func TestRemoteKeysAge(t *testing.T) {
	t.Parallel()
	const rows = 10
	for _, c := range []struct {
		name  string
		age   time.Duration
		said  time.Duration // by the service, how long it remembers keys
		flags []string
		job   string // file
		code  int
	}{
		{"a day, and one more day", 25 * time.Hour, 0, []string{"--idempotent"}, "", cli.ExitRejects},
		{"a day, and less", 23 * time.Hour, 0, []string{"--idempotent"}, "", cli.ExitDone},
		{"more days", 25 * time.Hour, 0, []string{"--idempotent=3d"}, "", cli.ExitDone},
		{"more days, but the service says one", 25 * time.Hour, 24 * time.Hour, []string{"--idempotent=3d"}, "", cli.ExitRejects},
		{"ten minutes", time.Hour, 0, []string{"--idempotent=10m"}, "", cli.ExitRejects},
		{"a job of a day", 23 * time.Hour, 0, nil, "idempotent: true\n", cli.ExitDone},
		{"a job of ten minutes", time.Hour, 0, nil, "idempotent: 10m\n", cli.ExitRejects},
		{"not at all", time.Hour, 0, []string{"--idempotent=false"}, "idempotent: true\n", cli.ExitRejects},
		{"from the future", -time.Hour, 0, []string{"--idempotent"}, "", cli.ExitRejects},
		{"old, but wanted", 25 * time.Hour, 0, []string{"--idempotent", "--retry-unknown"}, "", cli.ExitDone},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := badservice.DefaultOptions()
			o.Matched = 1
			s, url := clitest.StartService(t, o)
			list := clitest.AddressList(rows)
			j := clitest.NewRemoteJob(t, "ip_to_company", url, list, append(c.flags, "--max-credits", "20")...)
			if c.job != "" {
				if err := os.WriteFile(j.Path("job.yaml"), []byte(c.job), 0o600); err != nil {
					t.Fatal(err)
				}
				j.Flags = append(j.Flags, "--job", j.Path("job.yaml"))
			}
			store, err := answers.Open(context.Background(), answers.InFolder(j.Path("state/answers")), answers.Options{})
			for _, key := range strings.Fields(list)[1:] {
				q := answers.Question{Scope: answers.Scope{Service: url, Operation: resolution.IPToCompany}, Key: key}
				if err == nil {
					_, err = store.Intent(t.Context(), q, answers.Send{Run: "earlier", At: time.Now().Add(-c.age), KeyWindow: c.said})
				}
			}
			if err = errors.Join(err, store.Close()); err != nil { // each is unknown then
				t.Fatal(err)
			}
			want, unknown := rows, 0
			if c.code != cli.ExitDone {
				want, unknown = 0, rows
			}
			for range 2 { // the same command does not change that
				j.Run(c.code)
				if billed := len(s.Ledger()); billed != want || len(j.Unknown()) != unknown {
					t.Errorf("%d calls are billed and %d unknown, want %d and %d", billed, len(j.Unknown()), want, unknown)
				}
			}
		})
	}
}

// TestRemoteKeysForgotten: a service forgets keys much sooner than the user says, and
// tells so. No call is sent again after that, by this process or the next.
func TestRemoteKeysForgotten(t *testing.T) {
	t.Parallel()
	const rows = 10
	o := badservice.DefaultOptions()
	o.Matched, o.KeyWindow, o.Faults.Failed = 1, time.Second, 1
	s, url := clitest.StartService(t, o)
	j := clitest.NewRemoteJob(t, "ip_to_company", url, clitest.AddressList(rows), "--idempotent", "--set", "rows_per_part=5")
	for range 2 {
		j.Run(cli.ExitRejects)
		if len(s.Ledger()) != rows || len(j.Unknown()) != rows {
			t.Errorf("%d answers are billed, and %d calls unknown, of %d", len(s.Ledger()), len(j.Unknown()), rows)
		}
		s.SetFaults(badservice.Faults{})
	}
}
