package pipeline

import (
	"fmt"
	"unicode/utf8"

	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"

	"github.com/leadetl/leadetl/sinks"
	"github.com/leadetl/leadetl/sources"
)

// rejectsWriter writes the malformed lines of one part. A part without
// malformed lines has no file.
type rejectsWriter struct {
	dataset *sinks.Dataset
	table   sinks.Table
	number  int
	out     *sinks.Writer
}

func (w *rejectsWriter) write(rejects []sources.Reject) (err error) {
	if len(rejects) == 0 {
		return nil
	}
	if w.out == nil {
		if w.out, err = w.dataset.Rejects(w.number, w.table); err != nil {
			return err
		}
	}
	b := array.NewRecordBuilder(memory.DefaultAllocator, w.table.Schema())
	defer b.Release()
	for _, r := range rejects {
		b.Field(0).(*array.StringBuilder).Append(r.Source)
		b.Field(1).(*array.Int64Builder).Append(r.Line)
		b.Field(2).(*array.StringBuilder).Append(r.Reason)
		if len(w.table.Columns) > 3 {
			b.Field(3).(*array.StringBuilder).Append(printable(r.Raw))
		}
	}
	rec := b.NewRecord()
	defer rec.Release()
	return w.out.Write(rec)
}

// finish frees the memory. commit waits for the disk.
func (w *rejectsWriter) finish() error {
	if w.out == nil {
		return nil
	}
	return w.out.Finish()
}

func (w *rejectsWriter) commit() (*sinks.File, error) {
	if w.out == nil {
		return nil, nil
	}
	f, err := w.out.Commit()
	if err != nil {
		return nil, err
	}
	return &f, nil
}

func (w *rejectsWriter) abort() error {
	if w.out == nil {
		return nil
	}
	return w.out.Abort()
}

// printable returns the line as valid UTF-8, as Parquet strings require.
// Invalid bytes become \xNN, so that none is lost.
func printable(raw []byte) string {
	if utf8.Valid(raw) {
		return string(raw)
	}
	var out []byte
	for len(raw) > 0 {
		r, size := utf8.DecodeRune(raw)
		if r == utf8.RuneError && size == 1 {
			out = fmt.Appendf(out, `\x%02X`, raw[0])
		} else {
			out = append(out, raw[:size]...)
		}
		raw = raw[size:]
	}
	return string(out)
}
