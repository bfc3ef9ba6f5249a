package email

// What a byte is to the fast path, as bits: a byte may be several things.
const (
	isDot    = 1 << iota
	isHyphen // in a domain only: in a local part it is like any letter
	isUpper
	inLocal // may stand in a dot-atom, dots included. Source: RFC 5322 3.2.3
	inDomain
)

var class = func() (t [256]uint8) {
	for c := byte('a'); c <= 'z'; c++ {
		t[c] = inLocal | inDomain
		t[c-'a'+'A'] = inLocal | inDomain | isUpper
	}
	for c := byte('0'); c <= '9'; c++ {
		t[c] = inLocal | inDomain
	}
	for _, c := range []byte("!#$%&'*+/=?^_`{|}~") {
		t[c] = inLocal
	}
	t['-'] = inLocal | inDomain | isHyphen
	t['.'] = inLocal | inDomain | isDot
	return t
}()

// parseASCII takes the addresses that nearly all cells hold: an ASCII dot-atom
// and a domain of no more than 63 bytes, nothing around them. It refuses
// nothing: ok false means that parseAny has to look.
//
// Inside a loop there is one branch, whether it goes on. What must not follow
// what is gathered in bits and asked once, because a branch per dot is guessed
// wrongly about as often as there are dots.
func parseASCII(cell []byte) (a Address, ok bool) {
	at, prev, bad, seen := 0, uint8(isDot), uint8(0), uint8(0) // a dot may not come first
	for at < len(cell) {
		c := class[cell[at]]
		if c&inLocal == 0 {
			break
		}
		bad |= prev & c & isDot
		seen |= c
		prev = c
		at++
	}
	bad |= prev & isDot
	if at > maxLocal || at == len(cell) || cell[at] != '@' || bad != 0 {
		return Address{}, false
	}

	domain := cell[at+1:]
	if len(domain) > maxLabel { // so no label can be too long, nor the whole
		return Address{}, false
	}
	prev, dots := isDot, uint8(0)
	for _, b := range domain {
		c := class[b]
		if c&inDomain == 0 {
			return Address{}, false
		}
		// A label begins and ends with neither dot nor hyphen: no two dots, no
		// dot and hyphen side by side.
		bad |= prev&c&isDot | prev<<1&c&isHyphen | prev&isHyphen>>1&c&isDot
		dots |= c
		prev = c
	}
	bad |= prev & (isDot | isHyphen)
	if bad != 0 || dots&isDot == 0 {
		return Address{}, false
	}
	return Address{text: cell, at: uint8(at), ascii: true, upper: (seen|dots)&isUpper != 0}, true
}
