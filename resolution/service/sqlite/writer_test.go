package sqlite

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leadetl/leadetl/internal/groupcommit"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/service/state"
)

// hold keeps the writer busy until release is called, so that what is asked
// for meanwhile becomes one group.
func hold(s *Store) (release func()) {
	held, free := make(chan struct{}), make(chan struct{})
	done := make(chan error)
	go func() {
		done <- s.db.writer.Write(context.Background(), func(*tx) error {
			close(held)
			<-free
			return nil
		})
	}()
	<-held
	return func() { close(free); <-done }
}

// queued returns when n changes wait.
func queued(s *Store, n int) {
	for s.db.writer.Waiting() < n {
		runtime.Gosched()
	}
}

// together calls f(0) … f(n-1), which each make one change, in one group.
func together(s *Store, n int, f func(i int) error) []error {
	results := make([]error, n)
	release := hold(s)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { results[i] = f(i) })
		queued(s, i+1) // in this order
	}
	release()
	all.Wait()
	return results
}

func TestTenCallsOnTheLastCredit(t *testing.T) {
	s := serve(t, t.TempDir())
	for _, c := range []struct {
		name string
		run  func(n int, f func(int) error) []error
	}{
		{"in one group", func(n int, f func(int) error) []error { return together(s, n, f) }},
		{"as they come", func(n int, f func(int) error) []error {
			results := make([]error, n)
			var all sync.WaitGroup
			for i := range n {
				all.Go(func() { results[i] = f(i) })
			}
			all.Wait()
			return results
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			org := organization(t, s, c.name, 2)
			paid := 0
			for _, err := range c.run(10, func(int) error {
				_, err := s.Settle(t.Context(), state.Charge{Organization: org, Credits: 2, At: noon})
				return err
			}) {
				if err == nil {
					paid++
				} else if !errors.As(err, new(*state.InsufficientError)) {
					t.Error(err)
				}
			}
			if b, err := s.Balance(t.Context(), org); paid != 1 || err != nil || b.Available != 0 {
				t.Errorf("%d paid, %d left (%v); want 1 and 0", paid, b.Available, err)
			}
			audit(t, s)
		})
	}
}

// Of a group the database refuses the changes at fault, not those beside them.
func TestFaultIsOneChanges(t *testing.T) {
	s := serve(t, t.TempDir())
	org := organization(t, s, "Acme", 10)
	for i, err := range together(s, 4, func(i int) error {
		if i == 1 {
			return s.db.writer.Write(t.Context(), func(t *tx) error { return t.sql.Exec("INSERT INTO nowhere VALUES (1)") })
		}
		if i == 2 { // refused when the group ends, for its sums do not fit the ledger's check
			return s.db.writer.Write(t.Context(), func(t *tx) error {
				t.sql.Wrote = true
				t.ledger.Add(0, org, "gift", 1, 1, 0, nil, nil, nil, nil)
				return nil
			})
		}
		_, err := s.Settle(t.Context(), state.Charge{Organization: org, Credits: 1, At: noon})
		return err
	}) {
		// Neither passes with time, so a caller is not told to try again.
		if want := i == 1 || i == 2; errors.Is(err, resolution.ErrUnavailable) || want != (err != nil) {
			t.Errorf("change %d: %v", i, err)
		}
	}
	if b, err := s.Balance(t.Context(), org); err != nil || b.Available != 8 {
		t.Errorf("%d credits left (%v), want 8", b.Available, err)
	}
	audit(t, s)
}

func TestCancelled(t *testing.T) {
	s := serve(t, t.TempDir())
	org := organization(t, s, "Acme", 10)
	settle := func(ctx context.Context) error {
		_, err := s.Settle(ctx, state.Charge{Organization: org, Credits: 1, At: noon})
		return err
	}
	ctx, cancel := context.WithCancel(t.Context())

	// Waiting for its turn: it is not made, and the caller does not wait.
	release := hold(s)
	result := make(chan error)
	go func() { result <- settle(ctx) }()
	queued(s, 1)
	cancel()
	if err := <-result; !errors.Is(err, context.Canceled) {
		t.Errorf("while it waits: %v, want Canceled", err)
	}
	release()

	// Before it was asked for.
	if err := settle(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("before: %v, want Canceled", err)
	}

	// In its turn: it is made, and the caller is told so.
	ctx, cancel = context.WithCancel(t.Context())
	err := s.db.writer.Write(ctx, func(tx *tx) error {
		cancel()
		return tx.enter(entry{organization: org, kind: state.Capture, credits: 1, at: noon})
	})
	if err != nil {
		t.Errorf("in its turn: %v, want nil", err)
	}
	if b, err := s.Balance(t.Context(), org); err != nil || b.Available != 9 {
		t.Errorf("%d credits left (%v), want 9: one change was made", b.Available, err)
	}
}

// What was under way when the state closes is either made and said so, or
// refused and not made.
func TestCloseUnderLoad(t *testing.T) {
	dir := t.TempDir()
	s, err := Serve(dir)
	if err != nil {
		t.Fatal(err)
	}
	const given = 1_000_000
	org := organization(t, s, "Acme", given)
	var made atomic.Int64
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			for {
				_, err := s.Settle(context.Background(), state.Charge{Organization: org, Credits: 1, At: noon})
				if err != nil {
					if !errors.Is(err, resolution.ErrUnavailable) {
						t.Error(err)
					}
					return
				}
				made.Add(1)
			}
		})
	}
	for made.Load() < 200 {
		runtime.Gosched()
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	all.Wait()
	s = serve(t, dir)
	if b, err := s.Balance(t.Context(), org); err != nil || b.Available != given-made.Load() {
		t.Errorf("%d credits left (%v), %d charges were made", b.Available, err, made.Load())
	}
	audit(t, s)
}

func TestClosed(t *testing.T) {
	s, err := Serve(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.ChangeCredits(t.Context(), state.CreditChange{Organization: 1, Credits: 1, At: noon}); !errors.Is(err, resolution.ErrUnavailable) {
		t.Errorf("change: %v, want ErrUnavailable", err)
	}
	if _, err := s.Balance(t.Context(), 1); !errors.Is(err, resolution.ErrUnavailable) {
		t.Errorf("look: %v, want ErrUnavailable", err)
	}
	if err := s.Check(t.Context()); !errors.Is(err, resolution.ErrUnavailable) {
		t.Errorf("check: %v, want ErrUnavailable", err)
	}
}

// A database that refuses is unavailable, and available again once the cause
// has passed; what was refused was not made.
func TestFaultsPass(t *testing.T) {
	pragma := func(s *Store, statement string) {
		// Nothing is under way, so the writer's connection rests.
		if _, err := s.db.writer.Conn().ExecContext(context.Background(), statement); err != nil {
			t.Error(err)
		}
	}
	for _, c := range []struct {
		name       string
		begin, end func(s *Store)
		want       string
	}{
		{"disk full",
			func(s *Store) { pragma(s, "PRAGMA max_page_count = 1") }, // of the present size, that is
			func(s *Store) { pragma(s, "PRAGMA max_page_count = 1000000000") },
			"full"},
		{"read-only",
			func(s *Store) { pragma(s, "PRAGMA query_only = 1") },
			func(s *Store) { pragma(s, "PRAGMA query_only = 0") },
			"readonly"},
		{"locked by another process for too long", nil, nil, "locked"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			s := serve(t, dir)
			org := organization(t, s, "Acme", 10)
			if c.begin == nil {
				other, err := groupcommit.Connect(filepath.Join(dir, DatabaseName))
				if err != nil {
					t.Fatal(err)
				}
				defer other.Close()
				run := func(statement string) {
					if _, err := other.ExecContext(context.Background(), statement); err != nil {
						t.Error(err)
					}
				}
				s.db.writer.Conn().SetPatience(5 * time.Millisecond)
				c.begin = func(*Store) { run("BEGIN IMMEDIATE") }
				c.end = func(*Store) { run("ROLLBACK") }
			}
			body := make([]byte, 100_000)
			_, _ = rand.Read(body) // which never fails; zeros would be packed into a free page
			charge := state.Charge{Organization: org, Credits: 1, Reply: &state.Reply{Status: 200, Body: body}, At: noon}
			c.begin(s)
			for range 3 {
				_, err := s.Settle(t.Context(), charge)
				if !errors.Is(err, resolution.ErrUnavailable) || !strings.Contains(fmt.Sprint(err), c.want) {
					t.Errorf("got %v, want ErrUnavailable: %s", err, c.want)
				}
			}
			if b, err := s.Balance(t.Context(), org); err != nil || b.Available != 10 {
				t.Errorf("meanwhile %d credits (%v), want 10", b.Available, err)
			}
			c.end(s)
			if left, err := s.Settle(t.Context(), charge); err != nil || left != 9 {
				t.Errorf("afterwards %d left (%v), want 9", left, err)
			}
			audit(t, s)
		})
	}
}

// A damaged file is an error that says so, for whoever looks and for whoever
// changes something.
func TestDamaged(t *testing.T) {
	dir := t.TempDir()
	s, err := Serve(dir)
	if err != nil {
		t.Fatal(err)
	}
	org := organization(t, s, "Acme", 10)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, DatabaseName)
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	// The schema stays readable, its tables do not.
	var roots int64
	c, err := groupcommit.Connect(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.QueryRowContext(t.Context(), "SELECT min(rootpage) FROM sqlite_schema WHERE name IN ('organizations', 'ledger')").Scan(&roots); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	const page = 4096
	garbage := []byte(strings.Repeat("garbage ", page/8))
	for at := (roots - 1) * page; at < info.Size(); at += page {
		if _, err := f.WriteAt(garbage, at); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	s, err = Serve(dir)
	if err == nil {
		_, look := s.Balance(t.Context(), org)
		_, change := s.Settle(t.Context(), state.Charge{Organization: org, Credits: 1, At: noon})
		for _, err := range []error{look, change} {
			if !errors.Is(err, resolution.ErrUnavailable) || !strings.Contains(err.Error(), "malformed") {
				t.Errorf("got %v, want ErrUnavailable: malformed", err)
			}
		}
		err = s.Close()
	}
	if err != nil && !strings.Contains(err.Error(), "malformed") {
		t.Error(err)
	}
}
