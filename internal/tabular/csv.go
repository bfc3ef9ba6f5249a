package tabular

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"

	"github.com/leadetl/leadetl/internal/unpack"
)

// maxRecord bounds the bytes of one record: an open quote would otherwise take
// the rest of the file into memory.
const maxRecord = 64 << 20

// readCSV reads a header and the lines below it. The delimiter is the comma,
// semicolon, tab or | that the header has most of. It unpacks gzip and zstd.
func readCSV(f io.Reader, want Columns, each func(Row) error) error {
	const peek = 64 << 10
	unpacked, err := unpack.NewReader(f)
	if err != nil {
		return blame(err)
	}
	defer unpacked.Close()
	in := bufio.NewReaderSize(unpacked, peek)
	start, err := in.Peek(peek)
	if err != nil && err != io.EOF {
		return blame(err)
	}
	if bytes.HasPrefix(start, []byte{0xff, 0xfe}) || bytes.HasPrefix(start, []byte{0xfe, 0xff}) {
		return invalid("the file is UTF-16; convert it: iconv -f UTF-16 -t UTF-8")
	}
	if bom := []byte{0xef, 0xbb, 0xbf}; bytes.HasPrefix(start, bom) {
		in.Discard(len(bom))
		start = start[len(bom):]
	}

	bounded := &recordReader{r: in, left: maxRecord}
	r := csv.NewReader(bounded)
	r.Comma = delimiter(start)
	r.ReuseRecord = true
	r.FieldsPerRecord = -1
	record, err := r.Read()
	if err == io.EOF {
		return invalid("the file is empty; a header is needed")
	}
	if err != nil {
		return fmt.Errorf("header: %w", blame(err))
	}
	places, err := want.find(record)
	if err != nil {
		return err
	}
	width := len(record)
	cells := make([]string, len(places))
	for line := 1; ; {
		bounded.left = maxRecord
		record, err := r.Read()
		if err == io.EOF {
			return nil
		}
		var malformed *csv.ParseError
		switch {
		case errors.As(err, &malformed):
			err = each(Row{Line: int64(malformed.StartLine), Bad: "malformed_csv", Spoiled: int64(malformed.Line-malformed.StartLine) + 1})
		case err != nil:
			return fmt.Errorf("below line %d: %w", line, blame(err))
		case len(record) != width:
			line, _ = r.FieldPos(0)
			err = each(Row{Line: int64(line), Bad: "column_count", Spoiled: 1})
		default:
			for i, p := range places {
				cells[i] = ""
				if p >= 0 {
					cells[i] = record[p]
				}
			}
			line, _ = r.FieldPos(0)
			err = each(Row{Line: int64(line), Cells: cells})
		}
		if err != nil {
			return err
		}
	}
}

// delimiter picks the separator the first line has most of.
func delimiter(start []byte) rune {
	line, _, _ := bytes.Cut(start, []byte("\n"))
	best, most := ',', bytes.Count(line, []byte(","))
	for _, c := range ";\t|" {
		if n := bytes.Count(line, []byte(string(c))); n > most {
			best, most = c, n
		}
	}
	return best
}

var errLongRecord = fmt.Errorf("a record is longer than %d MiB; is a quote opened there and not closed?", maxRecord>>20)

// recordReader fails after left bytes. Its user sets left for every record.
type recordReader struct {
	r    io.Reader
	left int
}

func (r *recordReader) Read(p []byte) (int, error) {
	if r.left <= 0 {
		return 0, errLongRecord
	}
	n, err := r.r.Read(p)
	r.left -= n
	return n, err
}

// blame makes an error of the content a FileError. It drops the place that
// encoding/csv names, which is in the row already. Errors of the disk stay as
// they are.
func blame(err error) error {
	var malformed *csv.ParseError
	switch {
	case errors.As(err, &malformed):
		return &FileError{malformed.Err}
	case errors.Is(err, errLongRecord), errors.Is(err, unpack.ErrCut), errors.Is(err, unpack.ErrDamaged):
		return &FileError{err}
	}
	return err
}
