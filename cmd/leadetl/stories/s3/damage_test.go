//go:build unix

package s3

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/clitest"
	"github.com/leadetl/leadetl/internal/testkit/badservice"
)

// TestDamagedStateOnS3 damages the state of a killed run. The same command stops and buys nothing. After the repair of
// doctor it resumes, and its budget is not exceeded.
func TestDamagedStateOnS3(t *testing.T) {
	if testing.Short() {
		t.Skip("kills the program")
	}
	const budget = 500
	m := newMachines(t, 600, badservice.Options{Credits: -1, Matched: 1, Latency: 2 * time.Millisecond}, "--concurrency", "4", "--max-credits", "500")
	p := m.on(t, "a")
	clitest.Until(t, "half is bought", func() bool { return m.service.Spent() > 300 || p.Ended() })
	if !p.Kill() {
		t.Fatalf("the run ended: %s", clitest.Tail(p.Said.String()))
	}
	spent := m.service.Spent()
	for _, pattern := range []string{"state/answers/*/v/*.json", "state/answers/*/log/*.seg", "state/runs/*/journal/*"} {
		found, err := filepath.Glob(m.s3.Object(pattern))
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %q, %v", pattern, found, err)
		}
		at := found[len(found)/2]
		if strings.HasSuffix(pattern, ".json") {
			at = found[len(found)-1]
		}
		text, err := os.ReadFile(at)
		if err != nil {
			t.Fatal(err)
		}
		text[len(text)/2] ^= 1
		if err := os.WriteFile(at, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p = m.on(t, "b")
	if code, said := p.Code(), p.Said.String(); code != cli.ExitFailure || !strings.Contains(said, "damaged") || m.service.Spent() != spent {
		t.Errorf("on a damaged state: exit code %d, %d credits: %s", code, m.service.Spent()-spent, said)
	}
	doctor := func(want int, flags ...string) {
		t.Helper()
		p := clitest.StartProgram(t, append(clitest.OnStore(m.Store, append([]string{"doctor"}, m.State...)...), flags...)...)
		if code := p.Code(); code != want {
			t.Errorf("doctor %q ended with %d, want %d: %s%s", flags, code, want, p.Printed.String(), p.Said.String())
		}
		t.Logf("doctor %q:\n%s", flags, p.Printed.String())
	}
	doctor(cli.ExitFailure)
	doctor(cli.ExitDone, "--repair")
	doctor(cli.ExitDone)
	p = m.on(t, "c")
	if code := p.Code(); code != cli.ExitBudget || m.service.Spent() > budget {
		t.Errorf("after the repair: exit code %d, %d credits were spent before and %d in all: %s", code, spent, m.service.Spent(), clitest.Tail(p.Said.String()))
	}
}
