package phone

import (
	"strconv"
	"strings"

	"github.com/nyaruka/phonenumbers"
)

// longestExtension is where digits behind a comma or semicolon stop being an
// extension and are another number.
const longestExtension = 6

// parseDoubleZero reads a number that begins with 00, the international prefix
// of most of the world. The region cannot be asked first: where another prefix
// is used (011 in the US, 001 in Korea) it takes 00… for a national number,
// sometimes even a possible one. So 00 is read as + and must give a possible
// number; only then may the region know a prefix that begins alike (0011 in
// Australia).
func parseDoubleZero(cell, region string) (Number, error) {
	rest := cell[len("00"):]
	if e164, ok := takeDigits(rest); ok {
		if _, err := read(e164, ""); err == nil {
			return Number{e164}, nil
		}
	} else if n, err := parseInPlan("+"+rest, ""); err == nil {
		return n, nil
	}
	parsed, err := phonenumbers.ParseAndKeepRawInput(cell, strings.ToUpper(region))
	if err != nil || parsed.GetCountryCodeSource() != phonenumbers.PhoneNumber_FROM_NUMBER_WITH_IDD {
		return Number{}, ErrInvalid
	}
	return parseInPlan(cell, region)
}

// parseInPlan reads cell by the numbering plans.
func parseInPlan(cell, region string) (Number, error) {
	region = strings.ToUpper(region)
	parsed, err := read(cell, region)
	if err != nil {
		return Number{}, err
	}
	if len(parsed.GetExtension()) > longestExtension && strings.ContainsAny(cell, ",;") {
		return Number{}, ErrMultiple
	}
	e164 := phonenumbers.Format(parsed, phonenumbers.E164)
	if with, ok := ownCallingCode(cell, region, parsed); ok {
		e164 = with
	}
	if _, ok := takeDigits(e164[len("+"):]); !ok {
		// The plan may take another prefix off what it gave. Two
		// readings are none.
		again, err := read(e164, "")
		if err != nil || phonenumbers.Format(again, phonenumbers.E164) != e164 {
			return Number{}, ErrInvalid
		}
	}
	return Number{e164}, nil
}

// read is the library's reading of cell, when it is possible.
func read(cell, region string) (*phonenumbers.PhoneNumber, error) {
	parsed, err := phonenumbers.Parse(cell, region)
	if err != nil {
		return nil, ErrInvalid
	}
	switch phonenumbers.IsPossibleNumberWithReason(parsed) {
	case phonenumbers.IS_POSSIBLE:
		return parsed, nil
	case phonenumbers.IS_POSSIBLE_LOCAL_ONLY:
		return nil, ErrLocalOnly
	}
	return nil, ErrInvalid
}

// ownCallingCode decides between two readings of a number without + that begins
// with its own region's calling code (65 1243 5678 in Singapore): national
// digits that happen to begin so, or a lost +. The plan's reading stands when
// it is valid; else a possible one with the code read as code is the better.
func ownCallingCode(cell, region string, parsed *phonenumbers.PhoneNumber) (e164 string, ok bool) {
	if strings.HasPrefix(cell, "+") {
		return "", false
	}
	e164, ok = takeDigits(cell)
	code := strconv.Itoa(phonenumbers.GetCountryCodeForRegion(region))
	if !ok || !strings.HasPrefix(e164[len("+"):], code) || phonenumbers.IsValidNumber(parsed) {
		return "", false
	}
	if _, err := read(e164, ""); err != nil {
		return "", false
	}
	return e164, true
}
