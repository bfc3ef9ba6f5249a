package request

import "strings"

// compact is body without the white space between its tokens. deep is where the
// first level too many begins, -1 when none does. Of bodies that are no JSON it
// makes something and does not fail.
func compact(body []byte) (text string, deep int) {
	var b strings.Builder
	b.Grow(len(body))
	depth := 0
	for i := 0; i < len(body); i++ {
		switch c := body[i]; c {
		case ' ', '\t', '\r', '\n':
			continue
		case '"':
			end := i + 1
			for end < len(body) && body[end] != '"' {
				if body[end] == '\\' {
					end++
				}
				end++
			}
			end = min(end, len(body)-1)
			b.Write(body[i : end+1])
			i = end
			continue
		case '{', '[':
			if depth++; depth > maxDepth {
				return "", i
			}
		case '}', ']':
			depth--
		}
		b.WriteByte(body[i])
	}
	return b.String(), -1
}

// original is where in body the byte is that stands at offset at of its compact
// form. It does the work again, for errors only.
func original(body []byte, at int) int {
	quoted := false
	for i := 0; i < len(body); i++ {
		switch c := body[i]; {
		case quoted && c == '\\':
			if at < 2 {
				return i + at
			}
			at -= 2
			i++
			continue
		case c == '"':
			quoted = !quoted
		case !quoted && (c == ' ' || c == '\t' || c == '\r' || c == '\n'):
			continue
		}
		if at == 0 {
			return i
		}
		at--
	}
	return len(body)
}
