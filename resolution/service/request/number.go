package request

import (
	"bytes"
	"math"
	"strconv"
)

// maxExponentDigits is how long an exponent may be to be calculated with.
const maxExponentDigits = 15

// decimal is a JSON number taken apart: digits × 10^exponent. The digits have
// no zeros at either end; zero has none and no sign.
type decimal struct {
	negative bool
	digits   []byte
	exponent int64
	// beyond says that the exponent is too long to calculate with; the sign of
	// exponent is its sign.
	beyond bool
}

func parseDecimal(written []byte) (d decimal) {
	rest, negative := bytes.CutPrefix(written, []byte("-"))
	mantissa := rest
	if i := bytes.IndexAny(rest, "eE"); i >= 0 {
		mantissa = rest[:i]
		d.exponent, d.beyond = parseExponent(rest[i+1:])
	}
	d.digits = mantissa
	if whole, fraction, found := bytes.Cut(mantissa, []byte(".")); found {
		d.digits = append(bytes.Clone(whole), fraction...)
		if !d.beyond {
			d.exponent -= int64(len(fraction))
		}
	}
	d.digits = bytes.TrimLeft(d.digits, "0")
	significant := bytes.TrimRight(d.digits, "0")
	if !d.beyond {
		d.exponent += int64(len(d.digits) - len(significant))
	}
	d.digits = significant
	if len(d.digits) == 0 {
		return decimal{}
	}
	d.negative = negative
	return d
}

func parseExponent(written []byte) (exponent int64, beyond bool) {
	sign := int64(1)
	switch written[0] {
	case '-':
		sign = -1
		fallthrough
	case '+':
		written = written[1:]
	}
	written = bytes.TrimLeft(written, "0")
	if len(written) > maxExponentDigits {
		return sign, true
	}
	for _, c := range written {
		exponent = exponent*10 + int64(c-'0')
	}
	return sign * exponent, false
}

// integer is the number when it has no fraction, however it is written: 10,
// 10.0 and 1e1 are the same. One too large for an int64 is the nearest that is
// not.
func (d decimal) integer() (n int64, ok bool) {
	if d.exponent < 0 {
		return 0, false
	}
	furthest := int64(math.MaxInt64)
	if d.negative {
		furthest = math.MinInt64
	}
	if d.beyond || int64(len(d.digits))+d.exponent > 18 { // 19 digits may be too many
		if len(d.digits) == 0 {
			return 0, true
		}
		return furthest, true
	}
	for _, c := range d.digits {
		n = n*10 + int64(c-'0')
	}
	for range d.exponent {
		n *= 10
	}
	if d.negative {
		n = -n
	}
	return n, true
}

// appendNumber appends a number in a spelling that all its spellings share. Two
// whose exponents have more than 15 digits are the same only when they are
// written the same.
func appendNumber(dst, written []byte) []byte {
	d := parseDecimal(written)
	switch {
	case len(d.digits) == 0:
		return append(dst, '0')
	case d.beyond:
		return append(dst, written...)
	}
	if d.negative {
		dst = append(dst, '-')
	}
	dst = append(dst, d.digits...)
	if d.exponent != 0 {
		dst = strconv.AppendInt(append(dst, 'e'), d.exponent, 10)
	}
	return dst
}
