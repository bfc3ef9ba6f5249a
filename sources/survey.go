package sources

import (
	"context"
	"io"

	"github.com/leadetl/leadetl/internal/progress"
	"github.com/leadetl/leadetl/internal/rows"
	"github.com/leadetl/leadetl/internal/unpack"
	"github.com/leadetl/leadetl/sources/csvfile"
)

// Mark is a place between two records of a file, at which reading can begin. The
// zero Mark is the start of the file.
type Mark struct {
	Offset int64 `json:"offset"` // stored bytes before it; in Parquet an estimate
	// Rows is the number of rows before it, without malformed ones.
	Rows int64 `json:"rows"`
	// Text is the state of the parser of a CSV or JSON Lines file.
	Text csvfile.Mark `json:"text,omitzero"`
	// Group is the number of a row group, in Parquet.
	Group int `json:"group,omitempty"`
}

// Survey counts the rows of a file.
type Survey struct {
	Rows int64 `json:"rows"` // without malformed ones
	// Malformed is the number of malformed records. In Parquet it is always 0:
	// the footer does not tell.
	Malformed int64 `json:"malformed"`
	// Marks are places in the file, in order, without its start.
	Marks []Mark `json:"marks,omitempty"`
}

// Start is a place in the input: Skip rows after a mark of a file.
type Start struct {
	File int   `json:"file"` // index in List.Files
	Mark Mark  `json:"mark"`
	Skip int64 `json:"skip,omitempty"` // rows, without malformed ones
}

// Survey counts the rows of a file, and marks a place about every so many stored
// bytes. It reads a text file once, and the footer of a Parquet file. A packed
// file, or one of another encoding, has no marks.
func (l *List) Survey(ctx context.Context, file int, every int64) (s Survey, err error) {
	in := *l.inputs[file]
	if in.once {
		return s, notAgain(&in)
	}
	if in.Format == formatParquet {
		return surveyParquet(ctx, &in, every)
	}
	work, told := progress.Of(ctx), int64(0)
	work.Expect(in.Size)
	f, err := openText(ctx, &in, nil, func(read int64) { work.Done(read - told); told = read })
	if err != nil {
		return s, err
	}
	defer f.close()
	text := f.(*textInput)
	for next := every; err == nil; {
		b := rows.NewBuilder(0, l.options.BatchRows)
		err = text.textReader.Fill(ctx, b, l.options.BatchRows)
		s.Rows, s.Malformed = s.Rows+int64(b.Len()), s.Malformed+int64(b.Rejects())
		b.Discard()
		if at := text.Mark(); err == nil && in.packing == unpack.None && in.encoding.IsUTF8() && at.Offset >= next {
			s.Marks = append(s.Marks, Mark{Offset: at.Offset, Rows: s.Rows, Text: at})
			next = at.Offset + every
		}
	}
	if ctx.Err() != nil {
		return s, ctx.Err()
	}
	return s, text.finish(err)
}

// surveyParquet reads a footer.
func surveyParquet(ctx context.Context, in *input, every int64) (s Survey, err error) {
	f, err := openParquet(ctx, in, nil, func(int64) {})
	if err != nil {
		return s, err
	}
	defer f.close()
	p := f.(*parquetInput)
	s.Rows = p.Rows()
	next := every
	for i, g := range p.Groups() {
		if g.Offset >= next {
			s.Marks = append(s.Marks, Mark{Offset: g.Offset, Rows: g.Row, Group: i})
			next = g.Offset + every
		}
	}
	return s, p.finish(io.EOF)
}

// notAgain is the error for a stream that must be read more than once, or from
// its middle.
func notAgain(in *input) error {
	return &FormatError{File: in.URI, Problem: "can be read only once, but its rows must be counted first", Advice: "Save it to a file and name that"}
}

// miscounted is the error for a Parquet file with malformed rows, which its footer
// counts like others.
func miscounted(in *input) error {
	return &FormatError{File: in.URI, Problem: "has a text that is not UTF-8, so its rows cannot be counted without reading all of it",
		Advice: "Correct it, or read the input in one piece, with leadetl run and without --on"}
}

// ReaderFrom returns a Reader of the rows from start on. Only files that can be
// read again have other places than their start.
func (l *List) ReaderFrom(columns []string, start Start) (*Reader, error) {
	r, err := l.Reader(columns)
	if err != nil {
		return nil, err
	}
	for _, in := range r.inputs[:start.File] {
		r.before += in.Size
	}
	r.read.Store(r.before)
	r.next, r.skip, r.counted = start.File, start.Skip, true
	r.inputs[start.File].from = start.Mark
	return r, nil
}

// skipRows drops the rows before the first one that is wanted.
func (r *Reader) skipRows(ctx context.Context) error {
	for r.skip > 0 {
		b, err := r.batch(ctx, int(min(r.skip, int64(r.maxRows))))
		if err == io.EOF {
			return r.inputs[len(r.inputs)-1].changed() // it had these rows
		}
		if err != nil {
			return err
		}
		r.skip -= int64(b.Len())
		b.Release()
	}
	return nil
}
