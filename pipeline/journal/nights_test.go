package journal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leadetl/leadetl/internal/appendlog"
	"github.com/leadetl/leadetl/internal/disk"
	"github.com/leadetl/leadetl/internal/filelock"
)

func at(minute int) time.Time { return time.Date(2026, 11, 24, 3, minute, 0, 0, time.UTC) }

func read(t *testing.T, state, out string) *Nights {
	t.Helper()
	n, err := InFolder(disk.Dir(state)).Nights(t.Context(), "job", out)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// finish remembers that a dataset was finished at a minute.
func finish(t *testing.T, state, out string, minute int) {
	t.Helper()
	if err := read(t, state, out).Finished(Night{JobID: out, CompletedAt: at(minute)}); err != nil {
		t.Fatal(err)
	}
}

// before is the dataset that a night is compared with.
func before(t *testing.T, state, out string) string {
	t.Helper()
	if b := read(t, state, out).Before(); b != nil {
		return b.Out
	}
	return ""
}

// TestNightsInOrder: a night that is made anew keeps its place, and one that is remembered late
// has its place by its time.
func TestNightsInOrder(t *testing.T) {
	state := t.TempDir()
	for _, f := range []struct {
		out    string
		minute int
	}{{"monday", 1}, {"wednesday", 3}, {"tuesday", 2}, {"monday", 4}, {"thursday", 5}} {
		finish(t, state, f.out, f.minute)
	}
	for out, want := range map[string]string{"monday": "", "tuesday": "monday", "wednesday": "tuesday", "thursday": "wednesday", "friday": "thursday"} {
		if got := before(t, state, out); got != want {
			t.Errorf("before %s is %q, want %q", out, got, want)
		}
	}
	if err := InFolder(disk.Dir(state)).CheckFormat(); err != nil {
		t.Errorf("a state that has nights alone: %v", err)
	}
}

// TestNightsOfJobsAtOnce: jobs of one name that run at the same time are all remembered.
func TestNightsOfJobsAtOnce(t *testing.T) {
	state := t.TempDir()
	var jobs sync.WaitGroup
	var nights []*Nights
	for i := range 20 {
		nights = append(nights, read(t, state, fmt.Sprint(i)))
	}
	for i, n := range nights {
		jobs.Go(func() {
			if err := n.Finished(Night{JobID: "a", CompletedAt: at(i)}); err != nil {
				t.Error(err)
			}
		})
	}
	jobs.Wait()
	for i := 1; i < len(nights); i++ {
		if got := before(t, state, fmt.Sprint(i)); got != fmt.Sprint(i-1) {
			t.Errorf("before %d is %q", i, got)
		}
	}
}

// TestDamagedNights: the error names the file, which stays as it is.
func TestDamagedNights(t *testing.T) {
	state := t.TempDir()
	finish(t, state, "monday", 1)
	n := read(t, state, "tuesday")
	path := filepath.Join(state, "nights", hashOf("job"))
	if err := os.WriteFile(path, []byte(`[{"out":`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := InFolder(disk.Dir(state)).Nights(t.Context(), "job", "tuesday"); !errors.Is(err, appendlog.ErrDamaged) || !strings.Contains(err.Error(), path) {
		t.Errorf("the error is %v", err)
	}
	if err := n.Finished(Night{JobID: "tuesday", CompletedAt: at(2)}); err == nil {
		t.Error("they are replaced")
	}
}

// TestLockedNights: a lock that another process does not release is waited for some seconds.
func TestLockedNights(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		state := t.TempDir()
		finish(t, state, "monday", 1)
		lock, err := filelock.Folder(filepath.Join(state, "nights"))
		if err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(time.Minute, func() { _ = lock.Release() })
		if err := read(t, state, "tuesday").Finished(Night{JobID: "tuesday"}); !errors.Is(err, filelock.ErrLocked) {
			t.Errorf("locked for a minute: %v", err)
		}
		time.Sleep(time.Minute - 6*time.Second)
		finish(t, state, "tuesday", 2)
	})
}
