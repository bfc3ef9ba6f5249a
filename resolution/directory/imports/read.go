package imports

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/leadetl/leadetl/internal/inorder"
	"github.com/leadetl/leadetl/internal/jsonlist"
	"github.com/leadetl/leadetl/internal/spreadsheet"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/sources"
)

// Row is a line of a file: trimmed cells of the wanted columns, in that order, without the marks
// of spreadsheets; of a list with one value, that value. They are empty if the file has no such
// column.
type Row struct {
	Line int64 // from 1, of a CSV file; data row of a Parquet file
	// Cells is valid until the row is parsed, and its texts until it is taken.
	Cells []string
}

// Read reads the rows of all files of r.Source. Several goroutines call parse for
// well-formed rows: it adds what it skips and drops to its Report, and returns false for a
// line to skip. One goroutine at a time calls take with the other lines, in the order of
// the files. Too many bad lines are an error.
//
// Errors: resolution.ErrInvalid for files with the wrong content.
func Read[T any](ctx context.Context, s Options, r *Report, want Columns, parse func(Row, *Report) (T, bool), take func(T) error) error {
	return ReadBatches(ctx, s, r, want, Steps[[]T]{
		Parse: func(row Row, lines *[]T, r *Report) bool {
			line, ok := parse(row, r)
			if ok {
				*lines = append(*lines, line)
			}
			return ok
		},
		Take: func(lines *[]T) error {
			for _, line := range *lines {
				if err := take(line); err != nil {
					return err
				}
			}
			*lines = (*lines)[:0]
			return nil
		},
	})
}

// Steps are the steps of reading. B holds the parsed lines of a batch of rows, and is used
// again after Take.
type Steps[B any] struct {
	// Parse adds a row to its batch. It is otherwise like parse of Read.
	Parse func(Row, *B, *Report) bool
	// End, if any, follows the last row of a batch, on the same goroutine as Parse.
	End func(*B)
	// Take takes the batches, one at a time in the order of the files, and empties them.
	Take func(*B) error
}

// ReadBatches is Read for kinds that parse many lines together.
func ReadBatches[B any](ctx context.Context, s Options, r *Report, want Columns, steps Steps[B]) error {
	b := batches[B]{report: r, steps: steps}
	b.parsing = inorder.New(b.take)
	err := b.readAll(ctx, s, want)
	b.parsing.Wait()
	_, wrong := errors.AsType[*sources.FormatError](err)
	switch {
	case b.failed != nil:
		return b.failed
	case wrong:
		return fmt.Errorf("%w: %w", resolution.ErrInvalid, err)
	case err != nil:
		return err
	}
	if float64(r.Bad) > s.MaxBadLines*float64(r.Lines) {
		other := ""
		if r.Bad == r.Lines {
			other = "; the file may be of another kind than its flag"
		}
		return fmt.Errorf("%w: %d of %d lines are bad, more than %.4g%%%s; the old data stays",
			resolution.ErrInvalid, r.Bad, r.Lines, 100*s.MaxBadLines, other)
	}
	return nil
}

// batches reads files in batches and parses them.
type batches[B any] struct {
	report  *Report
	steps   Steps[B]
	parsing *inorder.Queue[batch[B]]
	free    sync.Pool // of *B that were taken

	stopped atomic.Bool
	failed  error // of Take; set before stopped
}

// readAll reads all files. Files may have different wanted columns.
func (b *batches[B]) readAll(ctx context.Context, s Options, want Columns) error {
	open := s.Open
	if open == nil {
		open = func(ctx context.Context, uri string) (*sources.List, error) {
			return sources.Open(ctx, []string{uri}, sources.Options{})
		}
	}
	list, err := open(ctx, b.report.Source)
	if err != nil {
		return err
	}
	alike := list.ByColumns()
	for _, files := range alike {
		defer files.Close()
	}
	for _, files := range alike {
		if err := b.read(ctx, files, want, s.Called); err != nil {
			return err
		}
	}
	return nil
}

// read reads files with the same columns.
func (b *batches[B]) read(ctx context.Context, files *sources.List, want Columns, called map[string]string) (err error) {
	names, places, err := want.find(files.Files()[0], called)
	if err != nil {
		return err
	}
	reader, err := files.Reader(names)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, reader.Close()) }()
	for !b.stopped.Load() {
		next, err := reader.Next(ctx, 0)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		b.parsing.Do(func() batch[B] { return b.parseBatch(next, places) })
	}
	return nil
}

// batch has the parsed lines of some rows.
type batch[B any] struct {
	from   *sources.Batch
	parsed *B
	report Report
}

// parseBatch parses the rows of a batch.
func (b *batches[B]) parseBatch(from *sources.Batch, places []int) batch[B] {
	parsed, ok := b.free.Get().(*B)
	if !ok {
		parsed = new(B)
	}
	report := Report{Source: from.Source}
	type column struct {
		text    string // of all cells, in the memory of the batch
		offsets []int32
		first   int32
	}
	columns := make([]column, len(places))
	for i, place := range places {
		if place >= 0 && from.Len() > 0 {
			values, offsets := from.Columns[place].ValueBytes(), from.Columns[place].ValueOffsets()
			columns[i] = column{unsafe.String(unsafe.SliceData(values), len(values)), offsets, offsets[0]}
		}
	}
	cells := make([]string, len(places))
	rejects := from.Rejects
	for n := range from.Len() {
		row := Row{from.Line(n), cells}
		for ; len(rejects) > 0 && rejects[0].Line < row.Line; rejects = rejects[1:] {
			report.reject(rejects[0])
		}
		for i := range columns {
			if c := &columns[i]; c.offsets != nil {
				cells[i] = withoutMarks(trim(c.text[c.offsets[n]-c.first : c.offsets[n+1]-c.first]))
			}
		}
		report.Lines++
		if b.steps.Parse(row, parsed, &report) {
			report.Rows++
		}
	}
	for _, r := range rejects {
		report.reject(r)
	}
	if b.steps.End != nil {
		b.steps.End(parsed)
	}
	return batch[B]{from, parsed, report}
}

// withoutMarks returns the value of a list with one, and the text that a spreadsheet has marked.
func withoutMarks(cell string) string {
	if cell == "" || cell[0] != '[' && cell[0] != '\'' && cell[0] != '=' {
		return cell
	}
	return trim(spreadsheet.Text(jsonlist.Only(cell)))
}

// trim is strings.TrimSpace, at once where nothing is to be trimmed.
func trim(cell string) string {
	if n := len(cell); n == 0 || isPlain(cell[0]) && isPlain(cell[n-1]) {
		return cell
	}
	return strings.TrimSpace(cell)
}

func isPlain(c byte) bool { return ' ' < c && c < 0x80 }

func (b *batches[B]) take(next batch[B]) {
	defer next.from.Release()
	if b.failed != nil {
		return
	}
	b.report.add(next.report)
	if b.failed = b.steps.Take(next.parsed); b.failed != nil {
		b.stopped.Store(true)
		return
	}
	b.free.Put(next.parsed)
}
