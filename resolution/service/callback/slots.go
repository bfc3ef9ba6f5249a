package callback

import (
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/leadetl/leadetl/resolution/service/state"
)

const (
	// slowAfter is how long an attempt takes that makes its lane slow.
	slowAfter = 2 * time.Second

	// knownFor is how long the last attempt decides the pace of its lane.
	knownFor = 10 * time.Minute

	// deadFor is the same for an attempt that timed out: with every retry, a dead receiver
	// would take the slots of new ones again.
	deadFor = 24 * time.Hour

	// maxKnown bounds an organization's lanes that are remembered without an
	// attempt in flight.
	maxKnown = 512

	// largeBytes bounds the bodies in flight of a lane, because of memory and
	// because the outbox reads them again.
	largeBytes = 256 << 10
)

// pace is how fast a lane's receiver answers.
type pace int

// The paces. Quick lanes may use all slots, fresh and slow ones together three
// quarters, slow ones half. However many receivers are dead, there are slots for
// new receivers, and some for those known to answer. An organization may use a
// quarter of the slots, divided in the same way, so that none delays another.
const (
	quick pace = iota
	fresh
	slow
)

// load counts attempts by pace, each with all slower ones.
type load [slow + 1]int

func (l *load) add(p pace, n int) {
	for at := quick; at <= p; at++ {
		l[at] += n
	}
}

// takes reports whether an attempt of a pace may begin when there are so many
// slots.
func (l *load) takes(p pace, slots int) bool {
	ofSlow := max(slots/2, 1)
	for at, ceiling := range [...]int{slots, max(slots*3/4, min(slots, ofSlow+1)), ofSlow} {
		if pace(at) <= p && l[at] >= ceiling {
			return false
		}
	}
	return true
}

// unsettled is how many deliveries there may be for each attempt in flight: those
// in flight, those whose result is being written, and those read ahead.
const unsettled = 4

// slots is the attempts in flight, and the lanes they belong to.
type slots struct {
	concurrency, perReceiver int
	timeout                  time.Duration // of an attempt

	inFlight      int
	ahead         int                        // deliveries that were read ahead
	deliveries    map[int64]struct{}         // in flight, not settled, or read ahead
	organizations map[int64]map[string]*lane // by receiver; none is empty
}

// lane is a lane that has attempts in flight, or had some recently.
type lane struct {
	attempts map[int64]time.Time // when they began
	bytes    int                 // of their bodies
	took     time.Duration       // by the last attempt
	known    time.Time           // until when that counts

	ahead []state.Delivery // read, and not begun
	until time.Time        // when they are dropped
	tried time.Time        // when they were read last
}

func newUnderway(concurrency, perReceiver int, timeout time.Duration) *slots {
	return &slots{concurrency: concurrency, perReceiver: perReceiver, timeout: timeout, deliveries: map[int64]struct{}{}, organizations: map[int64]map[string]*lane{}}
}

// free returns how many more attempts may begin. There are none while the outbox
// has too many results to write.
func (u *slots) free() int {
	return min(u.concurrency-u.inFlight, u.concurrency*unsettled-(len(u.deliveries)-u.ahead))
}

// share is how many attempts one organization may have in flight: at least three if there are
// three, one for each pace, so that a receiver that times out leaves some for others.
func (u *slots) share() int { return max(u.concurrency/4, min(u.concurrency, 3)) }

func (l *lane) pace(now time.Time) pace {
	for _, began := range l.attempts {
		if now.Sub(began) >= slowAfter {
			return slow
		}
	}
	switch {
	case !now.Before(l.known):
		return fresh
	case l.took >= slowAfter:
		return slow
	default:
		return quick
	}
}

// busy reports whether a lane has its maximum of attempts: a fresh one gets one
// at a time until its receiver has answered, and so does one that timed out; a slow one
// gets half of a quick one's.
func (u *slots) busy(l *lane, p pace) bool {
	most := [...]int{u.perReceiver, 1, max(u.perReceiver/2, 1)}[p]
	if l.took >= u.timeout {
		most = 1
	}
	return len(l.attempts) >= most || l.bytes >= largeBytes
}

// view counts the attempts in flight at one moment.
type view struct {
	now  time.Time
	all  load
	each map[int64]*load // by organization
}

// look makes a view, and forgets lanes without recent attempts.
func (u *slots) look(now time.Time) *view {
	v := &view{now: now, each: map[int64]*load{}}
	for organization, lanes := range u.organizations {
		for receiver, l := range lanes {
			p := l.pace(now)
			if p == fresh && len(l.attempts)+len(l.ahead) == 0 {
				delete(lanes, receiver)
				continue
			}
			v.add(organization, p, len(l.attempts))
		}
		if len(lanes) == 0 {
			delete(u.organizations, organization)
		}
	}
	return v
}

func (v *view) add(organization int64, p pace, n int) {
	if v.each[organization] == nil {
		v.each[organization] = new(load)
	}
	v.each[organization].add(p, n)
	v.all.add(p, n)
}

// takes reports whether an organization gets another attempt of a pace.
func (u *slots) takes(v *view, organization int64, p pace) bool {
	own := v.each[organization]
	return v.all.takes(p, u.concurrency) && (own == nil || own.takes(p, u.share()))
}

// questions returns the scopes in which attempts can begin: one of quick lanes,
// for organizations in which no other lane gets an attempt, and one of everything
// else.
func (u *slots) questions(v *view) (questions []state.Scope) {
	rest, alone := state.Scope{Each: u.perReceiver}, state.Scope{Each: u.perReceiver}
	open := v.all.takes(fresh, u.concurrency)
	for organization, lanes := range u.organizations {
		full := !u.takes(v, organization, fresh)
		if full {
			rest.Full = append(rest.Full, organization)
		}
		for receiver, l := range lanes {
			p := l.pace(v.now)
			takes := !u.busy(l, p) && u.takes(v, organization, p)
			switch {
			case full && takes: // it is quick
				alone.Only = append(alone.Only, state.Lane{Organization: organization, Receiver: receiver})
			case !full && !takes:
				rest.Busy = append(rest.Busy, state.Lane{Organization: organization, Receiver: receiver})
			}
		}
	}
	if len(alone.Only) > 0 {
		questions = append(questions, alone)
	}
	if open {
		questions = append(questions, rest)
	}
	return questions
}

// begins reports whether an attempt at d may begin: none is in flight, and there
// is a slot for it.
func (u *slots) begins(d state.Delivery, v *view) bool {
	if _, found := u.deliveries[d.ID]; found {
		return false
	}
	p := fresh
	if l := u.organizations[d.Organization][d.Receiver]; l != nil {
		if p = l.pace(v.now); u.busy(l, p) {
			return false
		}
	}
	return u.takes(v, d.Organization, p)
}

// begin records an attempt, also in the view.
func (u *slots) begin(d state.Delivery, v *view) {
	lanes := u.organizations[d.Organization]
	if lanes == nil {
		lanes = map[string]*lane{}
		u.organizations[d.Organization] = lanes
	}
	l := lanes[d.Receiver]
	if l == nil {
		l = &lane{attempts: map[int64]time.Time{}}
		lanes[d.Receiver] = l
	}
	v.add(d.Organization, l.pace(v.now), 1)
	u.inFlight++
	u.deliveries[d.ID] = struct{}{}
	l.attempts[d.ID] = v.now
	l.bytes += len(d.Body)
}

// settled forgets a delivery whose result is in the outbox.
func (u *slots) settled(id int64) { delete(u.deliveries, id) }

// starved returns the quick lanes that have all the attempts they may have, and
// nothing read ahead.
func (u *slots) starved(v *view) (lanes []state.Lane) {
	for organization, each := range u.organizations {
		for receiver, l := range each {
			if len(l.attempts) >= u.perReceiver && len(l.ahead) == 0 && l.bytes < largeBytes && l.pace(v.now) == quick && v.now.Sub(l.tried) >= minPause/10 {
				l.tried = v.now
				lanes = append(lanes, state.Lane{Organization: organization, Receiver: receiver})
			}
		}
	}
	return lanes
}

// hold keeps a delivery that was read ahead.
func (u *slots) hold(d state.Delivery, now time.Time) {
	l := u.organizations[d.Organization][d.Receiver]
	if l == nil {
		return
	}
	l.ahead = append(l.ahead, d)
	l.until = now.Add(aheadLife)
	u.deliveries[d.ID] = struct{}{}
	u.ahead++
}

// drop forgets what was read ahead and waited too long.
func (u *slots) drop(now time.Time) {
	if u.ahead == 0 {
		return
	}
	for _, lanes := range u.organizations {
		for _, l := range lanes {
			if len(l.ahead) > 0 && !now.Before(l.until) {
				for _, d := range l.ahead {
					delete(u.deliveries, d.ID)
				}
				u.ahead -= len(l.ahead)
				l.ahead = nil
			}
		}
	}
}

// next yields the deliveries that were read ahead and may begin now that an attempt
// of their lane has ended.
func (u *slots) next(after state.Delivery, v *view) iter.Seq[state.Delivery] {
	return func(yield func(state.Delivery) bool) {
		l := u.organizations[after.Organization][after.Receiver]
		for l != nil && len(l.ahead) > 0 && v.now.Before(l.until) && u.free() > 0 {
			p := l.pace(v.now)
			if u.busy(l, p) || !u.takes(v, after.Organization, p) {
				return
			}
			d := l.ahead[0]
			l.ahead = l.ahead[1:]
			u.ahead--
			if !yield(d) {
				return
			}
		}
	}
}

// end records the end of an attempt and how long it took.
func (u *slots) end(d state.Delivery, took time.Duration, now time.Time) {
	lanes := u.organizations[d.Organization]
	l := lanes[d.Receiver]
	u.inFlight--
	delete(l.attempts, d.ID)
	l.bytes -= len(d.Body)
	if l.took, l.known = took, now.Add(knownFor); took >= u.timeout {
		l.known = now.Add(deadFor)
	}
	if len(lanes) > maxKnown+u.share() {
		forget(lanes, now)
	}
}

// forget drops one lane without an attempt in flight; it is fresh when it comes
// again. Other lanes go before quick ones, and then the one that would be
// forgotten first anyway.
func forget(lanes map[string]*lane, now time.Time) {
	idle := slices.DeleteFunc(slices.Collect(maps.Keys(lanes)), func(receiver string) bool { return len(lanes[receiver].attempts)+len(lanes[receiver].ahead) > 0 })
	worth := func(a, b string) int {
		if x, y := lanes[a].pace(now) == quick, lanes[b].pace(now) == quick; x != y {
			if x {
				return 1
			}
			return -1
		}
		return lanes[a].known.Compare(lanes[b].known)
	}
	delete(lanes, slices.MinFunc(idle, worth)) // more are known than can be under way
}
