// Package plainyaml reads the part of YAML that people write settings in: maps, lists, text in one
// line, comments, and the short forms with brackets. Text is taken as it is written, and never
// becomes a number, a date or a boolean. Whatever else YAML has is an error that says so: tags,
// anchors, aliases, merge keys, keys given twice, text of several lines and several documents.
//
// The one thing to know before using it: a file has bounds that are checked while it is read, so
// that a hostile one costs less than a millisecond and a megabyte.
package plainyaml

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// The bounds of a file.
const (
	MaxBytes   = 64 << 10
	MaxDepth   = 16   // of lists and maps in each other
	maxNodes   = 4096 // maps, lists and texts
	maxMembers = 128  // of one map
	maxText    = 4096 // bytes of a text
)

// Kind is what a Node is.
type Kind uint8

// The kinds.
const (
	Null Kind = iota // no value
	Text
	List
	Map
)

// Node is a value of a file.
type Node struct {
	Line   int32 // from 1
	Kind   Kind
	Quoted bool    // of a Text
	Name   string  // of a member of a map
	Text   string  // as it is written, without quotes and escapes
	Items  []*Node // of a List; of a Map its members in their order
}

// Error is what a file has that cannot be read.
type Error struct {
	Line int
	What string
}

func (e *Error) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.What) }

// Parse reads a file, which is a map. The error is an *Error, about the first problem.
func Parse(text []byte) (root *Node, err error) {
	if len(text) > MaxBytes {
		return nil, &Error{1, fmt.Sprintf("the file has more than %d KiB", MaxBytes>>10)}
	}
	p := &parser{text: strings.TrimPrefix(string(text), "\ufeff"), line: 1}
	defer func() {
		if failed, is := recover().(*Error); is {
			root, err = nil, failed
		}
	}()
	p.checkCharacters()
	p.next()
	if p.isMarker("---") {
		p.at += 3
		p.endLine()
		p.next()
	}
	if p.done() {
		return nil, &Error{1, "the file is empty"}
	}
	root = p.block(-1, 1)
	switch {
	case !p.done():
		p.fail("this line is indented less than those before it, and fits none above them")
	case root.Kind != Map:
		return nil, &Error{int(root.Line), "the file has to consist of `name: value` lines"}
	}
	return root, nil
}

// parser is at a place in a text. It panics with an *Error, which Parse returns.
type parser struct {
	text   string
	at     int
	line   int
	indent int // of the line that next went to
	nodes  int
	end    int // where a text is too long
}

func (p *parser) fail(format string, args ...any) {
	panic(&Error{p.line, fmt.Sprintf(format, args...)})
}

// checkCharacters refuses what no text has.
func (p *parser) checkCharacters() {
	line := 1
	for i, r := range p.text {
		switch {
		case r == '\n':
			line++
		case r == '\r' && strings.HasPrefix(p.text[i:], "\r\n"), r == '\t':
		case r == utf8.RuneError && !strings.HasPrefix(p.text[i:], "\ufffd"):
			panic(&Error{line, "the file is not UTF-8"})
		case r < ' ', r >= 0x7f && r < 0xa0, r == '\ufeff', r == '\u2028', r == '\u2029':
			panic(&Error{line, fmt.Sprintf("the character %U has no place here", r)})
		}
	}
}

func (p *parser) done() bool { return p.at >= len(p.text) }

// peek is the character after the next n, 0 at the end.
func (p *parser) peek(n int) byte {
	if p.at+n < len(p.text) {
		return p.text[p.at+n]
	}
	return 0
}

// isEnd reports whether a character ends a line, or the file.
func isEnd(c byte) bool { return c == 0 || c == '\n' || c == '\r' }

// isGap reports whether a character ends a word.
func isGap(c byte) bool { return c == ' ' || isEnd(c) }

func isBracketOrComma(c byte) bool { return strings.IndexByte(",[]{}", c) >= 0 && c != 0 }

// next goes to the first character of the next line that is neither empty nor a comment.
func (p *parser) next() {
	for !p.done() {
		p.indent = 0
		for p.peek(0) == ' ' {
			p.at, p.indent = p.at+1, p.indent+1
		}
		switch c := p.peek(0); {
		case c == '\t':
			p.fail("a tab; indent with spaces")
		case c == '#' || isEnd(c):
			p.skipLine()
		default:
			return
		}
	}
	p.indent = -1
}

// skipLine goes to the beginning of the next line.
func (p *parser) skipLine() {
	if end := strings.IndexByte(p.text[p.at:], '\n'); end >= 0 {
		p.at, p.line = p.at+end+1, p.line+1
	} else {
		p.at = len(p.text)
	}
}

// endLine skips the rest of a line, which is empty or a comment.
func (p *parser) endLine() {
	if !p.isRestEmpty() {
		p.fail("there is more on this line than one value; write text with such characters in quotes")
	}
	p.skipLine()
}

// isRestEmpty skips spaces, and reports whether nothing or a comment follows.
func (p *parser) isRestEmpty() bool {
	from := p.at
	for p.peek(0) == ' ' {
		p.at++
	}
	c := p.peek(0)
	if c == '\t' {
		p.fail("a tab; write spaces")
	}
	return isEnd(c) || c == '#' && (p.at > from || p.at == 0 || isGap(p.text[p.at-1]))
}

// isMarker reports whether the line begins with the mark of a document.
func (p *parser) isMarker(mark string) bool {
	return p.indent == 0 && strings.HasPrefix(p.text[p.at:], mark) && isGap(p.peek(len(mark)))
}

func (p *parser) node(kind Kind) *Node {
	if p.nodes++; p.nodes > maxNodes {
		p.fail("the file has more than %d values", maxNodes)
	}
	return &Node{Line: int32(p.line), Kind: kind}
}

// block reads the value at the beginning of a line that is indented by more than above.
func (p *parser) block(above, depth int) *Node {
	p.checkDepth(depth)
	if p.isDash() {
		return p.list(p.indent, depth)
	}
	line, start := p.line, p.at
	value := p.value(depth)
	if p.line == line && p.isColon() {
		p.at, p.nodes = start, p.nodes-1
		return p.members(p.indent, depth)
	}
	p.endLine()
	p.next()
	if p.indent > above {
		p.fail("text is written in one line")
	}
	return value
}

func (p *parser) checkDepth(depth int) {
	if depth > MaxDepth {
		p.fail("lists and maps are nested more than %d deep", MaxDepth)
	}
}

// isDash reports whether an item of a list begins.
func (p *parser) isDash() bool { return p.peek(0) == '-' && isGap(p.peek(1)) }

// isColon skips spaces, and reports whether the colon of a key follows.
func (p *parser) isColon() bool {
	for p.peek(0) == ' ' {
		p.at++
	}
	return p.peek(0) == ':' && isGap(p.peek(1))
}

// list reads the items of lines indented by n.
func (p *parser) list(n, depth int) *Node {
	l := p.node(List)
	for p.indent == n && p.isDash() {
		p.at++
		if p.isRestEmpty() {
			l.Items = append(l.Items, p.below(n, depth))
			continue
		}
		p.indent = p.at - strings.LastIndexByte(p.text[:p.at], '\n') - 1 // of what follows the dash
		l.Items = append(l.Items, p.block(n, depth+1))
	}
	return p.ended(l, n)
}

// ended returns what was read of lines indented by n.
func (p *parser) ended(value *Node, n int) *Node {
	if p.indent > n {
		p.fail("this line is indented more than the one that it belongs to; text is written in one line")
	}
	return value
}

// below reads the value in the lines below one that is indented by n, which are indented by more.
func (p *parser) below(n, depth int) *Node {
	empty := p.node(Null)
	p.endLine()
	p.next()
	if p.indent <= n {
		return empty
	}
	value := p.block(n, depth+1)
	value.Line = empty.Line
	return value
}

// members reads the keys of lines indented by n, and their values.
func (p *parser) members(n, depth int) *Node {
	m := p.node(Map)
	for p.indent == n && !p.isMarker("---") && !p.isMarker("...") {
		if p.isDash() {
			p.fail("an item of a list among keys")
		}
		key := p.scalar(false)
		p.checkKey(m, key)
		if !p.isColon() {
			p.fail("this line is not of the form `name: value`")
		}
		p.at++
		value := p.member(n, depth)
		value.Name = key.Text
		m.Items = append(m.Items, value)
	}
	if p.isMarker("---") || p.isMarker("...") {
		p.fail("the file has several documents; write one")
	}
	return p.ended(m, n)
}

// member reads the value behind the colon of a key that is indented by n.
func (p *parser) member(n, depth int) *Node {
	line := p.line
	if !p.isRestEmpty() {
		value := p.value(depth + 1)
		if p.line == line && p.isColon() {
			p.fail("two keys on one line; write text that has `: ` in quotes")
		}
		p.endLine()
		p.next()
		return value
	}
	value := p.below(n, depth)
	if value.Kind == Null && p.indent == n && p.isDash() { // a list may stand right below its key
		p.checkDepth(depth + 1)
		return p.list(n, depth+1)
	}
	return value
}

// checkKey refuses a key that a map cannot have.
func (p *parser) checkKey(m, key *Node) {
	switch {
	case key.Text == "<<" && !key.Quoted:
		p.fail("a merge key; write its members out")
	case len(m.Items) == maxMembers:
		p.fail("a map with more than %d keys", maxMembers)
	}
	for _, other := range m.Items {
		if other.Name == key.Text {
			p.fail("%.60s is given twice", key.Text)
		}
	}
}
