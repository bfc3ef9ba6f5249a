// Package rows gives the rows of a part with their answers. Answers come from the
// embedded engine, from a service, or from searches. A part pulls them and writes them.
package rows

import (
	"context"

	"github.com/leadetl/leadetl/pipeline/columns"
	"github.com/leadetl/leadetl/sources"
)

// Source gives the answered rows of one part, in the order of its input.
type Source interface {
	// Next returns the next rows; io.EOF after the last. They are valid until the call
	// after. The first call begins the work, which ends with its ctx; one goroutine calls.
	Next(ctx context.Context) (*columns.Batch, error)
	// Close ends the work and waits for it. Whoever called Next calls it.
	Close()
}

// Input gives the batches of one part. One goroutine calls Next, any goroutine Done.
type Input interface {
	// Next returns the next batch. It returns io.EOF after the last one, and if the rest
	// of the part will not come.
	Next(ctx context.Context) (*sources.Batch, error)
	// Done frees the memory of a batch.
	Done(b *sources.Batch)
}

// Answerer gives the rows of a batch with their answers, in order and in one or more
// pieces. Each is valid until each was called for the next; those of an Engine are longer.
type Answerer interface {
	Answer(ctx context.Context, b *columns.Batch, each func(*columns.Batch) error) error
}
