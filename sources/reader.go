package sources

import (
	"context"
	"io"
	"slices"
	"sync/atomic"

	"github.com/leadetl/leadetl/internal/progress"
	"github.com/leadetl/leadetl/internal/rows"
)

// Reader returns the rows of all files, in order. Position is safe for
// concurrent use; the other methods are not.
type Reader struct {
	inputs  []*input
	columns []string
	maxRows int

	next    int     // the next input
	current rowFile // the input before it; nil between files
	stored  int     // how many columns current stores
	order   []int   // for each requested column, its index among the stored ones
	err     error   // what ended the reading
	sample  *sample // nil if all lines are returned
	skip    int64   // rows to leave out first
	counted bool    // the rows of the files were counted by Survey

	told   int64        // of read, to who watches; -1 before the first batch
	before int64        // stored bytes of the finished files
	read   atomic.Int64 // before, plus what the rows of current take so far
	total  int64
}

// Reader checks that every file has the columns (see Check) and returns a
// Reader of these columns, in this order. Only one Reader can read standard
// input.
func (l *List) Reader(columns []string) (*Reader, error) {
	if err := l.Check(columns); err != nil {
		return nil, err
	}
	for _, in := range l.inputs {
		if in.once && in.stream == nil {
			return nil, &FormatError{File: in.URI, Problem: "has been read already", Advice: "Save it to a file and name that"}
		}
	}
	r := &Reader{columns: columns, maxRows: l.options.BatchRows, total: l.total(), told: -1}
	if l.options.Sample > 0 {
		r.sample = &sample{size: l.options.Sample}
	}
	for _, in := range l.inputs {
		mine := *in
		in.stream = nil // the Reader owns it from here on
		r.inputs = append(r.inputs, &mine)
	}
	return r, nil
}

// Next returns the next batch: at most maxRows rows of one file, and never more
// than Options.BatchRows; 0 means that limit. A batch has fewer rows at the end
// of a file or if the rows are wide. A batch may hold rejects only. After the
// last batch Next returns io.EOF.
//
// Where batches end depends on the content and on maxRows, not on how the bytes
// arrive. Errors are *FormatError, wrap ErrChanged, or are read errors. After
// an error, Next returns the same error again.
func (r *Reader) Next(ctx context.Context, maxRows int) (*Batch, error) {
	if r.err != nil {
		return nil, r.err
	}
	next := r.batch
	if r.sample != nil {
		next = r.nextSampled
	}
	var batch *Batch
	err := r.skipRows(ctx)
	if err == nil {
		batch, err = next(ctx, maxRows)
	}
	if err != nil {
		r.err = err
		r.release()
	}
	r.tell(progress.Of(ctx))
	return batch, err
}

// tell tells who watches how many bytes were read.
func (r *Reader) tell(work *progress.Work) {
	if work == nil {
		return
	}
	read, total := r.Position()
	if r.told < 0 {
		work.Expect(total)
		r.told = 0
	}
	work.Done(read - r.told)
	r.told = read
}

func (r *Reader) batch(ctx context.Context, maxRows int) (*Batch, error) {
	if maxRows <= 0 || maxRows > r.maxRows {
		maxRows = r.maxRows
	}
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if r.current == nil {
			if r.next == len(r.inputs) {
				return nil, io.EOF
			}
			if err := r.open(ctx, r.inputs[r.next]); err != nil {
				return nil, err
			}
			r.next++
			if err := beginNext(ctx, r.inputs[r.next:]); err != nil {
				return nil, err
			}
		}
		in := r.inputs[r.next-1]
		maxRows = min(maxRows, max(batchCells/max(r.stored, 1), leastBatchRows))
		b := rows.NewBuilder(r.stored, maxRows)
		if err := r.current.Fill(ctx, b, maxRows); err != nil {
			if ctx.Err() != nil {
				err = ctx.Err() // even at the end: Next must not report the end
			} else {
				err = r.current.finish(err)
			}
			if err != nil {
				b.Discard()
				return nil, err
			}
			r.release()
			if r.before += in.Size; in.Size < 0 {
				r.before = r.read.Load()
			}
			r.read.Store(r.before)
		}
		if r.counted && in.Format == formatParquet && b.Rejects() > 0 {
			b.Discard()
			return nil, miscounted(in)
		}
		if !b.Empty() {
			return b.Batch(in.URI, r.order), nil
		}
		b.Discard()
	}
}

// open starts reading an input. It stores a column once, even if it is
// requested twice.
func (r *Reader) open(ctx context.Context, in *input) (err error) {
	places, err := in.pick(r.columns)
	if err != nil {
		return err
	}
	var fields []int
	order := make([]int, len(places))
	for i, field := range places {
		at := slices.Index(fields, field)
		if at < 0 {
			at = len(fields)
			fields = append(fields, field)
		}
		order[i] = at
	}
	r.stored, r.order = len(fields), order
	progress := func(read int64) { r.read.Store(max(r.read.Load(), r.before+read)) } // for a compressed file the share is an estimate
	if in.Format == formatParquet {
		r.current, err = openParquet(ctx, in, fields, progress)
	} else {
		r.current, err = openText(ctx, in, fields, progress)
	}
	return err
}

// Position returns how many stored (compressed) bytes the rows so far take, for
// progress. Data that is read ahead does not count. bytesTotal is -1 if
// unknown, as for standard input.
func (r *Reader) Position() (bytesRead, bytesTotal int64) {
	if r.sample != nil && r.total >= 0 {
		return r.sample.share(r.total), r.total
	}
	return r.read.Load(), r.total
}

// Close stops reading and frees its resources. Batches stay valid until they
// are released.
//
// A read of standard input that waits for a terminal or a pipe cannot be
// interrupted. Close does not wait for such a read; it ends with the input.
func (r *Reader) Close() error {
	r.release()
	for _, in := range r.inputs[r.next:] {
		if in.stream != nil {
			in.stream.Close()
		}
		if in.early != nil {
			in.early.interrupt()
			in.early.close()
		}
	}
	r.next = len(r.inputs)
	if r.err == nil {
		r.err = io.EOF
	}
	return nil
}

func (r *Reader) release() {
	if r.current != nil {
		r.current.close()
		r.current = nil
	}
}
