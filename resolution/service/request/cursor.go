package request

import "strings"

// cursor walks over JSON that is known to be valid and compact. Whoever stands
// before a value moves past it.
type cursor struct {
	text string
	at   int
}

// composite reports whether the next value is an object or an array.
func (c *cursor) composite() bool { return c.text[c.at] == '{' || c.text[c.at] == '[' }

// scalar moves past the next value, which is no composite, or past a name, and
// returns it as it is written: a string with its quotes.
func (c *cursor) scalar() string {
	from := c.at
	if c.text[c.at] == '"' {
		c.at++
		for {
			c.at += strings.IndexByte(c.text[c.at:], '"') + 1
			if !isEscaped(c.text[from+1 : c.at-1]) {
				return c.text[from:c.at]
			}
		}
	}
	for c.at < len(c.text) && c.text[c.at] != ',' && c.text[c.at] != '}' && c.text[c.at] != ']' {
		c.at++
	}
	return c.text[from:c.at]
}

// isEscaped reports whether what follows before is escaped: an odd number of
// backslashes ends it.
func isEscaped(before string) bool {
	n := len(before)
	for n > 0 && before[n-1] == '\\' {
		n--
	}
	return (len(before)-n)%2 == 1
}

// each moves past the next value, a composite, and calls visit before every
// value in it. name is written as a string with its quotes, empty in arrays.
// visit moves past the value.
func (c *cursor) each(visit func(name string)) {
	object := c.text[c.at] == '{'
	c.at++
	for c.text[c.at] != '}' && c.text[c.at] != ']' {
		if c.text[c.at] == ',' {
			c.at++
		}
		var name string
		if object {
			name = c.scalar()
			c.at++ // the colon
		}
		visit(name)
	}
	c.at++
}

// skip moves past the next value and returns it as it is written.
func (c *cursor) skip() string {
	if !c.composite() {
		return c.scalar()
	}
	from := c.at
	for depth := 0; ; {
		switch c.text[c.at] {
		case '"':
			c.scalar()
			continue
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		c.at++
		if depth == 0 {
			return c.text[from:c.at]
		}
	}
}
