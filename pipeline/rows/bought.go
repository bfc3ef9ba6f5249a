package rows

import (
	"context"

	"golang.org/x/sync/semaphore"

	"github.com/leadetl/leadetl/pipeline/columns"
	"github.com/leadetl/leadetl/pipeline/keys"
	"github.com/leadetl/leadetl/sources"
)

const (
	// windowRows and windowBatches bound the rows of a part that wait for a
	// service. They are enough for some seconds of calls, so that the
	// concurrency limit stays used while the slowest row of a batch is awaited.
	windowRows    = 1 << 14
	windowBatches = 64
)

// FromOrder gives rows that the resolvers of an order answer. It calls onlyWaiting when a call was
// requested for every row. The next part can start then, so that the concurrency limit
// stays used while the last answers of this part arrive.
func FromOrder(in Input, maker *keys.Maker, asked *Ordered, onlyWaiting func()) Source {
	window := semaphore.NewWeighted(windowRows)
	take := func(ctx context.Context, in *sources.Batch) (*working, error) {
		weight := int64(min(in.Len(), windowRows))
		if err := window.Acquire(ctx, weight); err != nil {
			return nil, err
		}
		rows := &columns.Batch{}
		maker.Fill(rows, in)
		return &working{start: func() answer { return asked.begin(rows) }, free: func() { window.Release(weight) }}, nil
	}
	return &ahead{in: in, take: take, waiting: make(chan *working, windowBatches), taken: onlyWaiting}
}
