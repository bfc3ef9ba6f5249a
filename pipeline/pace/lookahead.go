package pace

import "time"

const (
	shortWindow = 10 * time.Second       // windows up to this are spread over from their start
	fewLeft     = 0.2                    // of the most calls left ever said: longer ones are spread over from here
	streak      = 3                      // refills seen in a row that make a limit one that refills all the time
	flat        = 8                      // answers without a refill before a large one, which make it one of windows
	spare       = 0.005                  // of the most calls left, kept in stock of what refills
	maxMargin   = 0.1                    // that refusals can lead to
	news        = 5 * time.Second        // between calls to what refills, at most
	pulse       = 100 * time.Millisecond // in which what is in stock may go, at least
)

// forecast turns what answers say of the service's limit (calls left, time
// until the reset) into a rate that does not run into it. Limits are of two
// kinds, and no header says which:
//
//   - A window gives its calls at its start. Those left are spread over the
//     time left, calls in flight counted as not yet subtracted, and the next
//     window is taken to be like this one.
//   - A bucket, or a window that slides, gives calls back all the time. The
//     rate is what comes back, and a little more or less to keep few calls in
//     stock; Reset is of no use.
//
// What tells one from the other is the sum of calls counted and calls left,
// which rises only when the service gives calls.
type forecast struct {
	margin float64 // share of a limit left unused; grows when that was too little

	rate float64   // calls per second; unlimited
	hold time.Time // no call before

	said      bool    // that anything was heard
	granted   float64 // the most of calls counted + calls left
	most      int     // calls left, the most ever said
	sustained float64 // the rate that windows bear, 0 while unknown

	end     time.Time     // of the present window
	longest time.Duration // reset ever said

	refills    bool    // all the time
	rises, dry int     // answers in a row
	past, used history // of calls granted, and of calls counted
	opened     float64 // calls granted when the window was
}

// hear takes in what the answer to a call said. counted is how many calls the
// service had counted by then, inFlight how many are under way now, latency
// how long the call took: half of it there, we assume, and half back.
func (f *forecast) hear(now time.Time, l LookAhead, latency time.Duration, counted float64, inFlight int) {
	at := now.Add(-latency / 2)
	f.used.add(at, counted)
	granted := counted + float64(l.Remaining)
	if !f.said {
		f.said, f.granted = true, granted
		f.most = l.Remaining + 1
		f.past.add(at, granted)
		f.open(at, l, latency)
	} else {
		f.turn(at, granted, l, latency)
	}
	f.most = max(f.most, l.Remaining)
	f.longest = max(f.longest, l.Reset)
	if f.refills {
		f.follow(l, latency, inFlight)
	} else {
		f.spread(now, l, latency, inFlight)
	}
}

// bears is the rate the service is thought to bear, 0 while unknown.
func (f *forecast) bears() float64 {
	if f.refills {
		return f.past.slope(time.Second)
	}
	return f.sustained
}

// refused hears that a call was refused in spite of the forecast: the service
// jitters more than we thought.
func (f *forecast) refused() {
	f.margin = min(max(0.01, 2*f.margin), maxMargin)
	f.sustained *= 1 - f.margin
}

// turn learns from a rise of the calls granted, and from none.
func (f *forecast) turn(at time.Time, granted float64, l LookAhead, latency time.Duration) {
	rise := granted - f.granted
	f.granted = max(f.granted, granted)
	f.past.add(at, f.granted)
	dry := f.dry
	if rise > 0 {
		f.rises, f.dry = f.rises+1, 0
	} else {
		f.rises, f.dry = 0, f.dry+1
	}
	restored := float64(l.Remaining) >= 0.9*float64(f.most) || rise >= float64(f.most)/2
	over := !at.Before(f.end)
	switch {
	case f.refills && rise >= float64(f.most)/2 && dry >= flat:
		f.refills = false // all at once, after nothing
	case f.refills:
	case f.rises >= streak, over && !restored:
		f.refills = true
		if f.granted-max(rise, 0) <= f.opened+1 {
			// A window that slides gave nothing until its first end. From now
			// on it gives back what was used one length before.
			f.past.begin(at, f.granted, f.used.slope(time.Second))
		}
	}
	if over || restored && rise >= 3 {
		f.open(at, l, latency)
	} else if end := at.Add(l.Reset); end.Before(f.end) {
		f.end = end // said more exactly, where resets are whole seconds
	}
}

// open begins a window.
func (f *forecast) open(at time.Time, l LookAhead, latency time.Duration) {
	f.end = at.Add(l.Reset)
	f.opened = f.granted
	if l.Reset < f.longest/2 || float64(l.Remaining) < 0.9*float64(f.most) {
		return // of a window that slides
	}
	// No more than what is left goes out before the next answer is back.
	length := max(l.Reset, 2*latency, time.Second)
	f.sustained = (1 - f.margin) * float64(l.Remaining+1) / length.Seconds()
}

// spread is for windows.
func (f *forecast) spread(now time.Time, l LookAhead, latency time.Duration, inFlight int) {
	f.hold = time.Time{}
	f.rate = f.sustained
	left := f.end.Sub(now) - latency/2 // for calls that leave now
	usable := float64(l.Remaining - inFlight)
	switch {
	case left <= 0:
	case f.longest > shortWindow && usable > fewLeft*float64(f.most):
		f.rate = unlimited
	case usable < 1:
		f.hold = f.end.Add(-latency / 2)
	default:
		// A rate far below what the window began with means that it is none.
		// A few of the calls left will tell.
		f.rate = min(max(usable/left.Seconds(), f.sustained/4), f.sustained)
	}
}

// follow is for what refills.
func (f *forecast) follow(l LookAhead, latency time.Duration, inFlight int) {
	f.hold = time.Time{}
	reserve := min(max(1, max(spare, f.margin)*float64(f.most)), float64(f.most)/10)
	horizon := max(time.Second, 2*latency)
	if 2*l.Remaining > f.most {
		horizon = max(latency/2, pulse) // there is much in stock: soon, but not before we hear what came of it
	}
	refill := f.past.slope(max(horizon, latency))
	level := float64(l.Remaining-inFlight) + refill*latency.Seconds()
	f.rate = refill + (level-reserve)/horizon.Seconds()
	// However little comes back: without calls there is no news.
	f.rate = max(f.rate, refill/4, 1/min(max(l.Reset, time.Second), news).Seconds())
}

// history holds the calls granted over the last seconds, in samples.
type history struct {
	samples [64]sample
	n       int // samples ever; the last of them moves with each that is added
}

type sample struct {
	at      time.Time
	granted float64
}

// sampling is how far samples lie apart, at least.
const sampling = time.Second / 32

// begin forgets everything but a rate that was so far.
func (h *history) begin(at time.Time, granted, rate float64) {
	*h = history{}
	h.add(at.Add(-time.Second), granted-rate)
	h.add(at, granted)
}

func (h *history) add(at time.Time, granted float64) {
	switch {
	case h.n > 0 && !at.After(h.back(1).at):
		h.back(1).granted = granted // half a latency is but a guess at when it was
		return
	case h.n < 2 || at.Sub(h.back(2).at) >= sampling:
		h.n++
	}
	*h.back(1) = sample{at, granted}
}

// back is the i-th sample from the end.
func (h *history) back(i int) *sample { return &h.samples[(h.n-i)%len(h.samples)] }

// slope is the calls granted per second over the last d or, where samples are
// far apart, a little more.
func (h *history) slope(d time.Duration) float64 {
	if h.n < 2 {
		return 0
	}
	last := h.back(1)
	for i := 2; i <= min(h.n, len(h.samples)); i++ {
		first := h.back(i)
		if dt := last.at.Sub(first.at); dt >= d || i == min(h.n, len(h.samples)) {
			return max(0, last.granted-first.granted) / dt.Seconds()
		}
	}
	return 0
}
