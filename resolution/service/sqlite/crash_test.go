package sqlite

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
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

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/service/state"
)

// child starts one of the tests called TestChild… in a process of its own,
// with the arguments it finds by childArguments. The test does nothing
// otherwise.
func child(t *testing.T, name string, arguments ...string) (*exec.Cmd, io.ReadCloser) {
	t.Helper()
	c := exec.Command(os.Args[0], "-test.run=^"+name+"$")
	c.Env = append(os.Environ(), "LEADETL_TEST_CHILD="+strings.Join(arguments, "\n"))
	c.Stderr = os.Stderr
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	return c, out
}

func childArguments(t *testing.T) []string {
	given := os.Getenv("LEADETL_TEST_CHILD")
	if given == "" {
		t.Skip("only as another test's child")
	}
	return strings.Split(given, "\n")
}

// crashCharge is the charge for a resolution: what it costs and leaves can be
// told from its random bits.
func crashCharge(org int64, of uuid.UUID, at time.Time) state.Charge {
	bits := of[15]
	c := state.Charge{Organization: org, Key: 1, Resolution: of, Operation: resolution.Enrichment, Credits: int64(1 + bits%3), At: at}
	if bits&0x40 != 0 {
		c.Reply = &state.Reply{Key: sha256.Sum256(of[:]), Status: 200, Body: make([]byte, 10*int(bits))}
	}
	if bits&0x80 != 0 {
		c.Callback = &state.Callback{WebhookID: "msg_" + hex.EncodeToString(of[:]), Organization: org, Resolution: of,
			Receiver: "example.com:443", URL: "https://example.com/", Body: make([]byte, 10*int(bits)), Due: at}
	}
	return c
}

// TestChildSettles settles until it is killed, and prints each resolution once
// its charge is acknowledged.
func TestChildSettles(t *testing.T) {
	args := childArguments(t)
	s, err := Serve(args[0])
	if err != nil {
		t.Fatal(err)
	}
	org, err := strconv.ParseInt(args[1], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	for range 16 {
		go func() {
			for {
				of := uuid.Must(uuid.NewV7())
				if _, err := s.Settle(context.Background(), crashCharge(org, of, time.Now())); err != nil {
					panic(err)
				}
				fmt.Println(of) // one write, so lines stay whole
			}
		}()
	}
	select {}
}

// Killed at any moment, the state holds every acknowledged charge once, each
// charge whole, and the ledger's promise.
func TestKill(t *testing.T) {
	dir := t.TempDir()
	s, err := Serve(dir)
	if err != nil {
		t.Fatal(err)
	}
	org := organization(t, s, "Acme", creditLimit)
	limitedKey(t, s, org, creditLimit) // with id 1
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	rounds := 12
	if n, err := strconv.Atoi(os.Getenv("LEADETL_KILLS")); err == nil {
		rounds = n
	}
	acknowledged := map[uuid.UUID]bool{}
	for round := range rounds {
		c, out := child(t, "TestChildSettles", dir, fmt.Sprint(org))
		lines := bufio.NewScanner(out)
		for after := rand.IntN(500); lines.Scan(); after-- { // what it wrote before it died is read to the end
			of, err := uuid.Parse(lines.Text())
			if err != nil {
				t.Fatalf("the child printed %q", lines.Text())
			}
			acknowledged[of] = true
			if after == 0 {
				if err := c.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := c.Wait(); err == nil || c.ProcessState.ExitCode() != -1 {
			t.Fatalf("the child was not killed: %v", err)
		}
		checkCrashed(t, dir, org, acknowledged)
		if t.Failed() {
			t.Fatalf("after kill %d", round+1)
		}
	}
	t.Logf("%d kills, %d acknowledged charges", rounds, len(acknowledged))
}

func checkCrashed(t *testing.T, dir string, org int64, acknowledged map[uuid.UUID]bool) {
	t.Helper()
	s, err := Serve(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	audit(t, s)
	entries, err := s.Ledger(t.Context(), org, 0, -1)
	if err != nil {
		t.Fatal(err)
	}
	captured := map[uuid.UUID]int64{}
	replies, callbacks := map[string]bool{}, map[string]bool{} // that belong to charges
	for _, e := range entries[1:] {                            // after the grant
		if captured[e.Resolution] != 0 {
			t.Errorf("%v is in the ledger twice", e.Resolution)
		}
		captured[e.Resolution] = e.Credits
		want := crashCharge(org, e.Resolution, e.At)
		if e.Credits != want.Credits {
			t.Errorf("%v took %d credits, not %d", e.Resolution, e.Credits, want.Credits)
		}
		if want.Reply != nil {
			replies[string(want.Reply.Key[:])] = true
		}
		if want.Callback != nil {
			callbacks[want.Callback.WebhookID] = true
		}
	}
	for of := range acknowledged {
		if captured[of] == 0 {
			t.Errorf("%v was acknowledged and is not in the ledger", of)
		}
	}
	if found := column(t, s, "SELECT key FROM replies"); !maps.Equal(found, replies) {
		t.Errorf("%d replies, not the %d of the charges", len(found), len(replies))
	}
	if found := column(t, s, "SELECT webhook FROM outbox"); !maps.Equal(found, callbacks) {
		t.Errorf("%d callbacks, not the %d of the charges", len(found), len(callbacks))
	}
}

// column reads values, which are different ones.
func column(t *testing.T, s *Store, query string) map[string]bool {
	t.Helper()
	all, err := collect(t.Context(), s.db.reads, func(row interface{ Scan(...any) error }) (v string, err error) {
		err = row.Scan(&v)
		return v, err
	}, query)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, v := range all {
		found[v] = true
	}
	return found
}

// TestChildAdministers grants one credit as often as it is told.
func TestChildAdministers(t *testing.T) {
	args := childArguments(t)
	s := administer(t, args[0])
	o, err := s.FindOrganization(t.Context(), "Acme")
	if err != nil {
		t.Fatal(err)
	}
	times, err := strconv.Atoi(args[1])
	if err != nil {
		t.Fatal(err)
	}
	for range times {
		if _, err := s.ChangeCredits(t.Context(), state.CreditChange{Organization: o.ID, Credits: 1, At: noon}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.AddKey(t.Context(), state.Key{Organization: o.ID, Created: noon}); err != nil {
		t.Fatal(err)
	}
}

// An administrator's process works on the state while the service does.
func TestTwoProcesses(t *testing.T) {
	const grants = 100
	dir := t.TempDir()
	s := serve(t, dir)
	org := organization(t, s, "Acme", 1_000_000)
	c, out := child(t, "TestChildAdministers", dir, fmt.Sprint(grants))
	over := make(chan error)
	go func() {
		said, err := io.ReadAll(out)
		if wait := c.Wait(); err == nil && wait != nil {
			err = fmt.Errorf("%w: %s", wait, said)
		}
		over <- err
	}()
	var settled int64
	var all sync.WaitGroup
	stop := make(chan struct{})
	all.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			if _, err := s.Settle(context.Background(), state.Charge{Organization: org, Credits: 1, At: noon}); err != nil {
				t.Error(err)
				return
			}
			settled++
		}
	})
	if err := <-over; err != nil {
		t.Error(err)
	}
	close(stop)
	all.Wait()
	if b, err := s.Balance(t.Context(), org); err != nil || b.Available != 1_000_000+grants-settled {
		t.Errorf("%d credits left (%v) after %d charges beside %d grants", b.Available, err, settled, grants)
	}
	if keys, err := s.Keys(t.Context(), state.KeyChoice{Organization: org}); err != nil || len(keys) != 1 {
		t.Errorf("%d keys (%v), want the administrator's", len(keys), err)
	}
	audit(t, s)
}

// TestChildErrs makes a change that is a programming mistake.
func TestChildErrs(t *testing.T) {
	args := childArguments(t)
	s, err := Serve(args[0])
	if err != nil {
		t.Fatal(err)
	}
	_ = s.db.writer.Write(t.Context(), func(t *tx) error {
		if err := t.enter(entry{organization: 1, kind: state.Grant, credits: 1, at: noon}); err != nil {
			return err
		}
		if args[1] == "panics" {
			panic("the mistake")
		}
		return fmt.Errorf("the mistake") // after it wrote
	})
	fmt.Println("still running")
}

// A mistake in a change ends the process at once and leaves nothing of it: no
// caller is told something that is not so.
func TestMistakes(t *testing.T) {
	for _, how := range []string{"panics", "refuses after it wrote"} {
		t.Run(how, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "state")
			s, err := Serve(dir)
			if err != nil {
				t.Fatal(err)
			}
			org := organization(t, s, "Acme", 1)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			c := exec.Command(os.Args[0], "-test.run=^TestChildErrs$")
			c.Env = append(os.Environ(), "LEADETL_TEST_CHILD="+dir+"\n"+how)
			said, err := c.CombinedOutput()
			if err == nil || !strings.Contains(string(said), "the mistake") || strings.Contains(string(said), "still running") {
				t.Errorf("the process went on (%v):\n%s", err, said)
			}
			s = serve(t, dir)
			if b, err := s.Balance(t.Context(), org); err != nil || b.Available != 1 {
				t.Errorf("%d credits (%v), want 1", b.Available, err)
			}
			audit(t, s)
		})
	}
}
