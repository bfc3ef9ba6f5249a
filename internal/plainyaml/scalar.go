package plainyaml

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// value reads a text, or a list or map in brackets.
func (p *parser) value(depth int) *Node {
	switch p.peek(0) {
	case '{', '[':
		return p.brackets(depth)
	}
	return p.scalar(false)
}

// brackets reads a list or map in brackets, which may take several lines.
func (p *parser) brackets(depth int) *Node {
	p.checkDepth(depth)
	n, end := p.node(List), byte(']')
	if p.peek(0) == '{' {
		n.Kind, end = Map, '}'
	}
	p.at++
	for {
		if p.skipSpace(); p.peek(0) == end {
			p.at++
			return n
		}
		if n.Kind == Map {
			n.Items = append(n.Items, p.shortMember(n, depth))
		} else {
			n.Items = append(n.Items, p.short(depth))
		}
		p.skipSpace()
		switch c := p.peek(0); {
		case c == ',':
			p.at++
		case c == ':' && n.Kind == List:
			p.fail("a key in a list; write it in { }")
		case c != end:
			p.fail("a %c or a comma is missing", end)
		}
	}
}

// short reads a value in brackets.
func (p *parser) short(depth int) *Node {
	if c := p.peek(0); c == '{' || c == '[' {
		return p.brackets(depth + 1)
	}
	return p.scalar(true)
}

// shortMember reads a member of a map in brackets. Without a colon it has no value.
func (p *parser) shortMember(m *Node, depth int) *Node {
	if c := p.peek(0); c == '{' || c == '[' {
		p.fail("a key is text")
	}
	key := p.scalar(true)
	p.checkKey(m, key)
	p.skipSpace()
	value := &Node{Line: key.Line}
	if p.peek(0) == ':' && (key.Quoted || isGap(p.peek(1))) {
		p.at++
		if p.skipSpace(); p.peek(0) != ',' && p.peek(0) != '}' {
			value = p.short(depth)
		}
	}
	value.Name = key.Text
	return value
}

// skipSpace skips spaces, ends of lines and comments.
func (p *parser) skipSpace() {
	for !p.done() {
		switch c := p.peek(0); {
		case c == ' ':
			p.at++
		case c == '\t':
			p.fail("a tab; write spaces")
		case isEnd(c), c == '#' && isGap(p.text[p.at-1]):
			p.skipLine()
		default:
			return
		}
	}
	p.fail("a bracket is not closed")
}

// scalar reads a text in one line; short is for one in brackets.
func (p *parser) scalar(short bool) *Node {
	n := p.node(Text)
	p.end = p.at + maxText
	switch c := p.peek(0); c {
	case '"':
		n.Quoted, n.Text = true, p.doubleQuoted()
	case '\'':
		n.Quoted, n.Text = true, p.singleQuoted()
	default:
		n.Text = p.plain(short)
	}
	return n
}

func (p *parser) checkLength() {
	if p.at > p.end {
		p.fail("a text with more than %d bytes", maxText)
	}
}

// refused says what a text without quotes cannot begin with.
var refused = map[byte]string{
	'&': "an anchor; write the value out, or text in quotes", '*': "an alias; write the value out, or text that begins with * in quotes",
	'!': "a tag; write text that begins with ! in quotes", '|': "text of several lines; write it in one line, in quotes",
	'>': "text of several lines; write it in one line, in quotes", '%': "a directive; write text that begins with % in quotes",
	'@': "text that begins with @ is written in quotes", '`': "text that begins with ` is written in quotes",
	',': "a comma without a value before it", '[': "a list where text is expected", '{': "a map where text is expected",
	']': "a ] that closes nothing", '}': "a } that closes nothing", '#': "text that begins with # is written in quotes",
}

// plain reads a text without quotes: to the end of the line, a comment, the colon of a key, and in
// brackets a comma or a bracket.
func (p *parser) plain(short bool) string {
	c, after := p.peek(0), p.peek(1)
	if what := refused[c]; what != "" {
		p.fail("%s", what)
	}
	isMark := c == '-' || c == '?' || c == ':'
	if isMark && (isGap(after) || short && isBracketOrComma(after)) {
		p.fail("%c where text is expected; write it in quotes", c)
	}
	from := p.at
	for ; ; p.at++ {
		p.checkLength()
		c, after := p.peek(0), p.peek(1)
		switch {
		case c == ':' && short && isBracketOrComma(after):
			p.fail("a space is missing behind the colon")
		case c == '\t':
			p.fail("a tab; write spaces, or \\t in double quotes")
		case isEnd(c), short && isBracketOrComma(c),
			c == ':' && isGap(after), c == ' ' && after == '#':
			return strings.TrimRight(p.text[from:p.at], " ")
		}
	}
}

func (p *parser) singleQuoted() string {
	var all strings.Builder
	for p.at++; ; p.at++ {
		p.checkLength()
		switch c := p.peek(0); {
		case isEnd(c):
			p.fail("a ' is missing; text is written in one line")
		case c == '\'' && p.peek(1) == '\'':
			p.at++
			all.WriteByte(c)
		case c == '\'':
			p.at++
			return all.String()
		default:
			all.WriteByte(c)
		}
	}
}

func (p *parser) doubleQuoted() string {
	var all strings.Builder
	for p.at++; ; p.at++ {
		from := p.at
		for c := p.peek(0); c != '"' && c != '\\' && !isEnd(c); c = p.peek(0) {
			p.at++
		}
		p.checkLength()
		text := p.text[from:p.at]
		switch p.peek(0) {
		case '"':
			p.at++
			return all.String() + text
		case '\\':
			all.WriteString(text)
			p.at++
			p.escaped(&all)
		default:
			p.fail(`a " is missing; text is written in one line`)
		}
	}
}

// escapes are the characters behind a \ in double quotes.
var escapes = map[byte]string{'"': `"`, '\\': `\`, '/': "/", 'n': "\n", 't': "\t", 'r': "\r", '0': "\x00"}

// digitsOf are the hex digits behind \x, \u and \U.
var digitsOf = map[byte]int{'x': 2, 'u': 4, 'U': 8}

// escaped adds what stands behind a \.
func (p *parser) escaped(to *strings.Builder) {
	c := p.peek(0)
	digits := digitsOf[c]
	switch plain, known := escapes[c]; {
	case known:
		to.WriteString(plain)
	case digits > 0 && p.at+digits < len(p.text):
		code, err := strconv.ParseUint(p.text[p.at+1:p.at+1+digits], 16, 31)
		if err != nil || !utf8.ValidRune(rune(code)) {
			p.fail(`\%c without the digits of a character`, c)
		}
		to.WriteRune(rune(code))
		p.at += digits
	default:
		p.fail(`a \ in double quotes that means nothing; write \\, or the text in single quotes`)
	}
}
