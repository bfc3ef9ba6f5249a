package runs

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/leadetl/leadetl/internal/objects"
	"github.com/leadetl/leadetl/internal/testkit/worldtest"
	"github.com/leadetl/leadetl/pipeline/purchase"
	"github.com/leadetl/leadetl/sinks"
)

// history is the lives of a world, and what its nights publish if nothing disturbs them.
type history struct {
	plan        plan
	disturbed   *site
	undisturbed *site
	want        []map[string]string // the files of each night
	steps       []int               // that each night takes
	anew        map[int]bool        // nights that damage made the user overwrite
}

// firstUndisturbed is the number of the life before the first one on the undisturbed site.
const firstUndisturbed = 1000

// newHistory makes the history of a world, whose lists are in a folder.
func newHistory(w *worldtest.World, p plan, dir, lists string) (*history, error) {
	h := &history{plan: p, anew: map[int]bool{}}
	var err error
	if h.disturbed, err = newSite(w, p, w, filepath.Join(dir, "disturbed"), lists); err != nil {
		return nil, err
	}
	h.undisturbed, err = newSite(w, p, w.Another(firstUndisturbed+1), filepath.Join(dir, "undisturbed"), lists)
	h.undisturbed.lives = firstUndisturbed
	return h, err
}

// live lets a world live all its nights.
func (h *history) live(ctx context.Context) {
	for number := range h.plan.datasets() {
		n := h.night(number)
		switch err := h.foresee(ctx, n); {
		case errors.Is(err, purchase.ErrRefused): // no key has a match
			return
		case err != nil:
			h.disturbed.wrongly("night %d fails undisturbed: %v", number, err)
		}
		for i := 0; i < h.plan.crashes && len(h.disturbed.wrong) == 0; i++ {
			last := 1 + h.disturbed.world.Below(h.steps[number]*5/4, "last step", number, i)
			h.disturbed.short = h.plan.grows && i == 0 && last < h.steps[number]*4/5
			h.disturb(ctx, n, last)
			if _, finished := h.disturbed.files(n.out)[sinks.SuccessName]; finished && h.disturbed.short { // with another list
				n.overwrite, n.anew, h.anew[number] = true, true, true
			}
		}
		h.disturbed.short = false
		damaged := ""
		if h.plan.damaged {
			damaged = []string{"before", "after"}[h.disturbed.world.Below(2, "damaged", number)]
		}
		for _, when := range []string{"before", "after"} {
			if len(h.disturbed.wrong) > 0 || when == "after" && damaged != when {
				break
			}
			if when == damaged {
				n = h.suffer(ctx, n, when)
			}
			if len(h.disturbed.wrong) == 0 {
				h.finish(ctx, n)
				h.mourn(n)
			}
			n = h.night(number)
			n.overwrite = false
		}
		if len(h.disturbed.wrong) == 0 {
			h.again(ctx, n)
		}
		if len(h.disturbed.wrong) > 0 {
			return
		}
	}
}

// night is that of a number.
func (h *history) night(number int) night {
	n := h.plan.night(number)
	n.anew = n.anew || h.anew[number]
	return n
}

// foresee does a night on the undisturbed site.
func (h *history) foresee(ctx context.Context, n night) error {
	l := h.undisturbed.life(ctx, n, 0, false)
	h.want = append(h.want, h.undisturbed.files(n.out))
	h.steps = append(h.steps, l.steps)
	return l.err
}

// disturb does a night on a machine that dies at a step, unless it is done before.
func (h *history) disturb(ctx context.Context, n night, last int) {
	s := h.disturbed
	s.bucket.Failing, s.bucket.Slow, s.bucket.Stale, s.disk.Failing = h.plan.bucketFails, h.plan.bucketSlow, h.plan.bucketStale, h.plan.diskFails
	for _, service := range s.services {
		service.faulty = h.plan.faulty
	}
	l := s.life(ctx, n, last, false)
	s.explain(l)
	h.checkSeen(n)
	if _, finished := s.files(n.out)[sinks.SuccessName]; l.err == nil && !l.died && !finished {
		s.wrongly("night %d has ended, and is not finished", n.number)
	}
	time.Sleep([]time.Duration{time.Second, objects.LockExpires, 10 * time.Minute, 30 * time.Hour}[s.world.Below(4, "rest", s.lives)])
}

// finish does a night to its end, on machines that do not die.
func (h *history) finish(ctx context.Context, n night) {
	h.calm()
	s := h.disturbed
	for _, retry := range []bool{false, true} {
		if retry && !h.plan.buys() {
			break
		}
		ended := h.end(ctx, n, retry)
		if h.checkSeen(n); len(s.wrong) > 0 {
			return
		}
		n.overwrite = n.overwrite && !ended
	}
	h.compare(n)
	h.compareTold(n)
	h.checkLeft()
}

// calm ends the faults of the machines.
func (h *history) calm() {
	s := h.disturbed
	s.bucket.Failing, s.bucket.Slow, s.bucket.Stale, s.disk.Failing = 0, 0, 0, 0
	for _, service := range s.services {
		service.faulty = 0
	}
	time.Sleep(2 * worldtest.Outage)
}

// end does a night, again after an error that is named. It reports whether it ends. It need not while
// all that is known are misses and calls may be unknown: then the matches may be among these.
func (h *history) end(ctx context.Context, n night, retry bool) bool {
	s, most := h.disturbed, 3
	for {
		l := s.life(ctx, n, 0, retry)
		time.Sleep(worldtest.Outage)
		if most--; l.err == nil {
			return true
		}
		if most == 0 && !retry && h.plan.buys() && errors.Is(l.err, purchase.ErrRefused) {
			return false
		}
		if d := s.harm; d != nil && most > 0 && saysDamage(l.err) { // only now it was read
			if d.isThere(s) {
				d.back()
				s.harm = nil
			}
			continue
		}
		if most == 0 || !isNamed(l.err) {
			s.wrongly("night %d does not end: %v", n.number, l.err)
			return false
		}
	}
}

// again does a night that is finished, which writes nothing.
func (h *history) again(ctx context.Context, n night) {
	n.overwrite = false
	before := h.disturbed.files(n.out)
	if !h.end(ctx, n, false) {
		return
	}
	for name, now := range h.disturbed.files(n.out) {
		if before[name] != now {
			h.disturbed.wrongly("night %d is finished, and %s is written again", n.number, name)
		}
	}
	h.compareBefore(n)
}

// ended is how a life ended.
type ended struct {
	err    error
	steps  int
	died   bool
	faults int
}

// life is that of a process. It dies at its last step, if that is not 0.
func (s *site) life(ctx context.Context, n night, last int, retry bool) (l ended) {
	s.lives++
	machine := s.local
	if s.plan.onS3 {
		machine = s.world.Another(s.lives)
	}
	ctx, stop := context.WithTimeout(ctx, longest)
	defer stop()
	ctx = machine.Begin(ctx, last)
	machine.Note("life of %s, night %d, retry %t", s.plan.scene, n.number, retry)
	l.err = s.work(ctx, machine, n, retry)
	machine.Note("it ends: %v", l.err)
	l.steps, l.died, l.faults = machine.Steps(), machine.Alive() != nil, machine.Faults()
	machine.Crash()
	powerCut := last > 0 && s.world.Below(3, "power cut", s.lives) > 0
	s.disk.Restart(powerCut)
	s.logs.Restart(powerCut)
	return l
}

// explain notes an error that nothing in the world explains.
func (s *site) explain(l ended) {
	if l.err != nil && !l.died && l.faults == 0 && !isNamed(l.err) {
		s.wrongly("life %d: %v", s.lives, l.err)
	}
}

func (s *site) wrongly(format string, args ...any) {
	s.wrong = append(s.wrong, fmt.Sprintf(format, args...))
}
