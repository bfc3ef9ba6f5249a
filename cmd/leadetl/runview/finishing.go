package runview

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/leadetl/leadetl/internal/figures"
	"github.com/leadetl/leadetl/pipeline/stats"
)

// againAdvice says how not to wait for the calls in flight.
const againAdvice = "press Ctrl-C again to leave them unknown"

// finishing is what an interrupted run waits for: the calls that are in flight,
// each for as long as a call may take.
type finishing struct {
	interrupted <-chan struct{} // nil: never
	timeout     time.Duration
	once        sync.Once
	since       time.Time
}

// calls says what is waited for; empty where nothing is.
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

// finishingText is what is waited for in so many columns, with the advice where
// there is room.
func finishingText(calls string, columns int) string {
	if full := calls + "; " + againAdvice; len(full) <= columns {
		return full
	}
	return calls
}

// warn logs once what is waited for when ctx ends, until stop is called.
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
