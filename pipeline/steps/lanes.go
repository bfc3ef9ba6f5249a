package steps

import (
	"context"
	"errors"
	"os"
	"path"
	"slices"
	"strconv"

	"github.com/leadetl/leadetl/pipeline/objectstate"
	"github.com/leadetl/leadetl/pipeline/purchase"
)

// Several processes may ask about a wave at the same time, each in a lane. Lot i is
// asked in lane i modulo the number of lanes. Each lane has its share of the rate,
// of the places in flight and of the budget. Ask joins the lanes, and asks about the
// rest: so what is left of the shares of lanes is spent as well.

// Lanes are the open lanes of a wave.
type Lanes struct {
	ID    int64 `json:"id"`
	Count int   `json:"count"` // 0: Ask alone is to ask
	// MaxCredits and MaxCalls are what each lane may spend; -1 is no limit.
	MaxCredits int64 `json:"max_credits"`
	MaxCalls   int64 `json:"max_calls"`
	// Calls and Credits are what the run has spent before.
	Calls   int64 `json:"calls"`
	Credits int64 `json:"credits"`
}

// OpenLanes opens lanes for the questions of a wave, and divides what the budget
// leaves among them. It closes those of earlier attempts, and joins what they have. For few
// questions or little money it opens none.
func (r *Run) OpenLanes(ctx context.Context, number int) (l Lanes, err error) {
	if r.Finished() || r.run.Remote.Offline {
		return l, nil
	}
	w, err := r.wave(ctx, number)
	if err != nil {
		return l, err
	}
	if asked, err := r.has(ctx, askedName(number)); asked || err != nil {
		return l, err
	}
	done, err := r.doneInLanes(ctx, number)
	if err != nil {
		return l, err
	}
	count := min(r.run.Remote.Lanes, len(done.without(w.all())))
	return l, r.withSession(ctx, func(session *objectstate.Session) error {
		remote := *r.run.Remote
		remote.Answers = session.Answers
		spent, err := remote.Spent(ctx, r.Header().Run)
		if err != nil {
			return err
		}
		each, enough := remote.Budget.Reserve(spent, remote.Price.Max(), int64(max(count, 1)))
		if count < 2 || !enough {
			return nil
		}
		id, err := session.OpenLanes(ctx, r.Header().Run, count)
		l = Lanes{ID: id, Count: count, MaxCredits: each.MaxCredits, MaxCalls: each.MaxCalls, Calls: spent.Calls, Credits: spent.Credits()}
		return err
	})
}

// JoinLanes takes over what lanes have, and makes no call.
func (r *Run) JoinLanes(ctx context.Context) error {
	if r.Finished() || r.run.Remote.Offline {
		return nil
	}
	return r.withSession(ctx, func(*objectstate.Session) error { return nil })
}

// withSession calls do with a session that has no answers, which has joined all lanes.
func (r *Run) withSession(ctx context.Context, do func(*objectstate.Session) error) (err error) {
	dir, err := os.MkdirTemp(r.run.StateDir, "leadetl-answers-*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	session, err := r.state.WriteFor(ctx, r.scope(), r.Header().Run, dir)
	if err != nil {
		return err
	}
	return errors.Join(do(session), session.Close(ctx))
}

// AskLane asks about the questions of a lane. One process at a time does it: another
// one takes over. It ends without an error when all are asked, or when the lane's
// share of the budget is used up.
func (r *Run) AskLane(ctx context.Context, number int, l Lanes, lane int, beat func(Asked)) (asked Asked, err error) {
	if r.Finished() || r.run.Remote.Offline {
		return asked, nil
	}
	w, err := r.wave(ctx, number)
	if err != nil {
		return asked, err
	}
	if asked, err := r.has(ctx, askedName(number)); asked || err != nil {
		return Asked{}, err
	}
	done, err := r.doneInLanes(ctx, number)
	if err != nil {
		return asked, err
	}
	mine := slices.DeleteFunc(w.all(), func(lot int) bool { return lot%l.Count != lane })
	before := done.of(mine)
	open := done.without(mine)
	a := r.asking(number, open)
	a.Lane = &objectstate.Lane{ID: l.ID, Number: lane, Run: a.Run}
	a.Remote = r.run.Remote.Lane(lane, l.Count)
	a.Remote.Budget.MaxCredits, a.Remote.Budget.MaxCalls = l.MaxCredits, l.MaxCalls
	closeLot := a.Close
	a.Close = func(ctx context.Context, i int, lot Lot) error {
		if err := closeLot(ctx, i, lot); err != nil {
			return err
		}
		counts := Asked{Keys: lot.Keys, Closed: lot.Keys, Matched: lot.Matched, Failed: int64(len(lot.Failed))}
		return r.putJSON(ctx, closedName(number, open[i]), counts)
	}
	asked, err = r.attempt(ctx, number, a, before.plus(beat))
	var spent *purchase.BudgetError
	if errors.As(err, &spent) && spent.Spent != "" { // not a limit of time
		err = nil
	}
	return before.sum.and(asked), err
}

// doneInLanes is what lanes have done of a wave: their closed lots.
type doneInLanes struct {
	sum  Asked
	lots map[int]Asked
}

// doneInLanes reads which lots are closed.
func (r *Run) doneInLanes(ctx context.Context, number int) (d doneInLanes, err error) {
	d.lots = map[int]Asked{}
	names, err := r.folder.List(ctx, r.Name(waveName(number)+"closed/"))
	if err != nil {
		return d, err
	}
	counts, err := r.folder.GetAll(ctx, names)
	if err != nil {
		return d, err
	}
	for i, name := range names {
		lot, err := strconv.Atoi(path.Base(name))
		if err != nil {
			continue
		}
		var some Asked
		if err := decode(r.folder.At(name), counts[i], &some); err != nil {
			return d, err
		}
		d.lots[lot], d.sum = some, d.sum.and(some)
	}
	return d, nil
}

// without returns the lots that are not closed.
func (d doneInLanes) without(lots []int) []int {
	return slices.DeleteFunc(slices.Clone(lots), func(lot int) bool {
		_, closed := d.lots[lot]
		return closed
	})
}

// of is what was done of some lots.
func (d doneInLanes) of(lots []int) (some doneInLanes) {
	for _, lot := range lots {
		some.sum = some.sum.and(d.lots[lot])
	}
	return some
}

// plus returns a beat that adds what was done before.
func (d doneInLanes) plus(beat func(Asked)) func(Asked) {
	if beat == nil {
		return nil
	}
	return func(a Asked) { beat(d.sum.and(a)) }
}

// and adds what another process has asked of other lots.
func (a Asked) and(other Asked) Asked {
	other.Keys += a.Keys
	other.Closed += a.Closed
	other.Matched += a.Matched
	other.Failed += a.Failed
	return other
}
