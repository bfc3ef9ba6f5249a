package email

import "bytes"

// What a byte is at a place in an address, as numbers that are added to the
// neighbour's: a sum of 4 or more in the low bits is a pair that may not be, a
// dot beside a dot, an edge or, in a domain, a hyphen.
const (
	letter  uint8 = 0
	hyphen  uint8 = 1
	edge    uint8 = 3 // before and after a part
	dot     uint8 = edge | 1<<3
	capital uint8 = 1 << 4
	foreign uint8 = 1 << 6 // may not stand there

	// Bits of a sum. Two capitals or two foreign bytes carry into the next bit,
	// which is left free for that; two dots too, but they are a bad pair.
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

// parseASCII takes the addresses that nearly all cells hold: an ASCII dot-atom
// and a domain of no more than 63 bytes, nothing but blanks around them. It
// refuses nothing: ok false means that parseAny has to look.
func parseASCII(cell []byte) (Address, bool) {
	if len(cell) > 0 && (isBlank(cell[0]) || isBlank(cell[len(cell)-1])) {
		cell = bytes.Trim(cell, blanks)
	}
	at := bytes.IndexByte(cell, '@')
	if at < 0 || at > maxLocal || len(cell)-at-1 > maxLabel { // so no label can be too long, nor the whole
		return Address{}, false
	}
	local := sums(&localClass, cell[:at])
	domain := sums(&domainClass, cell[at+1:])
	if (local|domain)&(hasBadPair|hasForeign) != 0 || domain&hasDot == 0 {
		return Address{}, false
	}
	return Address{text: cell, at: uint8(at), ascii: true, upper: (local|domain)&hasCapital != 0}, true
}

// sums gathers the bits of the sums of all neighbours in part, its edges among
// them.
//
// The loop has no branch but its own: one at each dot would be guessed wrongly
// about as often as there are dots.
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
