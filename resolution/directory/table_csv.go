package directory

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"

	"github.com/leadetl/leadetl/internal/unpack"
	"github.com/leadetl/leadetl/resolution"
)

// maxRecord bounds the bytes of one record: an open quote would otherwise take
// the rest of the file into memory.
const maxRecord = 64 << 20

// readCSV reads a header and the lines below it. Comma, semicolon, tab or |,
// whichever the header has most of; gzip and zstd are unpacked. Errors of
// reading f are returned as they are.
func readCSV(f io.Reader, want columns, each func(row) error) error {
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
		return fmt.Errorf("%w: the file is UTF-16; convert it: iconv -f UTF-16 -t UTF-8", resolution.ErrInvalid)
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
		return fmt.Errorf("%w: the file is empty; a header is needed", resolution.ErrInvalid)
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
			err = each(row{line: int64(malformed.StartLine), bad: "malformed_csv", spoiled: int64(malformed.Line-malformed.StartLine) + 1})
		case err != nil:
			return fmt.Errorf("below line %d: %w", line, blame(err))
		case len(record) != width:
			line, _ = r.FieldPos(0)
			err = each(row{line: int64(line), bad: "column_count", spoiled: 1})
		default:
			for i, p := range places {
				cells[i] = ""
				if p >= 0 {
					cells[i] = record[p]
				}
			}
			line, _ = r.FieldPos(0)
			err = each(row{line: int64(line), cells: cells})
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

// errLongRecord says what maxRecord is against.
var errLongRecord = fmt.Errorf("a record is longer than %d MiB; is a quote opened there and not closed?", maxRecord>>20)

// recordReader hands out so many bytes and no more; its user sets left anew
// for every record.
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

// blame makes what the file's content is to blame for ErrInvalid, without the
// place of malformed CSV: encoding/csv counts in lines of the unpacked file and
// says so again. Other errors are the disk's and stay as they are.
func blame(err error) error {
	var malformed *csv.ParseError
	switch {
	case errors.As(err, &malformed):
		return fmt.Errorf("%w: %w", resolution.ErrInvalid, malformed.Err)
	case errors.Is(err, errLongRecord), errors.Is(err, unpack.ErrCut), errors.Is(err, unpack.ErrDamaged):
		return fmt.Errorf("%w: %w", resolution.ErrInvalid, err)
	}
	return err
}
