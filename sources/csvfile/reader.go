// Package csvfile reads CSV files, including untidy ones.
//
// Records without quotes take the fast path, which only searches for line ends
// and delimiters. Quotes, NUL bytes and invalid UTF-8 are searched once per
// block, not per line. All other records take the slow path, one by one, with
// the same result.
package csvfile

import (
	"bytes"
	"context"
	"io"

	"github.com/leadetl/leadetl/internal/readahead"
	"github.com/leadetl/leadetl/internal/rows"
)

// RecordLimit is the largest record, in bytes. It bounds memory, and how far to
// search for the end of a quoted field.
const RecordLimit = 64 << 20

// Reader reads the records of one file. The result does not depend on how the
// bytes arrive.
//
// If the quoting of a record is broken, only its first line is rejected, and
// reading continues with the next line: what looks like a field over many lines
// is usually an unclosed quote.
type Reader struct {
	scanner
	name   string
	src    *readahead.Reader
	fields int
	// skipLines is how many lines precede the header.
	skipLines int
	want      []int // per field, its column, -1 for none
	last      int   // the last selected field, -1 for none
	limit     int

	buf      []byte
	pos, end int   // buf[pos:end] is not parsed yet
	base     int64 // file offset of buf[0]
	borrowed bool  // buf is a block of src
	eof      bool  // src has nothing after buf[:end]
	begun    bool  // the header has been read

	line, row int64 // physical line at pos, 1-based; records so far

	// The positions of the next quote, NUL byte and invalid character in buf,
	// or end without one. careful is the first of them: a line that ends
	// before it takes the fast path.
	quote, nul, bad, careful int
	// checked is the end of the last whole line in buf, up to which bad holds.
	checked int
	// Lines that end before this file offset are scanned one by one: a quoted
	// field over them turned out to be broken.
	alone int64
}

// NewReader reads the file with header h. pick selects the fields to store, by
// their index in h.Columns: field pick[n] goes to column n.
func NewReader(name string, src *readahead.Reader, h Header, pick []int) *Reader {
	r := &Reader{
		scanner: scanner{delimiter: h.Delimiter},
		name:    name,
		src:     src,
		fields:  len(h.Columns),

		skipLines: h.SkipLines,
		want:      make([]int, len(h.Columns)),
		last:      -1,
		limit:     RecordLimit,
		line:      1,
	}
	for i := range r.want {
		r.want[i] = -1
	}
	for column, field := range pick {
		r.want[field] = column
		r.last = max(r.last, field)
	}
	return r
}

// Fill adds up to maxRows rows to b, and the rejects between them. It returns
// io.EOF at the end of the file; b may hold rows then too. After another error
// the Reader must not be used.
func (r *Reader) Fill(ctx context.Context, b *rows.Builder, maxRows int) error {
	if !r.begun {
		if err := r.begin(ctx); err != nil {
			return err
		}
	}
	for b.Len() < maxRows && !b.Full() {
		r.plain(b, maxRows)
		if b.Len() == maxRows || b.Full() {
			break
		}
		if err := r.record(ctx, b); err != nil {
			return err
		}
	}
	return nil
}

// Offset returns the offset of the next record in the unpacked file.
func (r *Reader) Offset() int64 { return r.base + int64(r.pos) }

// Mark is a place between two records, with all that decides how the rest is
// read.
type Mark struct {
	Offset int64 `json:"offset"` // of the next record, in the unpacked file
	Line   int64 `json:"line"`   // physical line at Offset, from 1
	Row    int64 `json:"row"`    // records before it
	// Alone is the offset up to which lines are read one by one, because of a
	// quoted field that was broken; 0 if it is before Offset.
	Alone int64 `json:"alone,omitempty"`
}

// Mark returns the place of the next record. Another Reader of the file can
// start there. Call it after Fill.
func (r *Reader) Mark() Mark {
	m := Mark{Offset: r.Offset(), Line: r.line, Row: r.row, Alone: r.alone}
	if m.Alone <= m.Offset {
		m.Alone = 0
	}
	return m
}

// StartAt makes the Reader start at a mark, which must not be the start of the
// file. src must return the file from there on. Call it before Fill.
func (r *Reader) StartAt(m Mark) {
	r.base, r.line, r.row, r.alone, r.begun = m.Offset, m.Line, m.Row, m.Alone, true
}

// plain reads lines on the fast path until it meets a line that is not plain.
func (r *Reader) plain(b *rows.Builder, maxRows int) {
	for b.Len() < maxRows && !b.Full() {
		n := bytes.IndexByte(r.buf[r.pos:r.end], '\n')
		if n < 0 || r.pos+n >= r.careful || n >= r.limit {
			return
		}
		line := r.buf[r.pos : r.pos+n]
		r.pos += n + 1
		r.line++
		if line = withoutReturns(line); len(line) == 0 {
			continue
		}
		r.row++
		if !r.split(b, line) {
			b.Rollback()
			b.Reject(rows.Reject{Source: r.name, Line: r.line - 1, Row: r.row, Reason: rows.RaggedRow}, line)
			continue
		}
		b.Commit(r.row, r.line-1)
	}
}

// split adds the selected fields of a plain line and reports whether the line
// has the right number of fields.
func (r *Reader) split(b *rows.Builder, line []byte) bool {
	delimiter := r.delimiter
	field, want := 0, r.want
	for ; field < len(want)-1 && field <= r.last; field++ {
		i := bytes.IndexByte(line, delimiter)
		if i < 0 {
			return false
		}
		if column := want[field]; column >= 0 {
			b.Add(column, line[:i])
		}
		line = line[i+1:]
	}
	// Fields that are not selected are only counted.
	if more := bytes.Count(line, []byte{delimiter}); more != len(want)-1-field {
		return false
	}
	if field == r.last {
		b.Add(want[field], line)
	}
	return true
}

// record reads one record or empty line on the slow path, and reads more of the
// file if needed. At the end of the file it returns io.EOF.
func (r *Reader) record(ctx context.Context, b *rows.Builder) error {
	for {
		v, final := r.buf[r.pos:r.end], r.eof
		capped := len(v) >= r.limit
		if capped {
			v, final = v[:r.limit], false
		}
		if len(v) == 0 && final {
			return io.EOF
		}
		if n := blank(v, final); n > 0 {
			r.advance(n)
			return nil
		}
		f := found{short: true}
		if len(v) > 0 {
			f = r.scanAlone(v, final)
		}
		n := -1
		if f.fault != "" || f.short && capped {
			n = bytes.IndexByte(v, '\n')
		}
		switch {
		case f.short && !capped, f.fault != "" && n < 0 && !final && !capped:
			if err := r.more(ctx); err != nil {
				return err
			}
			continue
		case f.short && f.open && n >= 0:
			f.fault, f.at = rows.UnclosedQuote, len(v)
		case f.short, f.fault != "" && n < 0 && capped:
			return r.tooLarge(ctx, b, v)
		}
		if f.fault != "" {
			f.end, f.next = len(v), len(v)
			if n >= 0 {
				r.alone = max(r.alone, r.base+int64(r.pos+f.at))
				f.end, f.next = n, n+1
			}
			f.end = len(withoutReturns(v[:f.end]))
		}
		r.take(b, v, f)
		r.advance(f.next)
		return nil
	}
}

// scanAlone scans the record at the start of v, or only its first line if lines
// are scanned one by one.
func (r *Reader) scanAlone(v []byte, final bool) found {
	if at := r.base + int64(r.pos); at < r.alone {
		if n := bytes.IndexByte(v, '\n'); n >= 0 && at+int64(n) < r.alone {
			return r.scan(v[:n+1], true)
		}
	}
	return r.scan(v, final)
}

// take adds the record f of v as a row or a reject.
func (r *Reader) take(b *rows.Builder, v []byte, f found) {
	r.row++
	raw := v[:f.end]
	reason := f.fault
	switch {
	case r.nul < r.pos+f.end:
		reason = rows.NULByte
	case r.bad < r.pos+f.end:
		reason = rows.InvalidUTF8
	case reason == "" && len(r.spans) != r.fields:
		reason = rows.RaggedRow
	}
	if reason != "" {
		b.Reject(rows.Reject{Source: r.name, Line: r.line, Row: r.row, Reason: reason}, raw)
		return
	}
	for i, s := range r.spans[:r.last+1] {
		switch column := r.want[i]; {
		case column < 0:
		case s.escaped:
			b.SetSlot(column, appendUnescaped(b.Slot(column), v[s.from:s.to]))
		default:
			b.Add(column, v[s.from:s.to])
		}
	}
	b.Commit(r.row, r.line)
}

// tooLarge rejects the line at the start of v and reads to its end.
func (r *Reader) tooLarge(ctx context.Context, b *rows.Builder, v []byte) error {
	r.row++
	raw, _, _ := bytes.Cut(v, []byte{'\n'})
	b.Reject(rows.Reject{Source: r.name, Line: r.line, Row: r.row, Reason: rows.TooLarge}, raw)
	r.alone = max(r.alone, r.base+int64(r.pos+len(v)))
	for {
		if n := bytes.IndexByte(r.buf[r.pos:r.end], '\n'); n >= 0 {
			r.advance(n + 1)
			return nil
		}
		r.pos = r.end
		if r.eof {
			return nil
		}
		if err := r.more(ctx); err != nil {
			return err
		}
	}
}

// begin skips the byte order mark, the preamble and the header. If the line of
// a directive is incomplete, so is the header.
func (r *Reader) begin(ctx context.Context) error {
	for {
		v := r.buf[r.pos:r.end]
		mark := len(v) - len(bytes.TrimPrefix(v, byteOrderMark))
		mark += skipLines(v[mark:], r.skipLines)
		_, at := preamble(v[mark:], r.eof)
		at += mark
		if at < len(v) && (len(v) >= len(byteOrderMark) || r.eof) {
			if f := r.scan(v[at:], r.eof); !f.short {
				if f.fault != "" || len(r.spans) != r.fields {
					return errOtherHeader(r.name)
				}
				r.begun = true
				r.advance(at + f.next)
				return nil
			}
		}
		if r.eof || len(v) > r.limit {
			return errOtherHeader(r.name)
		}
		if err := r.more(ctx); err != nil {
			return err
		}
	}
}

// errOtherHeader is the error for a file whose header has changed since it was
// inspected.
func errOtherHeader(name string) error {
	return &rows.FormatError{File: name, Problem: "has a different header than when it was opened",
		Advice: "Run again when no other program writes to it", Err: rows.ErrChanged}
}

// blanks returns the length of the empty lines at the start of v.
func blanks(v []byte, final bool) int {
	at := 0
	for n := blank(v, final); n > 0; n = blank(v[at:], final) {
		at += n
	}
	return at
}

// advance moves forward by n bytes and counts their lines.
func (r *Reader) advance(n int) {
	r.line += int64(bytes.Count(r.buf[r.pos:r.pos+n], []byte{'\n'}))
	r.pos += n
	r.look()
}

// look finds the next quote, NUL byte and invalid character if their known
// positions are behind pos. It scans each byte of a block once.
func (r *Reader) look() {
	find := func(c byte) int {
		if i := bytes.IndexByte(r.buf[r.pos:r.end], c); i >= 0 {
			return r.pos + i
		}
		return r.end
	}
	if r.quote < r.pos {
		r.quote = find('"')
	}
	if r.nul < r.pos {
		r.nul = find(0)
	}
	if r.bad < r.pos {
		// A character that is cut at the end of the block is not invalid.
		// Complete lines have none.
		r.bad = r.end
		if r.pos < r.checked {
			if i := firstInvalid(r.buf[r.pos:r.checked]); r.pos+i < r.checked {
				r.bad = r.pos + i
			}
		}
	}
	r.careful = min(r.quote, r.nul, r.bad)
}

// more reads until the window has doubled or the file ends, so that a record of
// many megabytes is not scanned once per block.
func (r *Reader) more(ctx context.Context) error {
	for want := max(2*(r.end-r.pos), 1); r.end-r.pos < want && !r.eof; {
		buf, err := r.src.Next(ctx)
		switch {
		case err == io.EOF:
			r.eof = true
		case err != nil:
			return err
		default:
			r.join(buf)
		}
	}
	r.checked = r.end
	if !r.eof {
		r.checked = r.pos + bytes.LastIndexByte(r.buf[r.pos:r.end], '\n') + 1
	}
	r.quote, r.nul, r.bad = -1, -1, -1
	r.look()
	return nil
}

// join appends a block to the rest of the last one: in the block's own headroom
// if the rest fits there, otherwise in a buffer that grows.
func (r *Reader) join(block []byte) {
	left, head := r.buf[r.pos:r.end], r.src.Head()
	at := r.base + int64(r.pos)
	if len(left) <= head {
		r.pos = head - copy(block[head-len(left):], left)
		if r.borrowed {
			r.src.Recycle(r.buf)
		}
		r.buf, r.end, r.borrowed = block, len(block), true
		r.base = at - int64(r.pos)
		return
	}
	if r.borrowed {
		own := append(make([]byte, 0, 2*(len(left)+len(block))), left...)
		r.src.Recycle(r.buf)
		r.buf, r.borrowed = own, false
	} else {
		r.buf = r.buf[:copy(r.buf, left)]
	}
	r.buf = append(r.buf, block[head:]...)
	r.src.Recycle(block)
	r.pos, r.end = 0, len(r.buf)
	r.base = at
}
