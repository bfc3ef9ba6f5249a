package company

import "math"

// number is a number as written: mantissa ÷ 10^decimals × unit.
type number struct {
	mantissa int64
	decimals int
	unit     int64 // 0 when none was written
	tooBig   bool  // the digits do not fit the mantissa
	// inDoubt says that a dot stands where it could also part thousands.
	inDoubt bool
}

// value is the number in the given unit, 0 being ones. ok is false when it is no
// whole number, does not fit, or could be another.
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

// units are the multiples, by the words for them. MM is the million of finance.
var units = map[string]int64{
	"k": 1e3, "thousand": 1e3, "thousands": 1e3,
	"m": 1e6, "mm": 1e6, "mn": 1e6, "mln": 1e6, "mil": 1e6, "mio": 1e6, "million": 1e6, "millions": 1e6,
	"b": 1e9, "bn": 1e9, "bln": 1e9, "bil": 1e9, "billion": 1e9, "billions": 1e9,
	"tn": 1e12, "trillion": 1e12, "trillions": 1e12,
}

// number reads a number and its unit: 1234, 1,234, 1 234, 1'234, 1.5 M. ok is
// false where none begins, and where digits, dots or commas go on behind one:
// the number is then written in a way not known here (1.000.000, 1,5).
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

// digits reads a run of digits into n and returns how many there were.
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

// thousands reads sep and the three digits behind it, when there are just three.
func (s *scanner) thousands(n *number, sep byte) bool {
	t := s.rest()
	if len(t) < 4 || t[0] != sep || !digit(t[1]) || !digit(t[2]) || !digit(t[3]) || len(t) > 4 && digit(t[4]) {
		return false
	}
	s.at++
	s.digits(n)
	return true
}
