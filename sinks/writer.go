package sinks

import (
	"errors"
	"fmt"

	"github.com/apache/arrow/go/v17/arrow"

	"github.com/leadetl/leadetl/sinks/parquet"
	"github.com/leadetl/leadetl/sinks/place"
)

// Writer writes a Parquet file of a dataset, in one goroutine.
type Writer struct {
	name     string
	file     place.Unfinished
	encoder  *parquet.Encoder
	rows     int64
	finished bool
}

func newWriter(in *place.Place, name string, t Table, pages *parquet.PagePool) (*Writer, error) {
	f, err := in.Create(name)
	if err != nil {
		return nil, fmt.Errorf("create %s: %w", name, err)
	}
	w := &Writer{name: name, file: f}
	if w.encoder, err = parquet.NewEncoder(f, t, pages); err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w", name, err), f.Abort())
	}
	return w, nil
}

// Write adds the rows of a record. The record may be released afterwards.
func (w *Writer) Write(rec arrow.Record) error {
	if rec.NumRows() == 0 {
		return nil
	}
	return w.add(rec, func() error { return nil })
}

// add adds the rows of a record, and ends the row groups that are full. It calls counted when
// the bytes of the open row group were counted.
func (w *Writer) add(rec arrow.Record, counted func() error) error {
	w.rows += rec.NumRows()
	return w.encoder.Add(rec, func() error {
		if w.encoder.IsFull() {
			if err := w.flush(); err != nil {
				return err
			}
		}
		return counted()
	})
}

// flush ends the open row group.
func (w *Writer) flush() error {
	if err := w.encoder.Flush(); err != nil {
		return fmt.Errorf("write %s: %w", w.name, err)
	}
	return nil
}

// Finish writes the rest of the file and frees its memory. Commit then only waits for the
// disk.
func (w *Writer) Finish() error {
	w.finished = true
	if err := w.encoder.Close(); err != nil {
		return errors.Join(fmt.Errorf("finish %s: %w", w.name, err), w.file.Abort())
	}
	if err := w.file.Flush(); err != nil {
		return errors.Join(fmt.Errorf("finish %s: %w", w.name, err), w.file.Abort())
	}
	return nil
}

// Commit finishes the file if necessary, makes it durable and gives it its final name. Its
// checksum may be unknown yet: see Dataset.Sum.
func (w *Writer) Commit() (File, error) {
	if !w.finished {
		if err := w.Finish(); err != nil {
			return File{}, err
		}
	}
	published, err := w.file.Commit()
	if err != nil {
		return File{}, fmt.Errorf("publish %s: %w", w.name, err)
	}
	return place.FileOf(published, w.rows), nil
}

// Abort drops the file; after Commit it does nothing.
func (w *Writer) Abort() error { return w.file.Abort() }
