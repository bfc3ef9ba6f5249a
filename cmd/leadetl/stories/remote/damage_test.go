//go:build unix

package remote

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/clitest"
	"github.com/leadetl/leadetl/internal/testkit/badservice"
)

// damagedRows are the rows of the run whose state is damaged, and damagedBudget its budget.
const (
	damagedRows   = 600
	damagedBudget = 500
)

// TestDamagedState damages the state of a killed run. The same command stops and buys nothing. doctor says what
// is lost. After its repair the command resumes, no budget is exceeded, and what it could read is not bought again.
func TestDamagedState(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("kills the program")
	}
	service, url := clitest.StartService(t, badservice.Options{Credits: -1, Matched: 1, Latency: 2 * time.Millisecond})
	j := clitest.NewRemoteJob(t, "ip_to_company", url, "ip\n"+strings.TrimPrefix(clitest.AddressList(damagedRows), "ip\n"),
		"--concurrency", "4", "--set", "rows_per_part=100", "--max-credits", "500")
	p := j.Start()
	for service.Spent() < 300 && !p.Ended() {
		time.Sleep(time.Millisecond)
	}
	if !p.Kill() {
		t.Fatalf("it ended by itself: %s", p.Said.String())
	}
	spent, saved := service.Spent(), t.TempDir()
	copyTo := func(from, to string) {
		t.Helper()
		if err := errors.Join(os.RemoveAll(to), os.CopyFS(to, os.DirFS(from))); err != nil {
			t.Fatal(err)
		}
	}
	copyTo(j.Folder, saved)
	for _, c := range []struct {
		name, pattern string
		damage        func(text []byte, at int) []byte // at a tenth of the records
		code          int                              // of the run after the repair
	}{
		{"a wrong length", "state/answers/*.log", func(text []byte, at int) []byte { text[at+4] ^= 1; return text }, cli.ExitBudget},
		{"a sector", "state/answers/*.log", func(text []byte, at int) []byte { clear(text[at:][:512]); return text }, cli.ExitBudget},
		{"cut", "state/answers/*.log", func(text []byte, at int) []byte { return text[:at+100] }, cli.ExitBudget},
		{"no log", "state/answers/*.log", nil, cli.ExitBudget},
		{"the journal", "state/runs/*/journal/0000000000", func(text []byte, at int) []byte { text[60] ^= 1; return text }, cli.ExitBudget},
	} {
		t.Run(c.name, func(t *testing.T) {
			j := *j
			j.TB = t
			copyTo(saved, j.Folder)
			found, err := filepath.Glob(j.Path(c.pattern))
			if err != nil || len(found) != 1 {
				t.Fatalf("%q, %v", found, err)
			}
			damageFile(t, found[0], c.damage)
			before := service.Spent()
			if said := j.Run(cli.ExitFailure).Said.String(); !strings.Contains(said, "damaged") || !strings.Contains(said, "leadetl doctor --state") {
				t.Errorf("the run says:\n%s", said)
			}
			doctor := func(want int, flags ...string) {
				p := clitest.StartProgram(t, append([]string{"doctor", "--state", j.Path("state")}, flags...)...)
				if got := p.Code(); got != want {
					t.Errorf("doctor %q ended with %d, want %d:\n%s%s", flags, got, want, p.Printed.String(), p.Said.String())
				}
				t.Logf("doctor %q:\n%s", flags, p.Printed.String())
			}
			doctor(cli.ExitFailure)
			if service.Spent() != before {
				t.Errorf("%d credits were spent on a damaged state", service.Spent()-before)
			}
			doctor(cli.ExitDone, "--repair")
			said := j.Run(c.code).Said.String()
			const bound = 80 // of what is counted too much
			if more := service.Spent() - before; spent+more > damagedBudget || spent+more < damagedBudget-bound {
				t.Errorf("%d credits were spent before the damage and %d after it, the budget is %d:\n%s", spent, more, damagedBudget, said)
			}
		})
	}
}

// damageFile changes a file, or removes it.
func damageFile(t *testing.T, path string, change func(text []byte, at int) []byte) {
	t.Helper()
	if change == nil {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		return
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	records := len(strings.TrimRight(string(text), "\x00"))
	if err := os.WriteFile(path, change(text, records/10/512*512), 0o600); err != nil {
		t.Fatal(err)
	}
}
