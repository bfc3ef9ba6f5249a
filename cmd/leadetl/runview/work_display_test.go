package runview

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leadetl/leadetl/internal/progress"
)

// TestWorkLine: what is said of work, on a terminal and elsewhere.
func TestWorkLine(t *testing.T) {
	for name, c := range map[string]struct {
		unit           string
		done, expected int64
		step           string
		after          time.Duration
		line, log      string
	}{
		"nothing is known":      {"row", 0, 0, "", time.Second, "verifying  0 rows  0 rows/s", `msg=verifying done="0 rows" rate="0 rows/s"`},
		"early":                 {"row", 500, 1000, "", time.Second, "verifying  50.0%  500 rows  500 rows/s", `share=50.0% done="500 rows" rate="500 rows/s"`},
		"with the time left":    {"row", 500, 2000, "", 10 * time.Second, "verifying  25.0%  500 rows  50 rows/s  30s left", `rate="50 rows/s" left="30s left"`},
		"bytes of a step":       {"byte", 5_000_000, 20_000_000, "importing people", 10 * time.Second, "importing people  25.0%  5.0 MB  500.0 kB/s  30s left", `step="importing people" share=25.0% done="5.0 MB"`},
		"more than is expected": {"row", 1200, 1000, "", 10 * time.Second, "verifying  100.0%  1,200 rows  120 rows/s  0s left", "share=100.0%"},
	} {
		t.Run(name, func(t *testing.T) {
			w := &workWatcher{what: "verifying", unit: c.unit, started: time.Unix(0, 0)}
			w.work.Expect(c.expected)
			w.work.Done(c.done)
			if c.step != "" {
				w.work.Step(c.step)
			}
			if got := fit(w.line(time.Unix(0, 0).Add(c.after)), 100); got != c.line {
				t.Errorf("line %q, want %q", got, c.line)
			}
			var out bytes.Buffer
			w.log(slog.New(slog.NewTextHandler(&out, nil)), time.Unix(0, 0).Add(c.after))
			if !strings.Contains(out.String(), c.log) {
				t.Errorf("log %q, want %q", out.String(), c.log)
			}
		})
	}
}

// TestWorkIsLogged: every ten seconds without a terminal, and not if it is quiet.
func TestWorkIsLogged(t *testing.T) {
	for quiet, want := range map[bool]int{false: 2, true: 0} {
		synctest.Test(t, func(t *testing.T) {
			var out bytes.Buffer
			ctx, stop := Display{Log: slog.New(slog.NewTextHandler(&out, nil)), Quiet: quiet}.Work(context.Background(), "verifying", "row")
			progress.Of(ctx).Done(1)
			time.Sleep(25 * time.Second) // the bubble's clock
			stop()
			if got := strings.Count(out.String(), "msg=verifying"); got != want {
				t.Errorf("quiet %v: %d lines, want %d", quiet, got, want)
			}
		})
	}
}
