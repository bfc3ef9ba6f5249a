package keyed

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"runtime/debug"
)

// Writer writes a file of records. Its memory is bounded.
type Writer struct {
	// Columns takes the other sections of the file, after Records.
	Columns      *ColumnWriter
	offsets      *Spool[uint64]
	keys         *IndexWriter
	dictionaries []*numbering // by field, nil for one without
	rows         int
	end          uint64   // of the records
	records      []byte   // the last ones, not written yet
	ends         []uint64 // of records, not written yet
	lost         []uint64 // a bit for each replaced row
}

// bufferBytes is how many bytes of records are written together.
const bufferBytes = 64 << 10

// NewWriter starts a file at the beginning of to, with temporary files in the folder scratch.
// repeated has an element for each field: true for a dictionary. The first field is the key,
// which has none.
func NewWriter(to io.Writer, scratch string, repeated []bool, bits PageBits) *Writer {
	w := &Writer{
		Columns: NewColumnWriter(to, bits), offsets: NewSpool[uint64](scratch), keys: NewIndexWriter(scratch, Last),
		dictionaries: make([]*numbering, len(repeated)), ends: []uint64{0},
	}
	for i, yes := range repeated {
		if yes {
			w.dictionaries[i] = &numbering{}
		}
	}
	begin[uint8](w.Columns, "records")
	return w
}

// Close frees the temporary files. It may be called again.
func (w *Writer) Close() error { return errors.Join(w.offsets.Close(), w.keys.Close()) }

// Add adds a record and returns its row. The last record of a key is kept. It copies the
// fields.
func (w *Writer) Add(fields ...string) (row uint32, err error) {
	if w.rows == math.MaxInt32 {
		return 0, ErrFull
	}
	row = uint32(w.rows)
	w.rows++
	start := len(w.records)
	for i, text := range fields {
		if d := w.dictionaries[i]; d != nil && text != "" {
			if code, ok := d.code(text); ok {
				w.records = binary.AppendUvarint(w.records, code<<1|1)
				continue
			}
		}
		w.records = binary.AppendUvarint(w.records, uint64(len(text))<<1)
		w.records = append(w.records, text...)
	}
	w.end += uint64(len(w.records) - start)
	w.ends = append(w.ends, w.end)
	if len(w.records) >= bufferBytes {
		if err := w.flush(); err != nil {
			return 0, err
		}
	}
	return row, w.keys.Add(HashOf(fields[0]), row, false)
}

// flush writes the records in the buffer.
func (w *Writer) flush() error {
	put(w.Columns, w.records...)
	err := w.offsets.Add(w.ends...)
	w.records, w.ends = w.records[:0], w.ends[:0]
	return err
}

// Rows is the number of added records.
func (w *Writer) Rows() int { return w.rows }

// Records writes the sections of the records and returns the number of distinct keys.
func (w *Writer) Records(ctx context.Context) (keys int, err error) {
	defer Guard(&err, debug.SetPanicOnFault(true)) // the offsets are a mapped file
	if err := w.flush(); err != nil {
		return 0, err
	}
	offsets, err := w.offsets.Read()
	if err != nil {
		return 0, err
	}
	Column(w.Columns, "record_offsets", offsets)
	if err := w.offsets.Close(); err != nil {
		return 0, err
	}
	var all []string
	sizes := make([]uint32, len(w.dictionaries))
	for i, d := range w.dictionaries {
		if d == nil {
			continue
		}
		sizes[i] = uint32(len(d.texts))
		all = append(all, d.texts...)
	}
	Column(w.Columns, "dictionary_sizes", sizes)
	PutEachText(w.Columns, "dictionary", len(all), func(i int) []byte { return []byte(all[i]) })
	w.lost = make([]uint64, (len(offsets)+63)/64)
	keys, err = w.keys.Write(ctx, w.Columns, "keys", nil, func(row uint32) { w.lost[row/64] |= 1 << (row % 64) })
	return keys, errors.Join(err, w.keys.Close())
}

// Kept reports whether a row was not replaced. Call it after Records.
func (w *Writer) Kept(row uint32) bool { return w.lost[row/64]>>(row%64)&1 == 0 }

// Finish ends the file.
func (w *Writer) Finish() error { return w.Columns.Finish() }
