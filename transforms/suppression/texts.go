package suppression

import (
	"bytes"
	"encoding/json"
	"io"
	"iter"
	"slices"
	"strings"
	"unicode"
)

// NamesInBody reports whether any text in a body in JSON names a listed person.
func (f *Finder) NamesInBody(body []byte) (named bool) {
	for text := range Texts(body) {
		named = f.Names(text) || named
	}
	return named
}

// NamesInLine reports whether a line that is no row names a listed person.
func (f *Finder) NamesInLine(line string) (named bool) {
	for cell := range strings.FieldsFuncSeq(line, func(c rune) bool { return strings.ContainsRune(",;\t|\"\r\n", c) }) {
		named = f.Names(cell) || named
	}
	return named
}

// NamesInCell reports whether a cell of a list names a listed person.
func (f *Finder) NamesInCell(cell string) (named bool) {
	for _, value := range cellValues(cell) {
		named = f.Names(value) || named
	}
	return named
}

// Texts yields each string in a JSON body. Of a body that is not JSON, or is cut off, each word is one.
func Texts(body []byte) iter.Seq[string] {
	return func(yield func(string) bool) {
		tokens := json.NewDecoder(bytes.NewReader(body))
		for {
			token, err := tokens.Token()
			switch {
			case err == io.EOF:
				return
			case err != nil:
				words := strings.FieldsFuncSeq(string(body), func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune("\"'<>()[]{},;=\\", r) })
				words(yield)
				return
			}
			if text, ok := token.(string); ok && !yield(text) {
				return
			}
		}
	}
}

// Lines knows which lines of lists have an entry.
type Lines struct{ of [algorithms][]lineOf }

type lineOf struct {
	digest uint64
	line   uint32
}

func byDigest(a, b lineOf) int {
	switch {
	case a.digest < b.digest:
		return -1
	case a.digest > b.digest:
		return 1
	}
	return int(a.line) - int(b.line)
}

// AddLine is Add of a cell of a line, by a number of the caller's, which Lines returns.
func (b *Builder) AddLine(line uint32, cell string) error {
	if b.lines == nil {
		b.lines = &Lines{}
	}
	b.line = line
	return b.Add(cell)
}

// Lines returns the lines of all that AddLine has added.
func (b *Builder) Lines() *Lines {
	lines := b.lines
	if b.lines = nil; lines == nil {
		lines = &Lines{}
	}
	for i := range lines.of {
		slices.SortFunc(lines.of[i], byDigest)
		lines.of[i] = slices.Compact(lines.of[i])
	}
	return lines
}

// Of returns the lines with any of the entries that were found, in order.
func (l *Lines) Of(found Found) (lines []uint32) {
	for e := range found {
		all := l.of[e.algorithm]
		at, _ := slices.BinarySearchFunc(all, lineOf{digest: e.digest}, byDigest)
		for ; at < len(all) && all[at].digest == e.digest; at++ {
			lines = append(lines, all[at].line)
		}
	}
	slices.Sort(lines)
	return slices.Compact(lines)
}
