package pace

import "time"

const (
	shortWindow = 10 * time.Second       // a window up to this long is spread from its start
	fewLeft     = 0.2                    // a longer one from this share of the maximum of calls left
	streak      = 3                      // refills in a row that mean a bucket
	flat        = 8                      // answers without a refill, then a large one, that mean a window
	spare       = 0.005                  // share of the maximum that is kept in a bucket
	maxMargin   = 0.1                    // to which refusals raise the margin
	news        = 5 * time.Second        // longest time between calls to a bucket
	pulse       = 100 * time.Millisecond // shortest time in which a bucket is emptied
)

// forecast turns what answers say about the service's limit (calls left, time
// until the reset) into a rate that stays within it. There are two kinds of
// limits, and no header says which:
//
//   - A window grants all its calls at its start. The calls left, minus those
//     in flight, are spread over the time left. The next window is assumed to
//     be like this one.
//   - A bucket, or a sliding window, grants calls all the time. The rate is the
//     rate of the refills, corrected to keep few calls in stock. Reset says
//     nothing.
//
// The sum of calls counted and calls left tells them apart: it rises only when
// the service grants calls.
type forecast struct {
	margin float64 // share of a limit left unused; grows when that was too little

	rate  float64   // calls per second; unlimited
	stock bucket    // calls that the service would take now; those of a window have no rate
	opens time.Time // when the next window begins for calls that leave then

	believed  bool      // that no call is left: a call was refused, or more were left before
	empty     time.Time // the end of the window in which an answer said so
	said      bool      // a service has said something
	granted   float64   // maximum of calls counted + calls left
	maxLeft   int       // maximum of calls left
	sustained float64   // the rate that windows allow, 0 if unknown

	end      time.Time     // of the present window
	maxReset time.Duration // the longest reset so far

	refills    bool    // the limit is a bucket, or a sliding window
	sliding    bool    // it is probably a sliding window
	rises, dry int     // answers in a row with and without a refill
	past, used history // of calls granted, and of calls counted
	opened     float64 // calls granted when the window began
}

// hear processes the look-ahead of an answer. counted is how many calls the
// service had counted by then, and inFlight how many are under way. latency is
// how long the call took; half of it is assumed for each way.
func (f *forecast) hear(now time.Time, l LookAhead, latency time.Duration, counted float64, inFlight int) {
	at := now.Add(-latency / 2)
	f.used.record(at, counted)
	granted := counted + float64(l.Remaining)
	if !f.said {
		f.said, f.granted = true, granted
		f.maxLeft = l.Remaining + 1
		f.past.record(at, granted)
		f.open(at, l, latency)
	} else {
		f.learn(at, granted, l, latency)
	}
	f.maxLeft = max(f.maxLeft, l.Remaining)
	f.maxReset = max(f.maxReset, l.Reset)
	if f.refills {
		f.follow(now, l, latency, inFlight)
	} else {
		f.spread(now, l, latency, inFlight)
	}
}

// believes reports whether an answer may tell a limit. A service that says again and
// again that no call is left, and answers in the same window, tells none until it
// refuses a call.
func (f *forecast) believes(now time.Time, l LookAhead) bool {
	if l.Remaining > 0 {
		f.believed, f.empty = true, time.Time{}
		return true
	}
	end := now.Add(l.Reset)
	again := !f.refills && l.Reset > 2*time.Second && end.Sub(f.empty).Abs() < 2*time.Second
	if f.empty = end; f.believed && again {
		*f = forecast{rate: unlimited, margin: f.margin}
	}
	return f.believed
}

// allowed is the rate that the service seems to allow, 0 if unknown.
func (f *forecast) allowed() float64 {
	if f.refills {
		return f.past.slope(time.Second)
	}
	return f.sustained
}

// refused widens the margin after a call was refused despite the forecast.
func (f *forecast) refused() {
	f.believed, f.empty = true, time.Time{}
	f.margin = min(max(0.01, 2*f.margin), maxMargin)
	f.sustained *= 1 - f.margin
}

// learn finds out, from whether the calls granted rose, which kind the limit is.
func (f *forecast) learn(at time.Time, granted float64, l LookAhead, latency time.Duration) {
	rise := granted - f.granted
	f.granted = max(f.granted, granted)
	f.past.record(at, f.granted)
	dry := f.dry
	if rise > 0 {
		f.rises, f.dry = f.rises+1, 0
	} else {
		f.rises, f.dry = 0, f.dry+1
	}
	restored := f.nearMost(l.Remaining) || rise >= float64(f.maxLeft)/2
	over := !at.Before(f.end)
	switch {
	case f.refills && rise >= float64(f.maxLeft)/2 && dry >= flat:
		f.refills = false // all at once, after a time without refills
	case f.refills:
	case !over && at.Add(l.Reset).After(f.end.Add(2*time.Second)):
		f.refills = true // the end of a window does not move, but by a second where resets are whole seconds
	case f.rises >= streak, over && !restored:
		f.refills = true
		if f.granted-max(rise, 0) <= f.opened+1 {
			// A sliding window grants nothing until its first end. From then on
			// it gives back what was used one length before.
			f.sliding = true
			f.past.begin(at, f.granted, f.used.slope(time.Second))
		}
	}
	if over || restored && rise >= 3 {
		f.open(at, l, latency)
	} else if end := at.Add(l.Reset); end.Before(f.end) {
		f.end = end // more precise, where resets are whole seconds
	}
}

// nearMost reports whether about as many calls are left as ever before a call.
func (f *forecast) nearMost(left int) bool { return float64(left+1) >= 0.9*float64(f.maxLeft) }

// open begins a window.
func (f *forecast) open(at time.Time, l LookAhead, latency time.Duration) {
	f.end = at.Add(l.Reset)
	f.opened = f.granted
	if l.Reset < f.maxReset/2 || !f.nearMost(l.Remaining) {
		return // a sliding window
	}
	// Until the next answer no more calls leave than are left.
	length := max(l.Reset, 2*latency, time.Second)
	f.sustained = (1 - f.margin) * float64(l.Remaining+1) / length.Seconds()
}

// spread sets the rate for a window.
func (f *forecast) spread(now time.Time, l LookAhead, latency time.Duration, inFlight int) {
	f.rate = f.sustained
	f.opens = f.end.Add(-latency / 2)
	usable := float64(l.Remaining - inFlight)
	f.stock = bucket{level: usable, at: now, burst: f.maxLeft}
	left := f.opens.Sub(now)
	switch {
	case left <= 0 || usable < 1:
	case f.maxReset > shortWindow && usable > fewLeft*float64(f.maxLeft):
		f.rate = unlimited
	default:
		// A rate far below that of the window's start means that it is not a
		// window. A few of the calls left find out. The rate keeps within them.
		f.opens = now
		f.rate = min(max(usable/left.Seconds(), f.sustained/4), f.sustained)
	}
}

// follow sets the rate for a bucket.
func (f *forecast) follow(now time.Time, l LookAhead, latency time.Duration, inFlight int) {
	reserve := min(max(1, max(spare, f.margin)*float64(f.maxLeft)), float64(f.maxLeft)/10)
	horizon := max(time.Second, 2*latency)
	if 2*l.Remaining > f.maxLeft {
		horizon = max(latency/2, pulse) // much in stock: use it soon, but not before the next answers
	}
	refill := f.past.slope(max(horizon, latency))
	// However few calls come back: without calls there are no answers.
	least := 1 / min(max(l.Reset, time.Second), news).Seconds()
	level := float64(l.Remaining-inFlight) + refill*latency.Seconds()
	f.rate = max(refill+(level-reserve)/horizon.Seconds(), refill/4, least)
	sure := f.past.sure()
	level = float64(l.Remaining-inFlight) + sure*latency.Seconds()
	switch {
	case f.sliding: // what it gives back next is not known
		level = max(1, level)
	case level > float64(f.maxLeft): // it was full before the calls under way arrive
		level = float64(f.maxLeft - inFlight)
	}
	f.stock = bucket{level: max(0, level), at: now, burst: f.maxLeft, rate: max(sure, least)}
}

// exhausted returns when calls may leave again, if no call is left in a window.
func (f *forecast) exhausted(now time.Time) (opens time.Time) {
	if f.refills || f.stock.level >= 1 || !now.Before(f.opens) {
		return time.Time{}
	}
	return f.opens
}

// wait returns how long a call has to wait, that leaves after some others, for the
// service to have one left.
func (f *forecast) wait(now time.Time, others int) time.Duration {
	switch {
	case f.refills:
		return f.stock.wait(now, others)
	case now.Before(f.opens) && f.stock.level < float64(others+1):
		return f.opens.Sub(now)
	}
	return 0
}

// history holds the calls granted over the last seconds, in samples.
type history struct {
	samples [64]sample
	n       int // samples so far; add may move the last one
}

type sample struct {
	at      time.Time
	granted float64
}

// sampling is the shortest time between samples.
const sampling = time.Second / 32

// begin replaces the history by one of a constant rate.
func (h *history) begin(at time.Time, granted, rate float64) {
	*h = history{}
	h.record(at.Add(-time.Second), granted-rate)
	h.record(at, granted)
}

func (h *history) record(at time.Time, granted float64) {
	switch {
	case h.n > 0 && !at.After(h.back(1).at):
		h.back(1).granted = granted // at is only an estimate
		return
	case h.n < 2 || at.Sub(h.back(2).at) >= sampling:
		h.n++
	}
	*h.back(1) = sample{at, granted}
}

// back is the i-th sample from the end.
func (h *history) back(i int) *sample { return &h.samples[(h.n-i)%len(h.samples)] }

// slope is the calls granted per second over the last d, or a little longer if
// samples are far apart.
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

// sure is the rate at which calls were granted at least within the last second,
// although calls left are whole numbers.
func (h *history) sure() (rate float64) {
	if h.n == 0 {
		return 0
	}
	last := h.back(1)
	for i := 2; i <= min(h.n, len(h.samples)); i++ {
		first := h.back(i)
		dt := last.at.Sub(first.at)
		rate = max(rate, (last.granted-first.granted-1)/dt.Seconds())
		if dt >= time.Second {
			break
		}
	}
	return rate
}
