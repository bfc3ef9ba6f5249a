// Package phone turns phone numbers, as people and spreadsheets write them, into
// E.164. It accepts possible numbers, which need not be valid: platforms have numbers
// that are not in the numbering plans. [Describe] says whether a number is valid.
package phone

import (
	"errors"
	"strings"
)

// The reasons why a cell has no usable number. Their texts are the words in the reason
// column of a dataset.
var (
	ErrEmpty       = errors.New("empty")         // an empty cell, or a null word
	ErrInvalid     = errors.New("invalid_phone") // not a number, or not possible in its plan
	ErrExcelDamage = errors.New("excel_damage")  // 6.50555E+09: a spreadsheet dropped digits
	ErrLocalOnly   = errors.New("local_only")    // can only be dialled inside an area, which is not known
	ErrMultiple    = errors.New("multiple")      // more than one number
)

// Number is a phone number.
type Number struct {
	// E164 is + and 8 to 15 digits. A few plans have shorter numbers (+290 2222)
	// or longer ones (Germany).
	E164 string
}

// Parse reads the number in s. defaultRegion is the two-letter region of national
// numbers ("US"); if it is empty, only international numbers can be read.
//
// A number with + and 8 to 15 digits is accepted without its punctuation, even if it
// is not possible in its plan; but if it is not valid, and is valid without a prefix that
// is or was dialled inside its country, then without it. Any other number must have a length that
// its plan allows. Extensions are dropped, and so are labels, such as (cell). E164 is a copy; Parse of it returns the same. Errors
// are those of this package, unwrapped.
func Parse(s, defaultRegion string) (Number, error) {
	cell, err := clean(s)
	if err != nil {
		return Number{}, err
	}
	n, err := parseOne(cell, defaultRegion)
	if err != nil && err != ErrExcelDamage && severalNumbers(cell, defaultRegion) {
		return Number{}, ErrMultiple
	}
	return n, err
}

func parseOne(cell, region string) (Number, error) {
	cell = withoutFraction(withoutLabel(cell))
	if scientific(cell) {
		return Number{}, ErrExcelDamage
	}
	if digits := fromFirstDigit(cell); strings.HasPrefix(digits, "00") { // also behind + and (
		n, err := parseDoubleZero(digits, region)
		if err != nil || !Describe(n.E164).Valid {
			if without, ok := withoutDialled("+"+digits[len("00"):], ""); ok {
				return without, nil
			}
		}
		return n, err
	}
	n, err := parseForm(cell, region)
	if err != nil && err != ErrMultiple || err == nil && !Describe(n.E164).Valid {
		if without, ok := withoutDialled(cell, region); ok {
			return without, nil
		}
	}
	// A .0 behind spaces may be a float, and not, as in Germany, the last digit.
	if whole, ok := strings.CutSuffix(cell, ".0"); ok && (err != nil || !Describe(n.E164).Valid) {
		if without, err := parseForm(whole, region); err == nil && Describe(without.E164).Valid {
			return without, nil
		}
	}
	return n, err
}

func parseForm(cell, region string) (Number, error) {
	if rest, ok := strings.CutPrefix(cell, "+"); ok {
		return parsePlus(rest)
	}
	return parseInPlan(cell, region)
}

// fromFirstDigit drops what precedes the first digit.
func fromFirstDigit(s string) string {
	return s[max(strings.IndexAny(s, "0123456789"), 0):]
}

// severalNumbers reports whether a cell that is not a number is a list of numbers.
func severalNumbers(cell, region string) bool {
	found := 0
	for part := range strings.FieldsFuncSeq(cell, func(r rune) bool { return strings.ContainsRune(",;|/\n", r) }) {
		if _, err := parseOne(strings.TrimSpace(part), region); err != nil {
			return false
		}
		found++
	}
	return found > 1
}
