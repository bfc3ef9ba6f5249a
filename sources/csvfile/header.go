package csvfile

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode"

	"github.com/leadetl/leadetl/internal/rows"
)

// SampleSize is how much of a file is inspected before its first row is
// returned.
const SampleSize = 1 << 20

// byteOrderMark is the mark that some editors put at the start of UTF-8.
var byteOrderMark = []byte{0xef, 0xbb, 0xbf}

// Sample is the beginning of a file, unpacked.
type Sample struct {
	Name    string // as the user named it, "-" for standard input
	Packing string // gzip, zstd or empty; for advice only
	Bytes   []byte // up to SampleSize
	Whole   bool   // the file ends with Bytes
	// Encoding is what Bytes were decoded of; empty where no other can be chosen.
	Encoding Encoding
	// SkipLines is how many lines precede the header.
	SkipLines int
	// Wanted are names of columns of which the file has one.
	Wanted []string
}

// Header describes a file's header line.
type Header struct {
	Delimiter byte
	SkipLines int // before it
	// Columns holds the names without surrounding white space. A column without
	// a name is column_N, counted from 1. Names may occur twice.
	Columns []string
}

// ErrEmpty means that a file is empty and has not even a header.
var ErrEmpty = errors.New("empty")

// Inspect checks the sample's encoding and finds its header. delimiter 0 means
// the delimiter that a line sep=; before the header names, or else the one that
// fits best. All errors are *rows.FormatError.
func Inspect(s Sample, delimiter byte) (Header, error) {
	if s.Encoding.IsUTF8() { // else no byte of another one is left
		if err := s.checkEncoding(); err != nil {
			return Header{}, err
		}
	}
	text := bytes.TrimPrefix(s.Bytes, byteOrderMark)
	text = text[skipLines(text, s.SkipLines):]
	named, at := preamble(text, s.Whole)
	text = text[at:]
	if len(text) == 0 && s.Whole && s.SkipLines > 0 {
		return Header{}, &rows.FormatError{File: s.Name, Problem: fmt.Sprintf("has no header line after %d skipped lines", s.SkipLines),
			Advice: "Give fewer skip_lines", Err: ErrEmpty}
	}
	if len(text) == 0 && s.Whole {
		return Header{}, &rows.FormatError{File: s.Name, Problem: "is empty: it has no header line",
			Advice: "Write the names of the columns in its first line", Err: ErrEmpty}
	}
	if delimiter == 0 {
		delimiter = named
	}
	if delimiter == 0 {
		delimiter = detect(text, s.Whole, s.Wanted)
	}
	line := 1 + int64(bytes.Count(s.Bytes[:len(s.Bytes)-len(text)], []byte{'\n'}))
	scan := scanner{delimiter: delimiter}
	f := found{short: true}
	if len(text) > 0 {
		f = scan.scan(text, s.Whole)
	}
	switch {
	case f.short:
		return Header{}, &rows.FormatError{File: s.Name, Line: line,
			Problem: fmt.Sprintf("has a header line of more than %d MiB", SampleSize>>20),
			Advice:  "Check that it is a CSV file and that every quote in its first line is closed"}
	case f.fault != "":
		return Header{}, &rows.FormatError{File: s.Name, Line: line,
			Problem: "has a header line with broken quotes (" + f.fault + ")",
			Advice:  "Correct the quotes in its first line"}
	case bytes.IndexByte(text[:f.end], 0) >= 0:
		return Header{}, &rows.FormatError{File: s.Name, Line: line,
			Problem: "has a header line with zero bytes: it is no text file, or a damaged one", Advice: "Write it again as CSV (UTF-8)"}
	case firstInvalid(text[:f.end]) < f.end:
		return Header{}, &rows.FormatError{File: s.Name, Line: line,
			Problem: "has a header line that is not UTF-8 text", Advice: "Correct its first line"}
	}
	h := Header{Delimiter: delimiter, SkipLines: s.SkipLines, Columns: make([]string, len(scan.spans))}
	for i, span := range scan.spans {
		h.Columns[i] = columnName(span.value(text), i)
	}
	return h, nil
}

// skipLines returns where a line begins after n others, or the length of the text.
func skipLines(text []byte, n int) (at int) {
	for ; n > 0 && at < len(text); n-- {
		end := bytes.IndexByte(text[at:], '\n')
		if end < 0 {
			return len(text)
		}
		at += end + 1
	}
	return at
}

// columnName removes everything from a header cell but the name: white space,
// byte order marks and other invisible characters.
func columnName(cell []byte, i int) string {
	name := strings.TrimFunc(string(cell), func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r) || unicode.Is(unicode.Cf, r)
	})
	if name == "" {
		return fmt.Sprintf("column_%d", i+1)
	}
	return name
}
