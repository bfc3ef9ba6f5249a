package wire

import (
	"context"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/leadetl/leadetl/pipeline/answers"
	"github.com/leadetl/leadetl/pipeline/pace"
	"github.com/leadetl/leadetl/pipeline/purchase"
)

// Stored are the answers of a service in a state.
type Stored interface {
	purchase.Store
	Scopes(ctx context.Context) ([]answers.Scope, error)
}

// RunAnswers opens the stored answers of a state for the resolvers of a run.
type RunAnswers struct {
	State
	stores *answers.Stores // nil before the first is opened
	opened Closers
}

// Open opens the answers of a scope, with look to make no calls; nil if there are none then. Who looks at a
// state on S3 writes nothing to it.
func (a *RunAnswers) Open(ctx context.Context, of answers.Scope, look bool, calls *pace.Controller) (Stored, error) {
	if a.Objects == nil && look && !HoldsAnswers(ctx, a.Folder) {
		return nil, nil
	}
	if a.stores == nil {
		o := answers.Options{Look: look && a.Objects != nil}
		if a.Objects != nil {
			o.LeaveBefore = a.Objects.LeaveBefore
		}
		a.stores = answers.NewStores(a.Answers(), o)
		a.opened.Add(func() error { return a.close(ctx, look) })
	}
	stored, err := a.stores.Of(ctx, of.Service)
	if err != nil {
		return nil, UnlessUnavailable(AnswersError(a.name(), err))
	}
	stored.DelayWrites(calls.Crowded)
	return stored, nil
}

// close closes the stores. If all is stored, what earlier runs have missed was there.
func (a *RunAnswers) close(ctx context.Context, look bool) error {
	err := a.stores.Close()
	if err == nil && a.Objects != nil && !look {
		err = a.Objects.ForgetMissed(context.WithoutCancel(ctx))
	}
	return err
}

// name is the state for users.
func (a *RunAnswers) name() string {
	if a.Objects != nil {
		return a.Objects.String()
	}
	return a.Folder
}

// Recall counts the calls about a scope that the state knows of and that are within a window. Of a
// batch it has an answer for each key: those with one request id, or that came at one time, were one
// call. It does not know of refused calls.
func (a *RunAnswers) Recall(ctx context.Context, of answers.Scope, o pace.Options, batches bool, calls *pace.Controller) error {
	longest := time.Duration(0)
	for _, w := range o.Windows {
		longest = max(longest, w.Per)
	}
	if longest == 0 {
		return nil
	}
	type call struct {
		at time.Time
		id string
		n  int // tells calls apart that are not batches
	}
	sent, since := map[call]int{}, time.Now().Add(-longest)
	note := func(at time.Time, id string) {
		c := call{at: at}
		switch {
		case at.Before(since):
			return
		case !batches:
			c.n = len(sent)
		case id != "":
			c.at, c.id = at.Truncate(time.Second), id
		}
		sent[c]++
	}
	from, err := a.stores.Of(ctx, of.Service)
	if err != nil {
		return UnlessUnavailable(err)
	}
	scope := answers.Filter{Service: of.Service, Operation: of.Operation}
	for i, err := range from.List(ctx, scope) {
		if err != nil {
			return UnlessUnavailable(err)
		}
		note(i.Received, i.Request)
	}
	for _, open := range []iter.Seq2[answers.OpenCall, error]{from.Unknown(ctx), from.Parked(ctx)} {
		for c, err := range open {
			if err != nil {
				return UnlessUnavailable(err)
			}
			if scope.Selects(c.Scope) {
				note(c.Sent, c.Request)
			}
		}
	}
	for _, c := range slices.SortedFunc(maps.Keys(sent), func(a, b call) int { return a.at.Compare(b.at) }) {
		calls.Recall(c.at, sent[c])
	}
	return nil
}

// Close closes all that is open.
func (a *RunAnswers) Close() error { return a.opened.Close() }
