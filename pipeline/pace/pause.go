package pace

import (
	"time"

	"github.com/leadetl/leadetl/internal/retry"
)

// maxBackoff is the longest pause after a refusal that names none.
const maxBackoff = 30 * time.Second

// pause is the time for which nobody calls because the service asked for it.
type pause struct {
	until  time.Time
	length time.Duration // of the present or last one
	rounds int           // refusals that named no time, without an answer in between
	beyond time.Duration // what the service asked for when that is more than MaxPause
}

func (p *pause) active(now time.Time) bool { return now.Before(p.until) }

// refused begins or prolongs the pause. first says that the call is the first
// of its round to be refused: the others of the round are the same news, and
// only a longer time is heard from them.
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
		// Others were told the same moment: not all at once then.
		until = until.Add(time.Duration(o.Random() * float64(min(ask/10, time.Second))))
		if until.After(p.until) {
			p.until, p.length = until, until.Sub(now)
		}
	}
}

// answered forgets what led to the pause; the pause itself goes on.
func (p *pause) answered() { p.rounds, p.beyond = 0, 0 }
