package csvfile

import "bytes"

// directive reads the line sep=; that spreadsheets write. It names the
// delimiter and is not a header. Case and quotes around the line do not matter.
// n is the line's length with its line end, or 0 if there is no such line.
func directive(text []byte, final bool) (delimiter byte, n int) {
	line, _, ended := bytes.Cut(text, []byte{'\n'})
	if n = len(line); ended {
		n++
	} else if !final {
		return 0, 0
	}
	line = withoutReturns(line)
	if len(line) > 1 && line[0] == '"' && line[len(line)-1] == '"' {
		line = line[1 : len(line)-1]
	}
	const key = "sep="
	if len(line) != len(key)+1 || !bytes.EqualFold(line[:len(key)], []byte(key)) || !separates(line[len(key)]) {
		return 0, 0
	}
	return line[len(key)], n
}

// separates reports whether c can be a delimiter: ASCII, and not a character
// that occurs in names and values.
func separates(c byte) bool {
	switch {
	case c == 0, c >= 0x7f, c == '"', c == '\r', c == '\n', c == ' ':
		return false
	case c >= '0' && c <= '9', c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z':
		return false
	}
	return true
}

// preamble returns the length of what precedes the header (empty lines and a
// directive), and the directive's delimiter, 0 without one.
func preamble(text []byte, final bool) (delimiter byte, n int) {
	n = blanks(text, final)
	delimiter, length := directive(text[n:], final)
	if length > 0 {
		n += length
		n += blanks(text[n:], final)
	}
	return delimiter, n
}
