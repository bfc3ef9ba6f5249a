package pace

import (
	"math"
	"time"
)

const (
	minRate = 0.01 // calls per second; one call in 100 s

	plateau  = 0.98   // share of the refused rate at which fast growth ends
	recovery = 2.0    // seconds in which fast growth adds the refused rate
	flowing  = 0.7    // weight of the rate without the pause, against the rate with it
	creep    = 0.005  // growth beyond the plateau, in refused rates per second
	freed    = 1.05   // times the refused rate: beyond it the service's limit has changed
	rounding = 1.0001 // of rates that are compared
	few      = 32     // answers from refusal to refusal
	many     = 80     // answers after which a refusal at the plateau tells no limit
	steepest = 0.7    // of the refused rate, which the next refusal may lower it to
	doubling = 4      // times a second, after refusals that the rate does not bring
)

// adaption learns the rate that the service accepts: additive increase,
// multiplicative decrease, and slow growth near the rate that was refused last.
//
// Source: RFC 9438 (CUBIC) for the plateau below the rate refused last.
type adaption struct {
	ceiling  float64 // the user's, or unlimited
	rate     float64
	refused  float64   // the rate that was refused last; 0 if unknown
	learned  bool      // the service has a limit
	sure     bool      // it has refused several calls in a row since
	free     bool      // it has shown since that the rate does not bring its refusals
	early    bool      // the last refusal came too early to lower the rate
	hold     time.Time // no growth beyond the plateau before
	grown    time.Time // the last time grow was called
	paused   time.Time // when the rate was last refused
	resumed  time.Time // when calls left again after the last pause
	answers  meter
	answered int // since the last refusal, by calls that left after it

	decreases int64
}

// refuse lowers the rate after a refusal; until is the end of the pause that
// follows. limited says that the refusal was for too many calls. forecast is
// the rate that the service's headers allow, 0 if they do not say.
func (a *adaption) refuse(now, until time.Time, limited bool, forecast float64, o *Options) {
	answered := a.answered
	switch {
	case a.learned && answered == 0:
		// Right after a pause: the pause was too short. This says nothing about
		// the rate.
		a.wait(a.paused, until, o.Patience)
		return
	case a.learned && a.refused > 0 && answered < few && !a.early:
		// The rate was lowered just before: only a second such refusal lowers it again.
		a.early, a.answered = true, 0
		a.decreases++
		a.wait(now, until, o.Patience)
		return
	case a.learned && !limited:
		// A failure does not tell the limit: slow down for now, and return to
		// the learned rate.
		a.rate *= o.Decrease
	case a.learned:
		a.refused = max(a.accepted(now, answered), min(forecast, a.rate), a.least(answered))
		a.rate = o.Decrease * a.refused
	case !limited && math.IsInf(a.ceiling, 1):
		return // a failure does not tell the limit
	case !limited:
		a.refused, a.rate = a.ceiling, o.Decrease*a.ceiling
	case forecast > 0:
		a.refused = max(forecast, a.answers.perSecond(now))
		a.rate = min(a.refused, a.ceiling)
	default:
		// The first refusal says little. The service has accepted the rate of
		// its answers so far; the rate doubles from there.
		a.rate = min(a.ceiling, max(a.answers.perSecond(now), 1))
	}
	a.rate = max(a.rate, minRate)
	a.learned, a.free, a.early = true, false, false
	a.answered = 0
	a.decreases++
	a.wait(now, until, o.Patience)
}

// release lets the rate grow back, since it does not bring the refusals.
func (a *adaption) release(now time.Time) {
	a.refused, a.free, a.answered = 0, true, 0
	a.paused, a.resumed, a.grown = now, now, now
}

// goesOn reports whether a refusal comes although the rate was lowered: it is below the
// one refused last, or few calls were answered since.
func (a *adaption) goesOn() bool {
	return !a.paused.IsZero() && (a.refused == 0 || a.rate <= rounding*plateau*a.refused || a.answered < few)
}

// binds reports whether the rate is below the user's since the service refused calls.
func (a *adaption) binds() bool { return a.learned && a.rate < a.ceiling }

// flows reports whether calls leave at a rate at which the service has answered many: a
// limit refuses none then.
func (a *adaption) flows() bool {
	return a.rate <= rounding*plateau*a.refused && a.answered >= many
}

// yield lowers the rate a little, in case the limit is just below.
func (a *adaption) yield() {
	a.refused *= plateau
	a.rate = min(a.rate, plateau*a.refused)
}

// unlearn forgets that the service has a limit.
func (a *adaption) unlearn() {
	a.learned, a.sure, a.free, a.early = false, false, false, false
	a.refused, a.rate, a.answered = 0, a.ceiling, 0
}

// wait holds all calls until the pause ends. Afterwards the rate does not grow
// beyond the plateau for patience times the length of the pause.
func (a *adaption) wait(from, until time.Time, patience int) {
	a.paused, a.resumed, a.grown = from, until, until
	a.hold = until.Add(time.Duration(patience) * until.Sub(from))
}

// accepted estimates the rate that the service accepts, after so many answers
// since its last refusal. It lies between the rate while calls left and the
// rate from refusal to refusal, pause included. After fast growth only the
// former counts.
func (a *adaption) accepted(now time.Time, answered int) float64 {
	flowed := max(now.Sub(a.resumed).Seconds(), 0.05)
	upper := float64(answered) / flowed
	if recent := a.answers.perSecond(now); flowed >= 1 && recent > 0 { // else calls are seconds apart
		upper = recent
	}
	upper = min(upper, a.rate)
	if a.refused == 0 {
		return upper
	}
	return flowing*upper + (1-flowing)*min(upper, float64(answered)/now.Sub(a.paused).Seconds())
}

// least is the rate that a refusal does not tell to be too much, after so many answers
// since the one before: where the rate grows slowly, the one that the service has sustained.
func (a *adaption) least(answered int) float64 {
	if answered >= many && a.rate > rounding*plateau*a.refused {
		return min(a.rate, a.refused)
	}
	return steepest * a.refused
}

// grow raises the rate after an answer whose call had to wait for the rate.
func (a *adaption) grow(now time.Time) {
	dt := min(now.Sub(a.grown).Seconds(), 1)
	if !a.learned || dt <= 0 {
		return
	}
	a.grown = now
	switch {
	case a.refused == 0 && a.free:
		a.rate *= math.Exp2(doubling * dt)
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

// meter counts the events of the last second.
type meter struct {
	counts [10]int
	slot   int64 // the current tenth of a second, since 1970
}

func (m *meter) count(now time.Time, events int) {
	m.advance(now)
	m.counts[m.slot%int64(len(m.counts))] += events
}

func (m *meter) perSecond(now time.Time) float64 {
	m.advance(now)
	sum := 0
	for _, n := range m.counts {
		sum += n
	}
	return float64(sum)
}

// advance drops what is older than a second.
func (m *meter) advance(now time.Time) {
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
