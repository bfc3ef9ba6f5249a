package phone

// The bounds of E.164 numbers. The lower one is practice, the upper one standard
// (Source: ITU-T E.164, 6.2.1).
const (
	minDigits = 8
	maxDigits = 15
)

// takeDigits reads the text after a +. It keeps digits and drops usual punctuation. ok
// is false for other characters, for too few or too many digits, and if a trunk
// prefix follows the calling code, which only the numbering plan can remove.
func takeDigits(s string) (e164 string, ok bool) {
	var buf [1 + maxDigits]byte
	buf[0] = '+'
	n := 1
	for i := range len(s) {
		switch c := s[i]; c {
		case '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
			if n == len(buf) {
				return "", false
			}
			buf[n] = c
			n++
		case ' ', '\t', '-', '.', '(', ')', '/':
		default:
			return "", false
		}
	}
	digits := buf[1:n]
	if len(digits) < minDigits || trunkPrefix(digits) {
		return "", false
	}
	return string(buf[:n]), true
}

// trunkPrefix reports whether the national part may begin with a trunk prefix: 0
// nearly everywhere (+44 (0)20…), 1 in North America and 8 in Russia. In some plans
// (Italy) the 0 belongs to the number.
func trunkPrefix(digits []byte) bool {
	switch {
	case digits[0] == '0': // no calling code begins with 0
		return true
	case digits[0] == '1' && digits[1] == '1', digits[0] == '7' && digits[1] == '8':
		return len(digits) == 12
	}
	return digits[callingCodeLen(digits)] == '0'
}

// callingCodeLen returns how many of the leading digits are the calling code.
// Source: ITU-T E.164 list of assigned country codes. The zone decides on the length,
// also of codes that are not assigned.
func callingCodeLen(digits []byte) int {
	second := digits[1]
	switch digits[0] {
	case '1', '7':
		return 1
	case '2':
		if second == '0' || second == '7' || second == '8' {
			return 2
		}
	case '3':
		if second != '5' && second != '7' && second != '8' {
			return 2
		}
	case '4':
		if second != '2' {
			return 2
		}
	case '5':
		if second != '0' && second != '9' {
			return 2
		}
	case '6':
		if second <= '6' {
			return 2
		}
	case '8':
		if second == '1' || second == '2' || second == '3' || second == '4' || second == '6' || second == '9' {
			return 2
		}
	case '9':
		if second != '6' && second != '7' && second != '9' {
			return 2
		}
	}
	return 3
}
