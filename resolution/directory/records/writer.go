package records

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"strings"

	"github.com/leadetl/leadetl/internal/atomicfile"
	"github.com/leadetl/leadetl/internal/columnfile"
	"github.com/leadetl/leadetl/resolution"
)

// maxDictionary bounds the texts of a dictionary. Later texts are written into their
// records.
const maxDictionary = 1 << 16

var errTooMany = fmt.Errorf("%w: more than 2,147,483,647 rows", resolution.ErrInvalid)

// Writer writes a file of records. Its memory is bounded.
type Writer struct {
	// Columns takes the other sections of the file, after Records.
	Columns      *columnfile.Writer
	file         *os.File
	offsets      *columnfile.Spool[uint64]
	keys         *IndexWriter
	dictionaries []map[string]uint64 // by field, nil for one without
	texts        [][]string          // of the dictionaries
	end          uint64              // of the records
	record       []byte
	lost         []uint64 // a bit for each replaced row
}

// NewWriter starts a file at path, under its temporary name. repeated has an element for each
// field: true for a dictionary. The first field is the key, which has none.
func NewWriter(path string, repeated []bool) (_ *Writer, err error) {
	w := &Writer{dictionaries: make([]map[string]uint64, len(repeated)), texts: make([][]string, len(repeated)), keys: NewIndexWriter(path)}
	for i, yes := range repeated {
		if yes {
			w.dictionaries[i] = map[string]uint64{}
		}
	}
	if w.offsets, err = columnfile.NewSpool[uint64](path); err != nil {
		return nil, err
	}
	if w.file, err = os.Create(atomicfile.TempName(path)); err != nil {
		return nil, errors.Join(err, w.offsets.Close())
	}
	w.Columns = columnfile.NewWriter(w.file)
	columnfile.Begin[uint8](w.Columns, "records")
	return w, w.offsets.Add(0)
}

// Close closes the file without removing it.
func (w *Writer) Close() error {
	return errors.Join(w.file.Close(), w.offsets.Close(), w.keys.Close())
}

// Add adds a record and returns its row. The last record of a key is kept. It copies the
// fields.
func (w *Writer) Add(fields ...string) (row uint32, err error) {
	n := w.Rows()
	if n == math.MaxInt32 {
		return 0, errTooMany
	}
	row = uint32(n)
	w.record = w.record[:0]
	for i, text := range fields {
		if code, ok := w.code(i, text); ok {
			w.record = binary.AppendUvarint(w.record, code<<1|1)
			continue
		}
		w.record = binary.AppendUvarint(w.record, uint64(len(text))<<1)
		w.record = append(w.record, text...)
	}
	columnfile.Put(w.Columns, w.record...)
	w.end += uint64(len(w.record))
	if err := w.offsets.Add(w.end); err != nil {
		return 0, err
	}
	return row, w.keys.Add(HashOf(fields[0]), ^row, row)
}

// code returns the index of a text in the dictionary of a field, if it has one.
func (w *Writer) code(field int, text string) (code uint64, ok bool) {
	d := w.dictionaries[field]
	if d == nil || text == "" {
		return 0, false
	}
	if code, ok = d[text]; ok {
		return code, true
	}
	if len(d) == maxDictionary {
		return 0, false
	}
	code = uint64(len(d))
	text = strings.Clone(text)
	d[text] = code
	w.texts[field] = append(w.texts[field], text)
	return code, true
}

// Rows is the number of added records.
func (w *Writer) Rows() int { return w.offsets.Len() - 1 }

// Records writes the sections of the records and returns the number of distinct keys.
func (w *Writer) Records(ctx context.Context) (keys int, err error) {
	offsets, err := w.offsets.Read()
	if err != nil {
		return 0, err
	}
	columnfile.Column(w.Columns, "record_offsets", offsets)
	if err := w.offsets.Close(); err != nil {
		return 0, err
	}
	all := columnfile.Texts{Offsets: []uint64{0}}
	sizes := make([]uint32, len(w.texts))
	for i, texts := range w.texts {
		sizes[i] = uint32(len(texts))
		for _, text := range texts {
			all = all.With([]byte(text))
		}
	}
	columnfile.Column(w.Columns, "dictionary_sizes", sizes)
	columnfile.PutTexts(w.Columns, "dictionary", all)
	w.lost = make([]uint64, (len(offsets)+63)/64)
	keys, err = w.keys.Write(ctx, w.Columns, "keys", nil, func(row uint32) { w.lost[row/64] |= 1 << (row % 64) })
	return keys, errors.Join(err, w.keys.Close())
}

// Kept reports whether a row was not replaced. Call it after Records.
func (w *Writer) Kept(row uint32) bool { return w.lost[row/64]>>(row%64)&1 == 0 }

// Finish ends the file.
func (w *Writer) Finish() error { return w.Columns.Finish() }
