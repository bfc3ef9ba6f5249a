package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/sourcegraph/conc/pool"
	"golang.org/x/sync/semaphore"

	"github.com/leadetl/leadetl/sinks"
	"github.com/leadetl/leadetl/sources"
)

// errAbandoned says that a part was given up because its rows did not all
// come.
var errAbandoned = errors.New("part abandoned")

const (
	// lookAheadBytes is how much of parsed, unprocessed rows is held: enough
	// that one part's rest and the next part's begin are there together and
	// two cores have work, whatever the rows' width.
	lookAheadBytes = 40 << 20
	// lookAheadBatches bounds a part's queue.
	lookAheadBatches = 256
)

// lookAhead bounds the bytes of batches that are read and not yet processed.
type lookAhead struct{ *semaphore.Weighted }

func newLookAhead() lookAhead { return lookAhead{semaphore.NewWeighted(lookAheadBytes)} }

// weight is what a batch takes of the bound: a batch larger than the whole
// takes all of it.
func (lookAhead) weight(b *sources.Batch) int64 {
	size := 8 * len(b.Rows)
	for _, c := range b.Columns {
		size += len(c.ValueBytes()) + 4*len(c.ValueOffsets())
	}
	for _, r := range b.Rejects {
		size += len(r.Raw)
	}
	return min(int64(size), lookAheadBytes)
}

// feeder cuts the stream of rows into parts by row count alone. A part ends
// when it is full and another row comes, so malformed lines behind its last
// row are still its own.
type feeder struct {
	*state
	reader  *sources.Reader
	workers *pool.ContextPool
	ahead   lookAhead
	making  *semaphore.Weighted // parts that hold a row group in memory
	number  int                 // of the open part
	part    partSink
	rows    int64 // in the open part
}

// partSink takes the batches of one part, in order.
type partSink interface {
	take(ctx context.Context, b *sources.Batch) error
	// end is called once: whole says that all rows of the part were taken.
	end(whole bool) error
}

func (f *feeder) run(ctx context.Context) error {
	perPart := int64(f.Job.RowsPerPart)
	f.open()
	for {
		room := perPart - f.rows
		if room == 0 {
			room = perPart // the part is full; what comes decides whether it ends
		}
		b, err := f.reader.Next(ctx, int(room))
		if err == io.EOF {
			break
		}
		if err != nil {
			return errors.Join(err, ignoreAbandoned(f.part.end(false)))
		}
		n := int64(b.Len())
		if n > 0 && f.rows == perPart {
			if err := f.part.end(true); err != nil {
				return err
			}
			f.number++
			f.rows = 0
			f.open()
		}
		f.rows += n
		if err := f.part.take(ctx, b); err != nil {
			return errors.Join(err, ignoreAbandoned(f.part.end(false)))
		}
	}
	if err := f.part.end(true); err != nil {
		return err
	}
	if extra := len(f.known) - f.keptParts(); extra > 0 {
		return fmt.Errorf("%w: %d recorded parts have no rows any more; use another --out, or --overwrite", ErrInputChanged, extra)
	}
	return nil
}

func ignoreAbandoned(err error) error {
	if errors.Is(err, errAbandoned) {
		return nil
	}
	return err
}

// keptParts is how many known parts were passed by.
func (f *feeder) keptParts() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.parts) - f.made
}

// open starts the part with the feeder's number: known ones are read past and
// compared, the others made by a worker.
func (f *feeder) open() {
	if known, ok := f.known[f.number]; ok {
		f.part = &knownPart{state: f.state, number: f.number, recorded: known, digest: newInputDigest()}
		return
	}
	f.part = f.startPart(f.number)
}

// knownPart reads past the rows of a part that an earlier run made, and
// checks that they are the rows it was made from.
type knownPart struct {
	*state
	number   int
	recorded sinks.Part
	digest   inputDigest
}

func (k *knownPart) take(_ context.Context, b *sources.Batch) error {
	k.digest.add(b)
	b.Release()
	return nil
}

func (k *knownPart) end(whole bool) error {
	if !whole {
		return nil
	}
	if k.digest.sum() != k.recorded.InputDigest {
		return fmt.Errorf("%w: rows of %s; use another --out, or --overwrite", ErrInputChanged, k.recorded.Name)
	}
	k.keep(k.number, k.recorded)
	k.Progress.add(k.recorded.Totals)
	return nil
}
