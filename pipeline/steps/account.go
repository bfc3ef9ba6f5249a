package steps

import (
	"context"
	"errors"
	"io/fs"
	"iter"

	"github.com/leadetl/leadetl/pipeline"
	"github.com/leadetl/leadetl/pipeline/answers"
	"github.com/leadetl/leadetl/pipeline/stats"
)

// account adds up what the processes of the run have counted, for its report.
func (r *Run) account(ctx context.Context, d Division) (a pipeline.Account, err error) {
	a.Earlier = r.job.Earlier
	if a.Machines, err = r.machines(ctx); err != nil {
		return a, err
	}
	if r.run.Remote != nil {
		a.Calls, err = r.calls(ctx, d)
	}
	return a, err
}

// calls adds up the calls of all waves. Each number is exact, except that of
// requests if a process was killed.
func (r *Run) calls(ctx context.Context, d Division) (*pipeline.Calls, error) {
	var keys lotCounts
	var rows, paid int64
	var requests stats.CallRecord
	all := &pipeline.Calls{}
	for number := range d.Waves() {
		w, err := r.wave(ctx, number)
		if err != nil {
			return nil, err
		}
		rows += w.Asked
		if err := eachJSON(ctx, r, r.lotNames(number, len(w.Lots)), func(c lotCounts) { keys.add(c) }); err != nil {
			return nil, err
		}
		var asked Asked // its sums are those of the whole run so far
		switch err := r.getJSON(ctx, askedName(number), &asked); {
		case isMissing(err): // offline
			continue
		case err != nil:
			return nil, err
		}
		all.Calls, all.Credits, paid = asked.Calls, asked.Credits, asked.Paid
		names, err := r.folder.List(ctx, r.Name(attemptsName(number)))
		if err != nil {
			return nil, err
		}
		if err := eachJSON(ctx, r, names, func(a Attempt) {
			requests.Add(a.Made)
			if !a.Ended {
				all.Uncounted++
			}
		}); err != nil {
			return nil, err
		}
	}
	open, err := r.state.OpenCalls(ctx, r.scope())
	if err != nil {
		return nil, err
	}
	all.Open, all.Counts = openCalls(open), requests.Snapshot()
	c := &all.Counts
	c.Asked, c.Closed, c.Matched, c.Stored, c.Refused = keys.Keys, keys.Keys, keys.Matched, keys.Stored, keys.Refused
	c.Duplicates, c.EarlierCredits = rows-keys.Keys, r.Header().PaidBefore
	c.Credits = max(paid-c.EarlierCredits, 0)
	for _, call := range open {
		if call.Run == r.Header().Run && call.State == answers.Unknown {
			c.Unknown++
		}
	}
	return all, nil
}

func (r *Run) lotNames(wave, lots int) (names []string) {
	for lot := range lots {
		names = append(names, r.Name(countsName(wave, lot)))
	}
	return names
}

// openCalls are the calls of the run's questions that have no answer.
type openCalls []answers.OpenCall

// Unknown lists the calls that may have been billed.
func (o openCalls) Unknown(context.Context) iter.Seq2[answers.OpenCall, error] {
	return o.in(answers.Unknown)
}

// Parked lists the calls whose answers come later.
func (o openCalls) Parked(context.Context) iter.Seq2[answers.OpenCall, error] {
	return o.in(answers.Parked)
}

func (o openCalls) in(state answers.State) iter.Seq2[answers.OpenCall, error] {
	return func(yield func(answers.OpenCall, error) bool) {
		for _, c := range o {
			if c.State == state && !yield(c, nil) {
				return
			}
		}
	}
}

// eachJSON reads objects of the run's folder, and hands each to use.
func eachJSON[T any](ctx context.Context, r *Run, names []string, use func(T)) error {
	read, err := r.folder.GetAll(ctx, names)
	if errors.Is(err, fs.ErrNotExist) {
		err = errors.Join(ErrNotReady, err)
	}
	if err != nil {
		return err
	}
	for i, data := range read {
		var v T
		if err := decode(r.folder.At(names[i]), data, &v); err != nil {
			return err
		}
		use(v)
	}
	return nil
}
