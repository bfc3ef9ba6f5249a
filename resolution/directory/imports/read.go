package imports

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"

	"github.com/sourcegraph/conc/stream"

	"github.com/leadetl/leadetl/internal/tabular"
	"github.com/leadetl/leadetl/resolution"
)

// batchRows is how many rows one goroutine parses at a time.
const batchRows = 256

// Read reads the rows of r.Source. Several goroutines call parse for the
// well-formed rows; it reports what it skips and drops in its Report, and
// returns false for a line that is not taken over. One goroutine at a time
// calls take with the others, in the order of the file. Too many bad lines are
// an error.
//
// Errors: resolution.ErrInvalid when the content of the file is wrong.
func Read[T any](ctx context.Context, s Settings, r *Report, want tabular.Columns, parse func(tabular.Row, *Report) (T, bool), take func(T) error) error {
	b := batches[T]{report: r, parse: parse, take: take, width: len(want.Names), ordered: stream.New().WithMaxGoroutines(runtime.GOMAXPROCS(0))}
	err := tabular.Read(ctx, r.Source, want, b.add)
	b.flush()
	b.ordered.Wait()
	var content *tabular.FileError
	switch {
	case b.failed != nil:
		return b.failed
	case errors.As(err, &content):
		return fmt.Errorf("%w: %w", resolution.ErrInvalid, err)
	case err != nil:
		return err
	}
	if float64(r.Bad) > s.MaxBadLines*float64(r.Lines) {
		return fmt.Errorf("%w: %d of %d lines are bad, more than %.4g%%; the old data stays",
			resolution.ErrInvalid, r.Bad, r.Lines, 100*s.MaxBadLines)
	}
	return nil
}

// batches cuts the rows of a file into batches and parses them.
type batches[T any] struct {
	report  *Report
	parse   func(tabular.Row, *Report) (T, bool)
	take    func(T) error
	width   int
	ordered *stream.Stream
	rows    []tabular.Row
	cells   []string // of rows, width each

	stopped atomic.Bool
	failed  error // of take; set before stopped
}

// errStopped ends the reading after take has failed.
var errStopped = errors.New("stopped")

func (b *batches[T]) add(row tabular.Row) error {
	if b.stopped.Load() {
		return errStopped
	}
	if b.rows == nil {
		b.rows, b.cells = make([]tabular.Row, 0, batchRows), make([]string, 0, batchRows*b.width)
	}
	at := len(b.cells)
	b.cells = append(b.cells, row.Cells...)
	row.Cells = b.cells[at:len(b.cells):len(b.cells)]
	if b.rows = append(b.rows, row); len(b.rows) == batchRows {
		b.flush()
	}
	return nil
}

// flush parses the rows that were added, on a goroutine, and takes them.
func (b *batches[T]) flush() {
	rows := b.rows
	b.rows, b.cells = nil, nil
	b.ordered.Go(func() stream.Callback {
		parsed := make([]T, 0, len(rows))
		report := Report{Source: b.report.Source}
		for _, row := range rows {
			if row.Bad != "" {
				report.Lines += row.Spoiled
				report.Skip(row.Line, row.Bad)
				report.Bad += row.Spoiled - 1
				continue
			}
			report.Lines++
			if t, ok := b.parse(row, &report); ok {
				report.Rows++
				parsed = append(parsed, t)
			}
		}
		return func() {
			if b.failed != nil {
				return
			}
			b.report.add(report)
			for _, t := range parsed {
				if b.failed = b.take(t); b.failed != nil {
					b.stopped.Store(true)
					return
				}
			}
		}
	})
}
