package imports

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"

	"github.com/leadetl/leadetl/internal/inorder"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/sources"
)

// Row is a line of a file: trimmed cells of the wanted columns, in that order. They are
// empty if the file has no such column.
type Row struct {
	Line  int64    // from 1, of a CSV file; data row of a Parquet file
	Cells []string // the slice is valid until parse returns; the texts stay valid
}

// Read reads the rows of all files of r.Source. Several goroutines call parse for
// well-formed rows: it adds what it skips and drops to its Report, and returns false for a
// line to skip. One goroutine at a time calls take with the other lines, in the order of
// the files. Too many bad lines are an error.
//
// Errors: resolution.ErrInvalid for files with the wrong content.
func Read[T any](ctx context.Context, s Settings, r *Report, want Columns, parse func(Row, *Report) (T, bool), take func(T) error) error {
	b := batches[T]{report: r, parse: parse, take: take}
	b.parsing = inorder.New(b.takeAll)
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
		return fmt.Errorf("%w: %d of %d lines are bad, more than %.4g%%; the old data stays",
			resolution.ErrInvalid, r.Bad, r.Lines, 100*s.MaxBadLines)
	}
	return nil
}

// batches reads files in batches and parses them.
type batches[T any] struct {
	report  *Report
	parse   func(Row, *Report) (T, bool)
	take    func(T) error
	parsing *inorder.Queue[batch[T]]

	stopped atomic.Bool
	failed  error // of take; set before stopped
}

// readAll reads all files. Files may have different wanted columns.
func (b *batches[T]) readAll(ctx context.Context, s Settings, want Columns) error {
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
func (b *batches[T]) read(ctx context.Context, files *sources.List, want Columns, called map[string]string) (err error) {
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
		b.parsing.Do(func() batch[T] { return b.parseBatch(next, places) })
	}
	return nil
}

// batch has the parsed lines of some rows.
type batch[T any] struct {
	parsed []T
	report Report
}

// parseBatch parses the rows of a batch. It copies their cells, one text for each column,
// because parsed lines may keep them.
func (b *batches[T]) parseBatch(from *sources.Batch, places []int) batch[T] {
	defer from.Release()
	parsed := batch[T]{make([]T, 0, from.Len()), Report{Source: from.Source}}
	report := &parsed.report
	texts := make([]string, len(from.Columns))
	for i, column := range from.Columns {
		texts[i] = string(column.ValueBytes())
	}
	cells := make([]string, len(places))
	rejects := from.Rejects
	for n := range from.Len() {
		row := Row{from.Line(n), cells}
		for ; len(rejects) > 0 && rejects[0].Line < row.Line; rejects = rejects[1:] {
			report.reject(rejects[0])
		}
		for i, place := range places {
			if place >= 0 {
				column := from.Columns[place]
				cells[i] = strings.TrimSpace(texts[place][column.ValueOffset(n):column.ValueOffset(n+1)])
			}
		}
		report.Lines++
		if t, ok := b.parse(row, report); ok {
			report.Rows++
			parsed.parsed = append(parsed.parsed, t)
		}
	}
	for _, r := range rejects {
		report.reject(r)
	}
	return parsed
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
