package directory

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/leadetl/leadetl/resolution"
)

// readCSV reads a header and the lines below it. Comma, semicolon or tab,
// whichever the header has most of; gzip and zstd are unpacked.
func readCSV(f io.Reader, want columns, each func(row) error) error {
	const peek = 64 << 10
	in := bufio.NewReaderSize(f, peek)
	start, _ := in.Peek(4)
	switch {
	case bytes.HasPrefix(start, []byte{0x1f, 0x8b}):
		z, err := gzip.NewReader(in)
		if err != nil {
			return fmt.Errorf("%w: %w", resolution.ErrInvalid, err)
		}
		defer z.Close()
		in = bufio.NewReaderSize(z, peek)
	case bytes.HasPrefix(start, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		z, err := zstd.NewReader(in)
		if err != nil {
			return fmt.Errorf("%w: %w", resolution.ErrInvalid, err)
		}
		defer z.Close()
		in = bufio.NewReaderSize(z, peek)
	}
	start, _ = in.Peek(peek)
	if bytes.HasPrefix(start, []byte{0xff, 0xfe}) || bytes.HasPrefix(start, []byte{0xfe, 0xff}) {
		return fmt.Errorf("%w: the file is UTF-16; convert it: iconv -f UTF-16 -t UTF-8", resolution.ErrInvalid)
	}
	if bom := []byte{0xef, 0xbb, 0xbf}; bytes.HasPrefix(start, bom) {
		in.Discard(len(bom))
		start = start[len(bom):]
	}

	r := csv.NewReader(in)
	r.Comma = delimiter(start)
	r.ReuseRecord = true
	r.FieldsPerRecord = -1
	record, err := r.Read()
	if err == io.EOF {
		return fmt.Errorf("%w: the file is empty; a header is needed", resolution.ErrInvalid)
	}
	if err != nil {
		return fmt.Errorf("%w: header: %w", resolution.ErrInvalid, bare(err))
	}
	places, err := want.find(record)
	if err != nil {
		return err
	}
	width := len(record)
	cells := make([]string, len(places))
	for {
		record, err := r.Read()
		if err == io.EOF {
			return nil
		}
		var malformed *csv.ParseError
		switch {
		case errors.As(err, &malformed):
			err = each(row{line: int64(malformed.StartLine), bad: "malformed_csv", spoiled: int64(malformed.Line-malformed.StartLine) + 1})
		case err != nil:
			return fmt.Errorf("%w: %w", resolution.ErrInvalid, err)
		case len(record) != width:
			line, _ := r.FieldPos(0)
			err = each(row{line: int64(line), bad: "column_count", spoiled: 1})
		default:
			for i, p := range places {
				cells[i] = ""
				if p >= 0 {
					cells[i] = record[p]
				}
			}
			line, _ := r.FieldPos(0)
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
	for _, c := range ";\t" {
		if n := bytes.Count(line, []byte(string(c))); n > most {
			best, most = c, n
		}
	}
	return best
}

// bare is what is wrong, without the place: encoding/csv counts in lines of
// the unpacked file and says so again.
func bare(err error) error {
	var malformed *csv.ParseError
	if errors.As(err, &malformed) {
		return malformed.Err
	}
	return err
}
