package phone

import (
	"strconv"
	"strings"

	"github.com/nyaruka/phonenumbers"
)

// dialled are digits that were once dialled inside a country and are written after its calling
// code still, with what is written in their place since. They are dropped only from numbers that
// are valid without them and not with them.
type dialled struct{ before, since string }

// trunk is the trunk prefix of most countries. Plans without one had it once, or people write it
// by habit: 0347 of mobiles in Italy, 09 in Chile. It goes behind a calling code alone: a number
// without one that begins with 0 may be of another country than the default region.
var trunk = dialled{before: "0"}

// formerly are more of them, by calling code.
var formerly = func() map[string][]dialled {
	all := map[string][]dialled{
		// Mobiles until 2019, and WhatsApp's numbers still; 01, 044 and 045 inside the country.
		"52": {{before: "1"}, {before: "01"}, {before: "044"}, {before: "045"}},
		// 15 of mobiles, before the area code.
		"54": {{before: "15", since: "9"}, {before: "015", since: "9"}},
		"48": {{before: "8"}}, // until 2005
	}
	for _, code := range []string{"7", "370", "371", "372", "373", "374", "375", "380", "992", "993", "994", "995", "996", "998"} {
		all[code] = []dialled{{before: "8"}} // the trunk prefix of the Soviet Union
	}
	return all
}()

// withoutDialled reads a number that is not valid as it is written, but is without what is no
// longer dialled, or with the 0 before the code of a carrier, which the plan then removes with it
// (+55 15 11 98765 4321).
func withoutDialled(cell, region string) (Number, bool) {
	parsed, err := phonenumbers.Parse(cell, strings.ToUpper(region))
	if err != nil {
		return Number{}, false
	}
	code, national := strconv.Itoa(int(parsed.GetCountryCode())), phonenumbers.GetNationalSignificantNumber(parsed)
	nationals := []string{national}
	if own, ok := strings.CutPrefix(national, code); ok && !strings.HasPrefix(cell, "+") {
		nationals = append(nationals, own) // its + was lost
	}
	for _, national := range nationals {
		for _, d := range append(formerly[code], trunk) {
			rest, ok := strings.CutPrefix(national, d.before)
			if !ok || d == trunk && !strings.HasPrefix(cell, "+") {
				continue
			}
			if n, ok := validIn("+" + code + d.since + rest); ok {
				return n, true
			}
		}
		if n, ok := validIn("+" + code + trunk.before + national); ok {
			return n, true
		}
	}
	return Number{}, false
}

// validIn reads a number that has to be valid in its plan.
func validIn(e164 string) (Number, bool) {
	n, err := parseInPlan(e164, "")
	return n, err == nil && Describe(n.E164).Valid
}

// Before returns the form that a number had in international writing before its plan changed, and
// has in lists of then: +52 1 55… of +52 55…. ok is false for most numbers.
func (n Number) Before() (before Number, ok bool) {
	national, ok := strings.CutPrefix(n.E164, "+52")
	if !ok || len(national) != 10 {
		return Number{}, false
	}
	return Number{"+521" + national}, true
}
