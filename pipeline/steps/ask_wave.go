package steps

import (
	"context"

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
	a := &Asking{
		State: r.state, Remote: r.run.Remote, Operation: r.run.Job.Operation, Run: r.Header().Run, Lots: len(w.Lots),
		Read: func(ctx context.Context, lot int) ([]Question, error) { return r.questions(ctx, number, lot) },
		Close: func(ctx context.Context, lot int, failed []Failure) error {
			return r.closeLot(ctx, number, lot, failed)
		},
		Scratch: r.run.StateDir, Log: r.run.Log,
	}
	if asked, err = a.Do(ctx, beat); err != nil {
		return asked, err
	}
	return asked, r.createJSON(ctx, askedName(number), asked)
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
