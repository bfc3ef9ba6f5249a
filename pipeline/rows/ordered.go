package rows

import (
	"context"
	"sync"

	"github.com/leadetl/leadetl/pipeline/columns"
	"github.com/leadetl/leadetl/pipeline/keys"
	"github.com/leadetl/leadetl/pipeline/order"
	"github.com/leadetl/leadetl/resolution"
)

// Ordered is an Answerer that asks several resolvers.
type Ordered struct {
	from     *order.Chain
	mu       sync.Mutex // of suppress
	suppress *keys.Suppressor
}

// NewOrdered makes an Ordered. suppress suppresses rows by any of their answers.
func NewOrdered(from *order.Chain, suppress *keys.Suppressor) *Ordered {
	return &Ordered{from: from, suppress: suppress}
}

// Answer hands over a batch with its answers.
func (r *Ordered) Answer(ctx context.Context, b *columns.Batch, each func(*columns.Batch) error) error {
	if err := r.ask(ctx, b); err != nil {
		return err
	}
	return each(b)
}

func (r *Ordered) ask(ctx context.Context, b *columns.Batch) error {
	if r.suppress == nil {
		return r.from.Answer(ctx, b, nil)
	}
	return r.from.Answer(ctx, b, func(a resolution.AnswerRow) string {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.suppress.Answer(a)
	})
}
