package runview

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leadetl/leadetl/pipeline/pace"
	"github.com/leadetl/leadetl/pipeline/stats"
)

// inFlight is the progress of a run with so many calls in flight.
func inFlight(calls *int) *stats.Progress {
	p := &stats.Progress{Calls: &stats.CallCounters{}}
	p.Calls.Paced(func() pace.Snapshot { return pace.Snapshot{InFlight: *calls} })
	return p
}

func TestFinishingCountsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, interrupt := context.WithCancel(t.Context())
		calls := 12
		w := &watcher{progress: inFlight(&calls), started: time.Now(), finishing: finishing{interrupted: ctx.Done(), timeout: 30 * time.Second}}
		look := func(columns int, want string) {
			t.Helper()
			if got := w.text(columns); got != want {
				t.Errorf("in %d columns %q, want %q", columns, got, want)
			}
		}
		look(120, "0 B  0 rows  0 calls/s  0 credits")
		interrupt()
		look(120, "finishing 12 calls, up to 30s; press Ctrl-C again to leave them unknown")
		time.Sleep(12 * time.Second)
		calls = 1
		look(80, "finishing 1 call, up to 18s; press Ctrl-C again to leave them unknown")
		look(40, "finishing 1 call, up to 18s")
		time.Sleep(time.Minute)
		look(40, "finishing 1 call, up to 0s")
		calls = 0
		look(40, "0 B  0 rows  0 calls/s  0 credits")
	})
}

func TestFinishingIsLoggedOnce(t *testing.T) {
	for _, c := range []struct {
		name  string
		quiet bool
		calls int
		want  string
	}{
		{"a log", false, 3, `msg="finishing 3 calls, up to 30s; press Ctrl-C again to leave them unknown"`},
		{"a quiet log", true, 3, `msg="finishing 3 calls, up to 30s; press Ctrl-C again to leave them unknown"`},
		{"no call in flight", false, 0, ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			var out strings.Builder
			ctx, interrupt := context.WithCancel(t.Context())
			stop := Display{Terminal: &out, Log: slog.New(slog.NewTextHandler(&out, nil)), Quiet: c.quiet}.Run(ctx, inFlight(&c.calls), 30*time.Second)
			time.Sleep(time.Second)
			interrupt()
			time.Sleep(5 * time.Second)
			stop()
			if lines := strings.Count(out.String(), "\n"); !strings.Contains(out.String(), c.want) || lines != strings.Count(c.want, "finishing") {
				t.Errorf("%s: %d lines, want one with %s:\n%s", c.name, lines, c.want, &out)
			}
		})
	}
}
