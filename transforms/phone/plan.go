package phone

import (
	"strconv"
	"strings"

	"github.com/nyaruka/phonenumbers"
)

// longestExtension bounds an extension after a comma or semicolon. More digits are
// another number.
const longestExtension = 6

// parsePlus reads the text after a +. The numbering plan knows prefixes inside a number
// (+370 8 600…, +54 11 15…), so its number is taken if it is valid and the digits as they
// are written are not.
func parsePlus(rest string) (Number, error) {
	e164, ok := takeDigits(rest)
	if !ok {
		return parseInPlan("+"+rest, "")
	}
	if !Describe(e164).Valid {
		if n, ok := validIn(e164); ok {
			return n, nil
		}
	}
	return Number{e164}, nil
}

// parseDoubleZero reads a number that begins with 00, the international prefix of most
// countries. Regions with another one (0011 in Australia, 009 in Colombia) may mean that, so
// there are two readings, and the valid one is taken. If both are, as of 0091 2125552368 in
// Colombia, it is 00 if a space follows it or its calling code; and if neither is, the one
// that is possible.
func parseDoubleZero(cell, region string) (Number, error) {
	plus, err := parsePlus(cell[len("00"):])
	own, errOwn := parseOwnPrefix(cell, region)
	plusValid := err == nil && Describe(plus.E164).Valid
	ownValid := errOwn == nil && Describe(own.E164).Valid
	switch {
	case plusValid && ownValid && plus != own:
		first := len(cell) - len(strings.TrimLeft(cell, "0123456789"))
		if code := len("00") + callingCodeLen([]byte(plus.E164[len("+"):])); first != len("00") && first != code {
			return own, nil
		}
		return plus, nil
	case plusValid:
		return plus, nil
	case ownValid:
		return own, nil
	case err == nil:
		if _, err := read(plus.E164, ""); err == nil {
			return plus, nil
		}
	}
	return own, errOwn
}

// parseOwnPrefix reads a number that begins with the international prefix of its region.
func parseOwnPrefix(cell, region string) (Number, error) {
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
		return parsePlus(with[len("+"):])
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
