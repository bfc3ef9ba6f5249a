package pace

import (
	"time"

	"github.com/leadetl/leadetl/internal/retry"
)

// maxBackoff is the longest pause after a refusal without Retry-After.
const maxBackoff = 30 * time.Second

// pause is a time without calls, because the service asked for it.
type pause struct {
	until  time.Time
	length time.Duration // of the present or the last pause
	rounds int           // refusals in a row without Retry-After
	beyond time.Duration // what the service asked for, if more than MaxPause
}

func (p *pause) active(now time.Time) bool { return now.Before(p.until) }

// refused begins or prolongs the pause. first says that the call is the first
// refused one of its round; the others of the round can only prolong the pause.
func (p *pause) refused(now time.Time, ask time.Duration, first bool, o *Options) {
	if ask <= 0 {
		if !first {
			return
		}
		p.rounds++
		ask = retry.Backoff{Initial: o.Pause, Max: min(maxBackoff, o.MaxPause)}.Wait(p.rounds)
	}
	if p.beyond = 0; ask > o.MaxPause {
		p.beyond, ask = ask, o.MaxPause
	}
	if until := now.Add(ask); first || until.After(p.until) {
		// Other clients were told the same time: not all at once then.
		until = until.Add(time.Duration(o.Random() * float64(min(ask/10, time.Second))))
		if until.After(p.until) {
			p.until, p.length = until, until.Sub(now)
		}
	}
}

// answered resets the back-off; the present pause continues.
func (p *pause) answered() { p.rounds, p.beyond = 0, 0 }
