//go:build unix

package serve

import (
	"context"
	"errors"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/clitest"
	"github.com/leadetl/leadetl/resolution/service/sqlite"
	"github.com/leadetl/leadetl/resolution/service/state"
)

// TestBackupKilled kills backups of a service under load, and then restores, at
// random moments. A backup is whole or absent, and a state is whole: the one from
// before or the restored one. LEADETL_KILLS is how many of each are killed (default 4).
func TestBackupKilled(t *testing.T) {
	t.Parallel()
	kills := clitest.KillsWanted(t, 4)
	const seed = 20_261_122
	random := rand.New(rand.NewPCG(seed, 0))
	p := clitest.NewPlace(t)
	key := p.Customer("Example Rockets", "10000000")
	fatten(t, p.State)
	s := p.Serve(clitest.Unlimited...)
	ctx, stop := context.WithCancel(t.Context())
	var callers sync.WaitGroup
	for range 3 {
		callers.Go(func() {
			c := clitest.NewCaller(t, s.Public, key)
			for ctx.Err() == nil {
				if a, err := c.Try(ctx, http.MethodPost, "/lead/enrichment", clitest.AskAda, "Idempotency-Key", uuid.NewString()); err == nil && a.Status != http.StatusOK {
					t.Errorf("%d %s", a.Status, a.Raw)
				}
			}
		})
	}
	began := time.Now()
	folder := t.TempDir()
	killAfter(t, clitest.Patience, "admin", "backup", filepath.Join(folder, "first.sqlite"), "--state", p.State)
	took := time.Since(began)
	whole, absent := 0, 0
	for round := 0; round < kills || (whole == 0 || absent == 0) && round < 60; round++ {
		file := filepath.Join(folder, uuid.NewString())
		killAfter(t, time.Duration(random.Int64N(int64(took*3/2))), "admin", "backup", file, "--state", p.State)
		if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
			absent++
			continue
		}
		whole++
		restored := filepath.Join(folder, "state")
		clitest.Run(t, "admin", "restore", file, "--state", restored)
		balanced(t, restored)
		if err := errors.Join(os.RemoveAll(restored), os.Remove(file)); err != nil {
			t.Fatal(err)
		}
	}
	stop()
	callers.Wait()
	if code := s.Stop(syscall.SIGTERM); code != cli.ExitDone {
		t.Errorf("exit code %d\n%s", code, s.Said)
	}

	// The first backup has less in its ledger than the state.
	entries := balanced(t, p.State)
	began = time.Now()
	killAfter(t, clitest.Patience, "admin", "restore", filepath.Join(folder, "first.sqlite"), "--state", filepath.Join(folder, "measured"))
	took = time.Since(began)
	restored := balanced(t, filepath.Join(folder, "measured"))
	killed, done := 0, 0
	for range kills {
		// A state in use, as a service that was killed leaves it.
		grown := balanced(t, p.State)
		killAfter(t, time.Duration(random.Int64N(int64(took*3/2))), "admin", "restore", filepath.Join(folder, "first.sqlite"), "--state", p.State)
		switch n := balanced(t, p.State); n {
		case grown:
			killed++
		case restored:
			done++
			p.Admin("credits", "grant", "Example Rockets", "1")
		default:
			t.Fatalf("%d entries in the ledger; want the %d from before or the %d of the backup", n, grown, restored)
		}
	}
	if restored >= entries || whole == 0 || absent == 0 {
		t.Errorf("%d entries restored over %d, %d backups whole, %d absent: nothing was shown", restored, entries, whole, absent)
	}
	t.Logf("seed %d: %d backups whole, %d absent; %d restores killed before and %d after the state was replaced", seed, whole, absent, killed, done)
}

// fatten makes a state large, so that copying it takes a while.
func fatten(t *testing.T, dir string) {
	t.Helper()
	s, err := sqlite.Administer(dir, false)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	org, err := s.FindOrganization(t.Context(), "Example Rockets")
	if err != nil {
		t.Fatal(err)
	}
	for i := range 400 {
		reply := &state.Reply{Key: [32]byte{1, byte(i), byte(i >> 8)}, Body: []byte(strings.Repeat("a reply ", 16<<10))}
		if _, err := s.Settle(t.Context(), state.Charge{Organization: org.ID, Resolution: uuid.New(), Credits: 1, Reply: reply, At: time.Now()}); err != nil {
			t.Fatal(err)
		}
	}
}

// killAfter runs the program and kills it after a while, if it has not ended.
func killAfter(t *testing.T, after time.Duration, args ...string) {
	t.Helper()
	program, err := exec.LookPath("leadetl")
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(program, args...)
	var said clitest.Output
	c.Stdout, c.Stderr = &said, &said
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	kill := time.AfterFunc(after, func() { _ = c.Process.Kill() })
	defer kill.Stop()
	if err := c.Wait(); err != nil && c.ProcessState.ExitCode() >= 0 {
		t.Fatalf("%s: %v: %s", args, err, &said)
	}
}

// balanced holds the balances of a state to its ledger, and returns the number of
// its entries.
func balanced(t *testing.T, dir string) (n int) {
	t.Helper()
	s, err := sqlite.Administer(dir, false)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	accounts, err := s.Organizations(t.Context())
	if err != nil || len(accounts) == 0 {
		t.Fatalf("%d organizations, %v", len(accounts), err)
	}
	for _, a := range accounts {
		entries, err := s.Ledger(t.Context(), a.Organization.ID, 0, 1<<30)
		if err != nil {
			t.Fatal(err)
		}
		var sum state.Balance
		for _, e := range entries {
			sum.Available += e.Available
			sum.Reserved += e.Reserved
		}
		if sum != a.Balance {
			t.Errorf("%s has %+v, and its ledger says %+v", a.Organization.Name, a.Balance, sum)
		}
		n += len(entries)
	}
	return n
}
