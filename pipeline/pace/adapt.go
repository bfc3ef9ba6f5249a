package pace

import (
	"math"
	"time"
)

const (
	minRate = 0.01 // calls per second; one call in 100 s

	plateau  = 0.98  // of the rate that was refused: where quick growth ends
	recovery = 2.0   // seconds in which the rate grows by as much as was refused, up to the plateau
	flowing  = 0.7   // weight of the rate while calls flowed, against that with the pause
	creep    = 0.005 // of the refused rate, per second: growth beyond the plateau
	freed    = 1.05  // times the refused rate: from here on the limit is another
)

// adaption finds the rate the service bears where nobody has said it:
// additive increase, multiplicative decrease, with the memory of the rate
// that was refused last, near which it goes slowly.
//
// Source: RFC 9438 (CUBIC) for the plateau below the rate refused last.
type adaption struct {
	ceiling  float64 // the user's, or unlimited
	rate     float64
	refused  float64   // the rate refused last; 0 while none is known
	learned  bool      // that there is a limit at all
	hold     time.Time // until then not beyond the plateau
	grown    time.Time // when the rate was last looked at for growth
	paused   time.Time // when the rate was last refused
	resumed  time.Time // when calls began to flow after the last pause
	answers  meter
	answered int // since the last refusal, by calls that left after it

	decreases int64
}

// refuse hears that the service takes less; until is the end of the pause that
// follows. limited says that it refused for calling too much, and bears what
// it says, in other words, that it bears; 0 where it says nothing.
func (a *adaption) refuse(now, until time.Time, limited bool, bears float64, o *Options) {
	answered := a.answered
	switch {
	case a.learned && answered == 0:
		// Right after a pause: that was too short, and the rate is no news.
		a.wait(a.paused, until, o.Patience)
		return
	case a.learned && !limited:
		// A failure does not tell a rate: less for a moment, and back to what
		// was found.
		a.rate *= o.Decrease
	case a.learned:
		a.refused = max(a.borne(now, answered), min(bears, a.rate))
		a.rate = o.Decrease * a.refused
	case !limited && math.IsInf(a.ceiling, 1):
		return // a failure does not tell a rate
	case !limited:
		a.refused, a.rate = a.ceiling, o.Decrease*a.ceiling
	case bears > 0:
		a.refused = max(bears, a.answers.perSecond(now))
		a.rate = min(a.refused, a.ceiling)
	default:
		// The first refusal says little: what was answered until now is a
		// rate that the service has shown to bear. From there it doubles.
		a.rate = min(a.ceiling, max(a.answers.perSecond(now), 1))
	}
	a.rate = max(a.rate, minRate)
	a.learned = true
	a.answered = 0
	a.decreases++
	a.wait(now, until, o.Patience)
}

// wait has nothing flow until the end of a pause, and then the rate not grow
// beyond the plateau for so many times as long.
func (a *adaption) wait(from, until time.Time, patience int) {
	a.paused, a.resumed, a.grown = from, until, until
	a.hold = until.Add(time.Duration(patience) * until.Sub(from))
}

// borne estimates the rate the service bears when it refuses after so many
// answers since it refused before. The truth lies between the rate while calls
// flowed and the rate from refusal to refusal, pause included; after quick
// growth the latter says nothing.
func (a *adaption) borne(now time.Time, answered int) float64 {
	flowed := max(now.Sub(a.resumed).Seconds(), 0.05)
	most := float64(answered) / flowed
	if flowed >= 1 {
		most = a.answers.perSecond(now)
	}
	most = min(most, a.rate)
	if a.refused == 0 {
		return most
	}
	return flowing*most + (1-flowing)*min(most, float64(answered)/now.Sub(a.paused).Seconds())
}

// grow raises the rate after an answer that the rate had kept waiting.
func (a *adaption) grow(now time.Time) {
	dt := min(now.Sub(a.grown).Seconds(), 1)
	if !a.learned || dt <= 0 {
		return
	}
	a.grown = now
	switch {
	case a.refused == 0:
		a.rate *= math.Exp2(dt)
	case a.rate < plateau*a.refused:
		a.rate = min(a.rate+a.refused*dt/recovery, plateau*a.refused)
	case now.Before(a.hold):
	case a.rate < freed*a.refused:
		a.rate += creep * a.refused * dt
	default:
		a.rate *= math.Exp2(dt / 4)
	}
	a.rate = min(a.rate, a.ceiling)
}

// meter counts events of the last second.
type meter struct {
	counts [10]int
	slot   int64 // the latest tenth of a second counted in, since 1970
}

func (m *meter) add(now time.Time) {
	m.turn(now)
	m.counts[m.slot%int64(len(m.counts))]++
}

func (m *meter) perSecond(now time.Time) float64 {
	m.turn(now)
	sum := 0
	for _, n := range m.counts {
		sum += n
	}
	return float64(sum)
}

// turn forgets what is older than a second.
func (m *meter) turn(now time.Time) {
	slot := now.UnixMilli() / 100
	if slot-m.slot >= int64(len(m.counts)) {
		m.counts = [10]int{}
		m.slot = slot
	}
	for m.slot < slot {
		m.slot++
		m.counts[m.slot%int64(len(m.counts))] = 0
	}
}
