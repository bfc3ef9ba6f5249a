package world

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/leadetl/leadetl/internal/groupcommit"
	"github.com/leadetl/leadetl/internal/retry"
	"github.com/leadetl/leadetl/resolution/service/admission"
	"github.com/leadetl/leadetl/resolution/service/callback"
	"github.com/leadetl/leadetl/resolution/service/limit"
	"github.com/leadetl/leadetl/resolution/service/sqlite"
	"github.com/leadetl/leadetl/resolution/service/state"
)

const (
	// mostAhead is how far a clock is wrong at most. Two such steps are less than the 30 days for
	// which results are kept.
	mostAhead = 10 * 24 * time.Hour
	// longestWait is more than an organization that stores too much waits.
	longestWait = 26 * time.Hour
	// noticed is how soon a service follows a clock that was set back.
	noticed = 7 * time.Second
	// longestHeld is more than a search waits for another attempt, or is leased.
	longestHeld = 61 * time.Second
	// certain is how long before its end an idempotency key still counts for sure.
	certain = time.Minute
)

// steps are by how much clocks are wrong.
var steps = []time.Duration{time.Minute, 50 * time.Minute, 5 * time.Hour, 25 * time.Hour, mostAhead}

// setClocks sets the clock of a life, and then sets it again or right.
func (h *history) setClocks(ctx context.Context) {
	for i := range 2 {
		select {
		case <-time.After(time.Duration(h.world.Draw("clock rests", h.lives, i) % uint64(1500*time.Millisecond))):
		case <-ctx.Done():
			return
		}
		ahead := h.wrongBy("clock step", h.lives, i)
		if i > 0 && h.world.Below(2, "set right", h.lives) == 0 {
			ahead = 0
		}
		h.setClock(ahead)
	}
}

// wrongBy is by how much a clock is wrong.
func (h *history) wrongBy(of ...any) time.Duration {
	n := h.world.Below(2*len(steps)+1, of...)
	switch {
	case n < len(steps):
		return steps[n]
	case n < 2*len(steps):
		return -steps[n-len(steps)]
	}
	return 0
}

// setClock sets the clock. A call that is under way, or of which nobody knows what became, is not
// asked again if its idempotency key may be forgotten by now.
func (h *history) setClock(ahead time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.forget()
	h.world.Note("the clock is %s ahead, it was %s", ahead, h.clock.Ahead())
	if ahead > h.clock.Ahead() {
		saw(clockAhead)
	} else if ahead < h.clock.Ahead() {
		saw(clockBack)
		h.setBack = time.Now()
	}
	h.clock.Set(ahead)
	h.sets++
	h.forget()
}

// forget notes which idempotency keys may be forgotten by now: a call that is under way may be
// answered at what the clock says now. The caller holds the lock.
func (h *history) forget() {
	now := h.clock.Now().Round(0)
	for _, g := range h.given {
		if g.underWay > 0 && now.Before(g.asked) {
			g.asked = now
		}
		if !g.forgotten && !g.asked.IsZero() && now.Sub(g.asked) >= state.ReplyLife-certain {
			saw(aForgottenKey)
			g.forgotten, g.stray = true, g.underWay+g.doubtful
		}
	}
}

// mayAsk reports whether a thing may be asked for: once its idempotency key may be forgotten, it
// would be given again. The caller holds the lock.
func (h *history) mayAsk(g *given) bool {
	h.forget()
	if now := h.clock.Now().Round(0); g.asked.IsZero() || now.Before(g.asked) {
		g.asked = now
	}
	return !g.forgotten
}

// expires says how long a key of a world with a wrong clock may be used.
func (h *history) expires(number int) time.Time {
	if !h.plan.wrongClock || h.world.Below(3, "expires", number) > 0 {
		return time.Time{}
	}
	return h.clock.Now().Add([]time.Duration{time.Hour, 30 * time.Hour}[h.world.Below(2, "expires after", number)]).Round(0)
}

// expired reports whether a key may have expired at a time.
func (k *key) expired(at time.Time) bool { return !k.expires.IsZero() && !at.Before(k.expires) }

// limits are those of the world.
func (h *history) limits() admission.Limits {
	l := admission.Limits{ActiveJobs: 3}
	if h.plan.wrongClock {
		l.Single, l.KeptBytes = limit.Rate{Events: 300, Per: time.Minute, Burst: 5}, 2000
	}
	return l
}

// mostRefused is longer than an organization waits for a call that its rate admits.
const mostRefused = time.Second

// tooMany checks the refusal of an organization that asks too much: it may ask again soon,
// whatever the clock says. The caller holds the lock.
func (h *history) tooMany(o *organization, r reply) (wrong string) {
	seconds, err := strconv.ParseInt(r.header.Get("Retry-After"), 10, 32)
	wait, most := time.Duration(seconds)*time.Second, time.Minute
	if strings.Contains(string(r.body), "bytes") {
		saw(tooMuchKept)
		most = longestWait
	} else {
		saw(tooFast)
		if o.refused.IsZero() {
			o.refused = time.Now()
		}
		if since := time.Since(o.refused); since > mostRefused {
			return fmt.Sprintf("an organization is too fast for %s", since)
		}
	}
	if wait > most || wait <= 0 || err != nil {
		return fmt.Sprintf("an organization that asks too much waits %s (%v)", wait, err)
	}
	return ""
}

// checkWaits checks that nothing waits longer than it may, in a service that has had the time to
// see that its clock was set back.
func (h *history) checkWaits(ctx context.Context, deliveries []state.Delivery) {
	if h.setBack.IsZero() || time.Since(h.setBack) < noticed || h.troubled() {
		return
	}
	schedule := callback.DefaultSchedule()
	for _, d := range deliveries {
		longest := schedule[min(d.Attempts, len(schedule)-1)] * 11 / 10
		if d.Attempts > 0 && d.Status != 0 {
			longest = max(longest, retry.MaxAfter)
		}
		if wait := d.Due.Sub(h.clock.Now().Round(0)); d.State == state.Pending && wait > longest+time.Second {
			h.wrongly("a callback waits %s after %d attempts", wait, d.Attempts)
		}
	}
	db, err := sql.Open("sqlite", groupcommit.URI(filepath.Join(h.dir, sqlite.DatabaseName), "query_only(1)"))
	var held int64
	if err == nil {
		err = errors.Join(db.QueryRowContext(ctx, "SELECT coalesce(max(held), 0) FROM resolutions WHERE finished IS NULL").Scan(&held), db.Close())
	}
	h.unexpected("read when searches are free", err)
	if wait := time.UnixMilli(held).Sub(h.clock.Now().Round(0)); wait > longestHeld {
		h.wrongly("a search waits %s", wait)
	}
}
