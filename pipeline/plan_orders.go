package pipeline

import (
	"context"
	"errors"
	"time"

	"github.com/leadetl/leadetl/internal/distinct"
	"github.com/leadetl/leadetl/pipeline/begin"
	"github.com/leadetl/leadetl/pipeline/columns"
	"github.com/leadetl/leadetl/pipeline/job"
	"github.com/leadetl/leadetl/pipeline/order"
	"github.com/leadetl/leadetl/pipeline/parts"
)

// CompareOrders says what other orders of a run's resolvers would have cost, by the stored answers to the keys of its
// input. It reads the whole input, makes no calls and changes nothing. The dataset of the run does not matter.
func CompareOrders(ctx context.Context, r *job.Run) (_ *order.Comparison, err error) {
	if err := r.Order.CheckCompared(); err != nil {
		return nil, &job.Error{Err: err}
	}
	whole, all := *r, *r.Order
	all.AskAll = true // so that the answers of all are looked at
	whole.Order, whole.Overwrite = &all, true
	d, err := begin.Decide(ctx, &whole)
	if err != nil {
		return nil, err
	}
	planner := newPlanner(d)
	keys := distinct.New(r.StateDir)
	defer func() { err = errors.Join(err, keys.Close(), planner.Close()) }()
	read := &rowPlanner{decision: d, keys: keys, order: planner, cases: planner.NewCases(), began: time.Now()}
	if err := parts.Plan(ctx, d, &parts.Planned{Lookers: read.lookers(), Sample: func(*columns.Batch) error { return nil }}); err != nil {
		return nil, err
	}
	counted, err := order.Tally(ctx, keys, r.Workers)
	if err != nil {
		return nil, err
	}
	return read.cases.Compare(ctx, counted, r.Workers)
}
