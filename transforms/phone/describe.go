package phone

import (
	"strings"

	"github.com/nyaruka/phonenumbers"
)

// Rules name the numbering plans that Describe follows. They change when it says something else of
// a number, so that who keeps Details knows whether they are still right.
const Rules = "phonenumbers v1.8.1"

// Details is what the numbering plans know about a number.
type Details struct {
	// Region is a two-letter region ("US"), "001" for numbers without a region,
	// and "" if no region of the plan fits.
	Region string
	// Type is what the number is for: mobile, fixed_line,
	// fixed_line_or_mobile (if the plan does not say), toll_free,
	// premium_rate, shared_cost, voip, personal_number, pager, uan,
	// voicemail, or unknown.
	Type string
	// Valid says that the range of the number is assigned, which is so if its type is known.
	Valid bool
}

// Text is d in one text, as ParseDetails reads it.
func (d Details) Text() string { return d.Region + " " + d.Type }

// ParseDetails reads a text of Details.Text.
func ParseDetails(text string) Details {
	region, kind, _ := strings.Cut(text, " ")
	return Details{Region: region, Type: kind, Valid: kind != typeNames[phonenumbers.UNKNOWN]}
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

// Describe looks up e164 in the numbering plans, which are built into the program.
// Text that is not a number is unknown and not valid.
func Describe(e164 string) Details {
	if p, national, ok := planOf(e164); ok {
		return p.describe(national)
	}
	return describeSlowly(e164)
}

// describeSlowly is Describe with the library. It takes microseconds.
func describeSlowly(e164 string) Details {
	none := Details{Type: typeNames[phonenumbers.UNKNOWN]}
	parsed, err := phonenumbers.Parse(e164, "")
	if err != nil {
		return none
	}
	if phonenumbers.Format(parsed, phonenumbers.E164) != e164 {
		// The plan read the digits as another number.
		return none
	}
	kind := phonenumbers.GetNumberType(parsed)
	return Details{
		Region: phonenumbers.GetRegionCodeForNumber(parsed),
		Type:   typeNames[kind],
		// A number is valid if the pattern of a type matches it.
		Valid: kind != phonenumbers.UNKNOWN,
	}
}
