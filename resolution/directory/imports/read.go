package imports

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/leadetl/leadetl/internal/inorder"
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
	b := batches[T]{report: r, parse: parse, take: take, width: len(want.Names)}
	b.parsing = inorder.New(b.takeAll)
	err := tabular.Read(ctx, r.Source, want, b.add)
	b.flush()
	b.parsing.Wait()
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
	parsing *inorder.Queue[batch[T]]
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

// batch is what was parsed of some rows.
type batch[T any] struct {
	parsed []T
	report Report
}

// flush parses the rows that were added, on another goroutine.
func (b *batches[T]) flush() {
	rows := b.rows
	b.rows, b.cells = nil, nil
	b.parsing.Do(func() batch[T] {
		parsed := batch[T]{make([]T, 0, len(rows)), Report{Source: b.report.Source}}
		report := &parsed.report
		for _, row := range rows {
			if row.Bad != "" {
				report.Lines += row.Spoiled
				report.Skip(row.Line, row.Bad)
				report.Bad += row.Spoiled - 1
				continue
			}
			report.Lines++
			if t, ok := b.parse(row, report); ok {
				report.Rows++
				parsed.parsed = append(parsed.parsed, t)
			}
		}
		return parsed
	})
}

func (b *batches[T]) takeAll(next batch[T]) {
	if b.failed != nil {
		return
	}
	b.report.add(next.report)
	for _, t := range next.parsed {
		if b.failed = b.take(t); b.failed != nil {
			b.stopped.Store(true)
			return
		}
	}
}
