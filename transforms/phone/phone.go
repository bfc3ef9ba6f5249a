// Package phone turns phone numbers as people and spreadsheets write them into
// E.164. What it accepts is possible, not necessarily valid: platforms hold
// numbers their numbering plan does not know, so validity is a flag of
// [Describe] and no gate.
package phone

import (
	"errors"
	"strings"
)

// Why a cell holds no usable number. Each text is the word of the dataset's
// reason column; none ever holds the value.
var (
	ErrEmpty       = errors.New("empty")         // nothing, or a word that means nothing
	ErrInvalid     = errors.New("invalid_phone") // no number, or none that its plan could hold
	ErrExcelDamage = errors.New("excel_damage")  // 6.50555E+09: a spreadsheet dropped digits
	ErrLocalOnly   = errors.New("local_only")    // dialled inside one area only: the area is not known
	ErrMultiple    = errors.New("multiple")      // more than one number
)

// Number is a phone number.
type Number struct {
	// E164 is + and digits: 8 to 15 of them, save in the few plans with
	// shorter numbers (+290 2222) or longer ones (Germany).
	E164 string
}

// Parse reads the number in s. defaultRegion is the two-letter region national
// numbers are read in ("US"); when it is empty only international numbers can
// be read.
//
// A number that begins with + and has 8 to 15 digits is taken as written,
// punctuation dropped, whether or not its plan could hold it. Any other must
// be possible: of a length its plan knows. Extensions are dropped. E164 is a
// copy; parsing it again gives it again. Errors are the package's, unwrapped.
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
	switch {
	case scientific(cell):
		return Number{}, ErrExcelDamage
	case strings.HasPrefix(cell, "+00"):
		// Both ways of writing the international prefix at once.
		return parseDoubleZero(cell[len("+"):], region)
	case strings.HasPrefix(cell, "+"):
		if e164, ok := takeDigits(cell[len("+"):]); ok {
			return Number{e164}, nil
		}
	case strings.HasPrefix(cell, "00"):
		return parseDoubleZero(cell, region)
	}
	return parseInPlan(withoutFraction(cell), region)
}

// severalNumbers reports whether a cell that is no number is a list of them.
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
