package phone

import (
	"strconv"
	"strings"

	"github.com/nyaruka/phonenumbers"
)

// longestExtension bounds an extension after a comma or semicolon. More digits are
// another number.
const longestExtension = 6

// parseDoubleZero reads a number that begins with 00, the international prefix of most
// countries. It first reads 00 as +, because regions with another prefix (011 in the
// US, 001 in Korea) would read a national number. If that gives no possible number,
// the region may have a longer prefix (0011 in Australia).
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

// parseInPlan reads a cell with the numbering plans.
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
		// The plan may remove another prefix from its own result. Then the
		// number is ambiguous.
		again, err := read(e164, "")
		if err != nil || phonenumbers.Format(again, phonenumbers.E164) != e164 {
			return Number{}, ErrInvalid
		}
	}
	return Number{e164}, nil
}

// read reads a cell with the library. The number must be possible.
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

// ownCallingCode decides about a number without + that begins with the calling code of
// its own region (65 1243 5678 in Singapore): it is a national number, or its + was
// lost. A valid national number is preferred; else a possible number with that code.
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
