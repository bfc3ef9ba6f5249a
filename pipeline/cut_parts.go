package pipeline

import (
	"context"
	"fmt"
	"io"

	"github.com/sourcegraph/conc/pool"
	"golang.org/x/sync/semaphore"

	"github.com/leadetl/leadetl/sinks"
	"github.com/leadetl/leadetl/sources"
)

// feeder cuts the stream of rows into parts by row count alone. Malformed
// lines go with the rows they are read with; what follows the very last row
// stays in its part.
type feeder struct {
	*state
	reader *sources.Reader
	// start is what becomes of the rows of a part that is not recorded.
	start   func(ctx context.Context, number int) (partSink, error)
	workers *pool.ContextPool
	stop    func() // ends the reading
	ahead   lookAhead
	making  *semaphore.Weighted // parts that hold a row group in memory
}

// partSink takes the batches of one part, in order. One of end and abandon is
// called, once.
type partSink interface {
	take(ctx context.Context, b *sources.Batch) error
	end() error // all rows of the part were taken
	abandon()   // they will never all come
}

func (f *feeder) run(ctx context.Context) error {
	perPart := int64(f.Job.RowsPerPart)
	number, rows := 0, int64(0) // of the open part
	part, err := f.open(ctx, number)
	if err != nil {
		return err
	}
	for {
		room := perPart - rows
		if room == 0 {
			room = perPart // the part is full; what comes decides whether it ends
		}
		b, err := f.reader.Next(ctx, int(room))
		if err == io.EOF {
			break
		}
		if err != nil {
			part.abandon()
			return err
		}
		if b.Len() > 0 && rows == perPart {
			if err := part.end(); err != nil {
				return err
			}
			number, rows = number+1, 0
			if part, err = f.open(ctx, number); err != nil {
				return err
			}
		}
		rows += int64(b.Len())
		f.Progress.CountRead(b.Len())
		if err := part.take(ctx, b); err != nil {
			part.abandon()
			return err
		}
	}
	if err := part.end(); err != nil {
		return err
	}
	return f.knownPartsHaveRows(number + 1)
}

// knownPartsHaveRows reports recorded parts beyond the end of the input.
func (f *feeder) knownPartsHaveRows(parts int) error {
	for number, p := range f.recorded {
		if number >= parts {
			return fmt.Errorf("%w: there are no rows of %s any more; use another --out, or --overwrite", ErrInputChanged, p.Name)
		}
	}
	return nil
}

// open starts a part: known ones are read past and compared.
func (f *feeder) open(ctx context.Context, number int) (partSink, error) {
	if known, ok := f.recorded[number]; ok {
		return &knownPart{state: f.state, number: number, recorded: known, digest: newInputDigest()}, nil
	}
	return f.start(ctx, number)
}

// knownPart reads past the rows of a part that an earlier run made, and
// checks that they are the rows it was made from.
type knownPart struct {
	*state
	number   int
	recorded sinks.Part
	digest   *inputDigest
}

func (k *knownPart) take(_ context.Context, b *sources.Batch) error {
	k.digest.add(b)
	b.Release()
	return nil
}

func (k *knownPart) end() error {
	if k.digest.sum() != k.recorded.InputDigest {
		return fmt.Errorf("%w: rows of %s; use another --out, or --overwrite", ErrInputChanged, k.recorded.Name)
	}
	k.keep(k.number, k.recorded)
	k.Progress.CountEarlier(k.recorded.Totals)
	return nil
}

func (k *knownPart) abandon() {}
