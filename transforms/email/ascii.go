package email

import "bytes"

// The classes of bytes. Those of two neighbours are added: a sum of 4 or more in the
// low bits is a pair that is not allowed, which is a dot beside a dot, an edge or, in
// a domain, a hyphen.
const (
	letter  uint8 = 0
	hyphen  uint8 = 1
	edge    uint8 = 3 // before and after a part
	dot     uint8 = edge | 1<<3
	capital uint8 = 1 << 4
	foreign uint8 = 1 << 6 // not allowed

	// Bits of a sum. Two capitals or two foreign bytes carry into the next bit,
	// which is free for that. Two dots do too, but they are a bad pair.
	hasBadPair = 1 << 2
	hasDot     = 1 << 3
	hasCapital = capital | capital<<1
	hasForeign = foreign | foreign<<1
)

// localClass is for dot-atoms (source: RFC 5322 3.2.3), domainClass for labels
// and the dots between them.
var localClass, domainClass = func() (local, domain [256]uint8) {
	for c := range local {
		local[c], domain[c] = foreign, foreign
	}
	for _, c := range []byte("abcdefghijklmnopqrstuvwxyz0123456789") {
		local[c], domain[c] = letter, letter
	}
	for _, c := range []byte("ABCDEFGHIJKLMNOPQRSTUVWXYZ") {
		local[c], domain[c] = capital, capital
	}
	for _, c := range []byte("!#$%&'*+-/=?^_`{|}~") {
		local[c] = letter
	}
	domain['-'] = hyphen
	local['.'], domain['.'] = dot, dot
	return local, domain
}()

// parseASCII parses what nearly all cells contain: an ASCII dot-atom and a domain of
// at most 63 bytes, with nothing but blanks around. If ok is false, parseAny decides.
func parseASCII(cell []byte) (Address, bool) {
	if len(cell) > 0 && (isBlank(cell[0]) || isBlank(cell[len(cell)-1])) {
		cell = bytes.Trim(cell, blanks)
	}
	at := bytes.IndexByte(cell, '@')
	if at < 0 || at > maxLocal || len(cell)-at-1 > maxLabel || cell[0] == '\'' { // so neither a label nor the whole can be too long
		return Address{}, false // an apostrophe may be the mark of a spreadsheet
	}
	local := sums(&localClass, cell[:at])
	domain := sums(&domainClass, cell[at+1:])
	if (local|domain)&(hasBadPair|hasForeign) != 0 || domain&hasDot == 0 {
		return Address{}, false
	}
	return Address{text: cell, at: uint8(at), ascii: true, upper: (local|domain)&hasCapital != 0}, true
}

// sums returns the bits of the sums of all neighbours in part and at its edges. It
// has no branch for dots, because the processor would often predict it wrong.
func sums(class *[256]uint8, part []byte) (bits uint8) {
	prev := edge
	for _, b := range part {
		c := class[b]
		bits |= prev + c
		prev = c
	}
	return bits | (prev + edge)
}

const blanks = " \t\n\v\f\r"

func isBlank(c byte) bool { return c == ' ' || '\t' <= c && c <= '\r' }
