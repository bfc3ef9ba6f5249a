package rows

import (
	"context"
	"sync"

	"github.com/leadetl/leadetl/pipeline/columns"
	"github.com/leadetl/leadetl/pipeline/keys"
	"github.com/leadetl/leadetl/pipeline/order"
	"github.com/leadetl/leadetl/resolution"
)

// Ordered is an Answerer that asks the resolvers of an order. Each batch has a turn, which is taken in the
// order of the input.
type Ordered struct {
	from     *order.Chain
	suppress order.Suppress
}

// NewOrdered makes an Ordered. suppress suppresses rows by any of their answers.
func NewOrdered(from *order.Chain, suppress *keys.Suppressor) *Ordered {
	return &Ordered{from, SuppressBy(suppress)}
}

// SuppressBy returns what suppresses rows by answers, from many goroutines; nil if s is nil.
func SuppressBy(s *keys.Suppressor) order.Suppress {
	if s == nil {
		return nil
	}
	var mu sync.Mutex
	return func(a resolution.AnswerRow) string {
		mu.Lock()
		defer mu.Unlock()
		return s.Answer(a)
	}
}

// Answer hands over a batch with its answers.
func (r *Ordered) Answer(ctx context.Context, b *columns.Batch, each func(*columns.Batch) error) error {
	return r.begin(b)(ctx, each)
}

// begin takes the turn of a batch, and returns what answers it then.
func (r *Ordered) begin(b *columns.Batch) answer {
	turn := r.from.Turn()
	return func(ctx context.Context, each func(*columns.Batch) error) error {
		if err := r.from.Answer(ctx, turn, b, r.suppress); err != nil {
			return err
		}
		return each(b)
	}
}
