package steps

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/leadetl/leadetl/pipeline/exchange"
)

// Ask asks about the keys of a wave that Gather found to be asked. One process at
// a time does it: another one takes over. The error says why it stopped, and the
// next Ask resumes.
func (r *Run) Ask(ctx context.Context, number int, beat func(Asked)) (asked Asked, err error) {
	if r.Finished() {
		return asked, nil
	}
	w, err := r.wave(ctx, number)
	if err != nil {
		return asked, err
	}
	if r.run.Remote.Offline {
		return asked, nil
	}
	if err := r.getJSON(ctx, askedName(number), &asked); !isMissing(err) {
		return asked, err
	}
	done, err := r.doneInLanes(ctx, number)
	if err != nil {
		return asked, err
	}
	a := r.asking(number, done.without(w.all()))
	a.Remote = r.run.Remote
	if asked, err = r.attempt(ctx, number, a, done.plus(beat)); err != nil {
		return asked, err
	}
	asked = done.sum.and(asked)
	return asked, r.createJSON(ctx, askedName(number), asked)
}

// attempt asks, and logs for the report what came of it.
func (r *Run) attempt(ctx context.Context, number int, a *Asking, beat func(Asked)) (asked Asked, err error) {
	log := attemptLog{run: r, name: attemptName(number, uuid.NewString())}
	if err := r.putJSON(ctx, log.name, Attempt{}); err != nil {
		return asked, err
	}
	asked, err = a.Do(ctx, func(now Asked) {
		log.beat(ctx, now)
		if beat != nil {
			beat(now)
		}
	})
	log.end(context.WithoutCancel(ctx), asked)
	return asked, err
}

// all returns the numbers of the lots.
func (w wave) all() (lots []int) {
	for n := range w.Lots {
		lots = append(lots, n)
	}
	return lots
}

// asking asks about some lots of a wave. Its Remote is not set.
func (r *Run) asking(number int, lots []int) *Asking {
	return &Asking{
		State: r.state, Operation: r.run.Job.Operation, Run: r.Header().Run, Lots: len(lots),
		Read: func(ctx context.Context, i int) ([]Question, error) { return r.questions(ctx, number, lots[i]) },
		Close: func(ctx context.Context, i int, done Lot) error {
			return r.closeLot(ctx, number, lots[i], done.Failed)
		},
		Scratch: r.run.StateDir, Log: r.run.Log,
	}
}

// Attempt is what one process has asked about a wave. Without Ended the process
// was killed, and may have done more.
type Attempt struct {
	Asked
	Ended bool `json:"ended"`
}

// attemptLog writes an Attempt, for the report of the run.
type attemptLog struct {
	run     *Run
	name    string
	written time.Time
}

// logEvery is the time between two writes of an attempt, and logPatience how long
// one may take. A write that fails is no reason to stop.
const (
	logEvery    = 10 * time.Second
	logPatience = 10 * time.Second
)

func (l *attemptLog) beat(ctx context.Context, now Asked) {
	if time.Since(l.written) >= logEvery {
		l.write(ctx, Attempt{Asked: now})
	}
}

func (l *attemptLog) end(ctx context.Context, now Asked) {
	l.write(ctx, Attempt{Asked: now, Ended: true})
}

func (l *attemptLog) write(ctx context.Context, a Attempt) {
	ctx, cancel := context.WithTimeout(ctx, logPatience)
	defer cancel()
	if err := l.run.putJSON(ctx, l.name, a); err != nil && ctx.Err() == nil {
		l.run.run.Log.Warn("the report will lack calls of this worker", "error", err)
	}
	l.written = time.Now()
}

// questions reads the questions of a lot.
func (r *Run) questions(ctx context.Context, number, lot int) (all []Question, err error) {
	keys, err := r.lot(ctx, number, lot)
	for _, k := range keys {
		if k.Ask {
			all = append(all, Question{k.Hash, string(k.Text)})
		}
	}
	return all, err
}

// closeLot writes which questions of a lot have no answer. An attempt that ended
// before all lots were asked may have found others.
func (r *Run) closeLot(ctx context.Context, number, lot int, failed []Failure) error {
	verdicts := make([]exchange.Verdict, len(failed))
	for i, f := range failed {
		verdicts[i] = exchange.Verdict(f)
	}
	return r.folder.Put(ctx, r.Name(verdictsName(number, lot)), exchange.EncodeVerdicts(verdicts))
}
