package runview

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/leadetl/leadetl/internal/figures"
	"github.com/leadetl/leadetl/pipeline/stats"
)

// againAdvice says how to skip waiting for the calls in flight.
const againAdvice = "press Ctrl-C again to leave them unknown"

// finishing describes what an interrupted run waits for: the calls in flight,
// each for at most the call timeout.
type finishing struct {
	interrupted <-chan struct{} // nil: never interrupted
	timeout     time.Duration
	once        sync.Once
	since       time.Time
}

// calls describes the calls to wait for; empty if there are none.
func (f *finishing) calls(now time.Time, c *stats.CallSnapshot) string {
	select {
	case <-f.interrupted:
		f.once.Do(func() { f.since = now })
	default:
		return ""
	}
	if c == nil || c.InFlight == 0 {
		return ""
	}
	left := max(f.timeout-now.Sub(f.since), 0)
	return "finishing " + figures.Plural(c.InFlight, "call") + ", up to " + figures.Compact(left)
}

// finishingText formats calls within a width, with the advice if there is
// space.
func finishingText(calls string, columns int) string {
	if full := calls + "; " + againAdvice; len(full) <= columns {
		return full
	}
	return calls
}

// warn logs once, when ctx ends, what the run waits for. stop ends it.
func (f *finishing) warn(ctx context.Context, p *stats.Progress, log *slog.Logger) (stop func()) {
	done := make(chan struct{})
	cancel := context.AfterFunc(ctx, func() {
		defer close(done)
		if calls := f.calls(time.Now(), p.Snapshot().Calls); calls != "" {
			log.Warn(calls + "; " + againAdvice)
		}
	})
	return func() {
		if !cancel() {
			<-done
		}
	}
}
