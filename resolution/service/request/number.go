package request

import (
	"math"
	"strconv"
	"strings"
)

// maxExponentDigits bounds the exponents that are calculated with.
const maxExponentDigits = 15

// decimal is a JSON number: digits × 10^exponent. The digits have no zeros at
// either end. Zero has no digits and no sign.
type decimal struct {
	negative bool
	digits   string
	exponent int64
	// beyond says that the exponent is too long to calculate with. Then exponent
	// has only its sign.
	beyond bool
}

func parseDecimal(written string) (d decimal) {
	rest, negative := strings.CutPrefix(written, "-")
	mantissa := rest
	if i := strings.IndexAny(rest, "eE"); i >= 0 {
		mantissa = rest[:i]
		d.exponent, d.beyond = parseExponent(rest[i+1:])
	}
	d.digits = mantissa
	if whole, fraction, found := strings.Cut(mantissa, "."); found {
		d.digits = whole + fraction
		if !d.beyond {
			d.exponent -= int64(len(fraction))
		}
	}
	d.digits = strings.TrimLeft(d.digits, "0")
	significant := strings.TrimRight(d.digits, "0")
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

func parseExponent(written string) (exponent int64, beyond bool) {
	sign := int64(1)
	switch written[0] {
	case '-':
		sign = -1
		fallthrough
	case '+':
		written = written[1:]
	}
	written = strings.TrimLeft(written, "0")
	if len(written) > maxExponentDigits {
		return sign, true
	}
	for i := range len(written) {
		exponent = exponent*10 + int64(written[i]-'0')
	}
	return sign * exponent, false
}

// integer returns a number without a fraction: 10, 10.0 and 1e1 are the same. A
// number that does not fit becomes the nearest int64.
func (d decimal) integer() (n int64, ok bool) {
	if d.exponent < 0 {
		return 0, false
	}
	furthest := int64(math.MaxInt64)
	if d.negative {
		furthest = math.MinInt64
	}
	if d.beyond || int64(len(d.digits))+d.exponent > 18 { // 19 digits may be too many
		return furthest, true
	}
	for i := range len(d.digits) {
		n = n*10 + int64(d.digits[i]-'0')
	}
	for range d.exponent {
		n *= 10
	}
	if d.negative {
		n = -n
	}
	return n, true
}

// appendNumber appends a number in the one spelling that all its spellings share.
// Numbers with exponents of more than 15 digits keep their spelling.
func appendNumber(dst []byte, written string) []byte {
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
