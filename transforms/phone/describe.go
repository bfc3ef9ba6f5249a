package phone

import "github.com/nyaruka/phonenumbers"

// Details is what the numbering plans say about a number.
type Details struct {
	// Region is a two-letter region ("US"), "001" for numbers of no region,
	// and "" when the plan serves several regions and fits none.
	Region string
	// Type is what the number is for: mobile, fixed_line,
	// fixed_line_or_mobile (plans that do not tell), toll_free,
	// premium_rate, shared_cost, voip, personal_number, pager, uan,
	// voicemail, or unknown.
	Type string
	// Valid says that the plan has given out the number's range.
	Valid bool
}

var typeNames = map[phonenumbers.PhoneNumberType]string{
	phonenumbers.FIXED_LINE:           "fixed_line",
	phonenumbers.MOBILE:               "mobile",
	phonenumbers.FIXED_LINE_OR_MOBILE: "fixed_line_or_mobile",
	phonenumbers.TOLL_FREE:            "toll_free",
	phonenumbers.PREMIUM_RATE:         "premium_rate",
	phonenumbers.SHARED_COST:          "shared_cost",
	phonenumbers.VOIP:                 "voip",
	phonenumbers.PERSONAL_NUMBER:      "personal_number",
	phonenumbers.PAGER:                "pager",
	phonenumbers.UAN:                  "uan",
	phonenumbers.VOICEMAIL:            "voicemail",
	phonenumbers.UNKNOWN:              "unknown",
}

// Describe looks e164 up in the numbering plans that are built into the program.
// What is not a number is unknown and not valid.
func Describe(e164 string) Details {
	if p, national, ok := planOf(e164); ok {
		return p.describe(national)
	}
	return describeSlowly(e164)
}

// describeSlowly is Describe by the library. It costs microseconds.
func describeSlowly(e164 string) Details {
	none := Details{Type: typeNames[phonenumbers.UNKNOWN]}
	parsed, err := phonenumbers.Parse(e164, "")
	if err != nil {
		return none
	}
	if phonenumbers.Format(parsed, phonenumbers.E164) != e164 {
		// The plan read another number into the digits; what it says
		// is true of that one.
		return none
	}
	kind := phonenumbers.GetNumberType(parsed)
	return Details{
		Region: phonenumbers.GetRegionCodeForNumber(parsed),
		Type:   typeNames[kind],
		// A number is valid where a type's pattern matches it.
		Valid: kind != phonenumbers.UNKNOWN,
	}
}
