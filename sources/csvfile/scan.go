package csvfile

import (
	"bytes"

	"github.com/leadetl/leadetl/internal/rows"
)

// scanner finds the fields of one record at a time. It is the slow path, for
// records with quotes and other special cases. Reader.plain is the fast path.
type scanner struct {
	delimiter byte
	spans     []span // the fields of the last record, reused
}

// span is one field: v[from:to], without its quotes.
type span struct {
	from, to int
	escaped  bool // contains doubled quotes
}

// value returns the field's value. It copies only if necessary.
func (s span) value(v []byte) []byte {
	if s.escaped {
		return appendUnescaped(nil, v[s.from:s.to])
	}
	return v[s.from:s.to]
}

// found is the result of scan for the record at the start of v.
type found struct {
	end   int    // v[:end] is the record without its line end
	next  int    // where the next record begins
	fault string // a reason for rejection, empty when well formed
	at    int    // where the fault was seen
	short bool   // v ends before the end of the record
	open  bool   // short, inside a quoted field
}

// scan reads one record at the start of v, which is not empty. final means that
// nothing follows v. Where RFC 4180 leaves rules open: a quote that does not
// begin its field is a normal character; carriage returns belong to the line end
// only if they directly precede it. There may be several: a program that makes
// LF into CRLF twice writes CR CR LF.
func (s *scanner) scan(v []byte, final bool) found {
	s.spans = s.spans[:0]
	newline := -1 // position of the first at or after p, if already searched
	for p := 0; ; {
		if p < len(v) && v[p] == '"' {
			end, escaped, closed := quoted(v, p+1)
			if !closed || end+1 == len(v) && !final {
				if !final {
					return found{short: true, open: true}
				}
				return found{fault: rows.UnclosedQuote, at: len(v)}
			}
			s.spans = append(s.spans, span{p + 1, end, escaped})
			p = end + 1
			switch {
			case p == len(v):
				return found{end: p, next: p}
			case v[p] == s.delimiter:
				p++
				continue
			}
			switch n := returns(v[p:]); {
			case p+n == len(v) && !final:
				return found{short: true}
			case p+n == len(v) || v[p+n] == '\n':
				return found{end: p, next: min(p+n+1, len(v))}
			}
			return found{fault: rows.StrayQuote, at: p}
		}
		if newline < p {
			switch i := bytes.IndexByte(v[p:], '\n'); {
			case i >= 0:
				newline = p + i
			case !final:
				return found{short: true}
			default:
				newline = len(v)
			}
		}
		if i := bytes.IndexByte(v[p:newline], s.delimiter); i >= 0 {
			s.spans = append(s.spans, span{p, p + i, false})
			p += i + 1
			continue
		}
		end := p + len(withoutReturns(v[p:newline]))
		s.spans = append(s.spans, span{p, end, false})
		return found{end: end, next: min(newline+1, len(v))}
	}
}

// quoted finds the quote that closes the field whose text begins at from.
func quoted(v []byte, from int) (end int, escaped, closed bool) {
	for q := from; ; q += 2 {
		i := bytes.IndexByte(v[q:], '"')
		if i < 0 {
			return 0, escaped, false
		}
		q += i
		if q+1 == len(v) || v[q+1] != '"' {
			return q, escaped, true
		}
		escaped = true
	}
}

// blank returns the length of an empty line at the start of v with its line
// end, or 0 without one.
func blank(v []byte, final bool) int {
	switch n := returns(v); {
	case n < len(v) && v[n] == '\n':
		return n + 1
	case n == len(v) && final:
		return n
	}
	return 0
}

// returns counts the carriage returns at the start of v.
func returns(v []byte) (n int) {
	for n < len(v) && v[n] == '\r' {
		n++
	}
	return n
}

// withoutReturns cuts the carriage returns off the end of a line.
func withoutReturns(line []byte) []byte {
	for len(line) > 0 && line[len(line)-1] == '\r' {
		line = line[:len(line)-1]
	}
	return line
}

// appendUnescaped appends a quoted field's text, with doubled quotes replaced
// by single ones.
func appendUnescaped(dst, text []byte) []byte {
	for {
		i := bytes.IndexByte(text, '"')
		if i < 0 {
			return append(dst, text...)
		}
		dst = append(dst, text[:i+1]...)
		text = text[i+2:]
	}
}
