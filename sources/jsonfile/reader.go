// Package jsonfile reads JSON Lines: an object a line, whose members are the values of a row.
package jsonfile

import (
	"bytes"
	"context"
	"errors"
	"io"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/leadetl/leadetl/internal/readahead"
	"github.com/leadetl/leadetl/internal/rows"
)

// LineLimit is the largest line, in bytes. It bounds memory.
const LineLimit = 64 << 20

// Reader reads the lines of one file. The result does not depend on how the bytes arrive.
type Reader struct {
	name   string
	src    *readahead.Reader
	column map[string]int // of a key; -1 if it is not stored
	folded map[string]int // of a key in another case, unless two keys differ in nothing else
	stored int
	whole  bool // all keys of the header are stored, so that others would be lost

	buf       []byte
	pos       int   // buf[pos:] is not parsed yet
	searched  int   // buf[pos:searched] has no line end
	dropped   int64 // bytes of the line at pos, behind buf
	eof       bool
	offset    int64 // of buf[pos] in the file
	line, row int64 // line at pos, from 1; records so far

	parser parser
}

// NewReader reads a file with header h. pick selects the keys to store, by their index in h.Keys:
// pick[n] goes to column n.
func NewReader(name string, src *readahead.Reader, h Header, pick []int) *Reader {
	r := &Reader{name: name, src: src, column: make(map[string]int, len(h.Keys)), stored: len(pick), whole: len(pick) == len(h.Keys), line: 1}
	for _, key := range h.Keys {
		r.column[key] = -1
	}
	for column, field := range pick {
		r.column[h.Keys[field]] = column
	}
	r.folded = make(map[string]int, len(h.Keys))
	for _, key := range h.Keys {
		folded := fold(key)
		if _, another := r.folded[folded]; another {
			r.folded[folded] = ambiguous
		} else {
			r.folded[folded] = r.column[key]
		}
	}
	return r
}

// ambiguous is the column of a key that differs from two others in case alone.
const ambiguous = -2

// columnOf returns the column of a key, -1 if it is not stored. known is false if no column is
// named by it.
func (r *Reader) columnOf(key string) (column int, known bool) {
	if column, known = r.column[key]; known {
		return column, true
	}
	column, known = r.folded[fold(key)]
	return column, known && column != ambiguous
}

// Fill adds up to maxRows rows to b, and the rejects between them. It returns io.EOF at the end
// of the file; b may hold rows then too. After another error the Reader must not be used.
func (r *Reader) Fill(ctx context.Context, b *rows.Builder, maxRows int) error {
	for b.Len() < maxRows && !b.Full() {
		line, next, err := r.next(ctx)
		if err != nil {
			return err
		}
		size := int64(next) + r.dropped
		tooLarge := size > LineLimit
		if r.offset == 0 {
			line = bytes.TrimPrefix(line, byteOrderMark)
		}
		if len(bytes.TrimSpace(line)) > 0 || tooLarge {
			r.row++
			if err := r.take(b, line, tooLarge); err != nil {
				return err
			}
		}
		r.pos, r.line, r.offset, r.dropped = r.pos+next, r.line+1, r.offset+size, 0
	}
	return nil
}

// take adds a line as a row or a reject.
func (r *Reader) take(b *rows.Builder, line []byte, tooLarge bool) error {
	reason := rows.TooLarge
	if !tooLarge {
		var err error
		if reason, err = r.parse(b, line); err != nil {
			return err
		}
	}
	if reason != "" {
		b.Rollback()
		b.Reject(rows.Reject{Source: r.name, Line: r.line, Row: r.row, Reason: reason}, line)
		return nil
	}
	b.Commit(r.row, r.line)
	return nil
}

// parse adds the members of a line. reason says why it is malformed.
func (r *Reader) parse(b *rows.Builder, line []byte) (reason string, err error) {
	missing := r.stored
	var seen [64]bool // nearly all files
	stored := seen[:]
	if r.stored > len(seen) {
		stored = make([]bool, r.stored)
	}
	reason = r.parser.each(line, func(key string, value jsontext.Value) string {
		column, known := r.columnOf(key)
		switch {
		case known && column >= 0 && stored[column]:
			return rows.BadJSON // two spellings of one key
		case !known && r.whole:
			err = &rows.FormatError{File: r.name, Line: r.line, Problem: "has a key that none of its first lines has, so it is no column and would be lost",
				Advice: "Name the columns that you want with --select, or have a line with all keys first"}
			return ""
		case !known || column < 0:
			return ""
		}
		missing--
		stored[column] = true
		if value.Kind() == 'n' {
			b.AddNull(column)
			return ""
		}
		text, reason := appendText(b.Slot(column), value)
		b.SetSlot(column, text)
		return reason
	})
	for column := 0; missing > 0 && column < r.stored; column++ {
		if !stored[column] {
			b.AddNull(column)
		}
	}
	return reason, err
}

// appendText appends a value: a text as it is, anything else as compact JSON.
func appendText(to []byte, value jsontext.Value) (text []byte, reason string) {
	from := len(to)
	switch value.Kind() {
	case '"':
		text, err := jsontext.AppendUnquote(to, value)
		switch {
		case err != nil:
			return to, rows.BadJSON
		case bytes.IndexByte(text[from:], 0) >= 0:
			return text, rows.NULByte
		}
		return text, ""
	case '{', '[':
		value = value.Clone()
		if err := value.Compact(); err != nil {
			return to, rows.BadJSON
		}
	}
	return append(to, value...), ""
}

// parser reads the members of objects.
type parser struct {
	text    bytes.Buffer
	decoder *jsontext.Decoder
	key     []byte
}

// each calls do with the members of an object, until it returns a reason. It returns that, or why
// the line is no object.
func (p *parser) each(line []byte, do func(key string, value jsontext.Value) string) (reason string) {
	if !utf8.Valid(line) {
		return rows.InvalidUTF8
	}
	p.text.Reset()
	p.text.Write(line)
	if p.decoder == nil {
		p.decoder = jsontext.NewDecoder(&p.text)
	} else {
		p.decoder.Reset(&p.text)
	}
	if p.decoder.PeekKind() != '{' {
		return rows.BadJSON
	}
	if _, err := p.decoder.ReadToken(); err != nil {
		return rows.BadJSON
	}
	for p.decoder.PeekKind() == '"' {
		name, err := p.decoder.ReadValue()
		if err == nil {
			p.key, err = jsontext.AppendUnquote(p.key[:0], name)
		}
		var value jsontext.Value
		if err == nil {
			value, err = p.decoder.ReadValue()
		}
		if err != nil {
			return rows.BadJSON
		}
		if reason := do(string(p.key), value); reason != "" {
			return reason
		}
	}
	if end, err := p.decoder.ReadToken(); err != nil || end.Kind() != '}' {
		return rows.BadJSON
	}
	if _, err := p.decoder.ReadToken(); !errors.Is(err, io.EOF) {
		return rows.BadJSON
	}
	return ""
}

// next returns the line at pos without its line end, and how many bytes it takes in buf. Of a line
// beyond the limit it returns the start, and drops what follows that before it reads more.
func (r *Reader) next(ctx context.Context) (line []byte, next int, err error) {
	r.searched = max(r.searched, r.pos)
	for {
		if i := bytes.IndexByte(r.buf[r.searched:], '\n'); i >= 0 {
			line = r.buf[r.pos : r.searched+i]
			return line[:min(len(line), LineLimit)], len(line) + 1, nil
		}
		r.searched = len(r.buf)
		if r.eof {
			if line = r.buf[r.pos:]; len(line) == 0 {
				return nil, 0, io.EOF
			}
			return line[:min(len(line), LineLimit)], len(line), nil
		}
		if beyond := r.searched - r.pos - LineLimit; beyond > 0 {
			r.buf, r.searched, r.dropped = r.buf[:r.pos+LineLimit], r.pos+LineLimit, r.dropped+int64(beyond)
		}
		if err := r.more(ctx); err != nil {
			return nil, 0, err
		}
	}
}

// more reads a block behind what is not parsed yet.
func (r *Reader) more(ctx context.Context) error {
	block, err := r.src.Next(ctx)
	if err == io.EOF {
		r.eof = true
		return nil
	}
	if err != nil {
		return err
	}
	r.buf = append(r.buf[:copy(r.buf, r.buf[r.pos:])], block[r.src.Head():]...)
	r.searched, r.pos = r.searched-r.pos, 0
	r.src.Recycle(block)
	return nil
}

// Offset returns the offset of the next line in the unpacked file.
func (r *Reader) Offset() int64 { return r.offset }

// Mark returns the place of the next line: its offset, its number and the records before it.
func (r *Reader) Mark() (offset, line, row int64) { return r.offset, r.line, r.row }

// StartAt makes the Reader start at a mark. src must return the file from there on. Call it before
// Fill.
func (r *Reader) StartAt(offset, line, row int64) { r.offset, r.line, r.row = offset, line, row }
