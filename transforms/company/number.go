package company

import "math"

// number is mantissa ÷ 10^decimals × unit.
type number struct {
	mantissa int64
	decimals int
	unit     int64 // 0 when none was written
	tooBig   bool  // the digits do not fit the mantissa
	// inDoubt says that a dot may separate thousands instead of decimals.
	inDoubt bool
}

// value returns the number in a unit; 0 means ones. ok is false if it is not a whole
// number, does not fit, or is ambiguous.
func (n number) value(unit int64) (v int64, ok bool) {
	if n.tooBig || n.inDoubt && unit == 0 {
		return 0, false
	}
	unit = max(unit, 1)
	mantissa := n.mantissa
	for range n.decimals {
		switch {
		case unit%10 == 0:
			unit /= 10
		case mantissa%10 == 0:
			mantissa /= 10
		default:
			return 0, false
		}
	}
	if mantissa > math.MaxInt64/unit {
		return 0, false
	}
	return mantissa * unit, true
}

// units are the multiples by their words. MM is a million in finance.
var units = map[string]int64{
	"k": 1e3, "thousand": 1e3, "thousands": 1e3,
	"m": 1e6, "mm": 1e6, "mn": 1e6, "mln": 1e6, "mil": 1e6, "mio": 1e6, "million": 1e6, "millions": 1e6,
	"b": 1e9, "bn": 1e9, "bln": 1e9, "bil": 1e9, "billion": 1e9, "billions": 1e9,
	"tn": 1e12, "trillion": 1e12, "trillions": 1e12,
}

// number reads a number and its unit: 1234, 1,234, 1 234, 1'234, 1.5 M. ok is false if
// there is no number, or if digits, dots or commas follow it: then it is written in
// another way (1.000.000, 1,5).
func (s *scanner) number() (n number, ok bool) {
	whole := s.digits(&n)
	if whole == 0 {
		return number{}, false
	}
	if sep := s.next(); whole <= 3 && (sep == ',' || sep == ' ' || sep == '\'') {
		for s.thousands(&n, sep) {
			whole += 3
		}
	}
	if rest := s.rest(); len(rest) > 1 && rest[0] == '.' && digit(rest[1]) {
		s.at++
		n.decimals = s.digits(&n)
		n.inDoubt = whole <= 3 && n.decimals == 3
	}
	if c := s.next(); c == '.' || c == ',' || c == '\'' {
		return number{}, false
	}
	behind := s.at
	s.skip(' ')
	word := s.word()
	unit, known := units[string(word)]
	if !known {
		s.at = behind
		return n, true
	}
	n.unit = unit
	s.at += len(word)
	s.skip('.')
	return n, true
}

// digits reads digits into n and returns their number.
func (s *scanner) digits(n *number) (count int) {
	for ; digit(s.next()); s.at++ {
		d := int64(s.next() - '0')
		count++
		if n.mantissa > (math.MaxInt64-d)/10 {
			n.tooBig = true
			continue
		}
		n.mantissa = n.mantissa*10 + d
	}
	return count
}

// thousands reads sep and the three digits after it, if there are exactly three.
func (s *scanner) thousands(n *number, sep byte) bool {
	t := s.rest()
	if len(t) < 4 || t[0] != sep || !digit(t[1]) || !digit(t[2]) || !digit(t[3]) || len(t) > 4 && digit(t[4]) {
		return false
	}
	s.at++
	s.digits(n)
	return true
}
