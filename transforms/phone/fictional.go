package phone

import "github.com/nyaruka/phonenumbers"

// reserved are the ranges that numbering plans keep for fiction, by region and type. X is any digit. Those that are
// not valid in the plan, such as +44 7700 900 and +33 6 39 98, are left out: nothing would take them for a number.
//
// Source: NANPA (555-0100 to 0199), Ofcom (numbers for drama), Arcep (decision 2018-0881), ACMA (numbers for
// use in fiction), BNetzA (Mitteilung 148/2021), PTS (nummer för användning i böcker och filmer).
var reserved = map[string]map[string][]string{
	"US": {"fixed_line_or_mobile": {"+120255501XX"}, "toll_free": {"+180055501XX"}},
	"CA": {"fixed_line_or_mobile": {"+161355501XX"}},
	"GB": {"fixed_line": {"+442079460XXX"}},
	"FR": {"fixed_line": {"+3319900XXXX"}},
	"AU": {"mobile": {"+61491570006", "+61491570110", "+61491570156", "+61491570157", "+61491570158", "+61491570159"}, "fixed_line": {"+6125550XXXX"}},
	"DE": {"fixed_line": {"+493023125XXX"}},
	"SE": {"mobile": {"+4670174061X", "+4670174062X", "+4670174063X"}, "fixed_line": {"+468465004XX"}},
}

// Fictional returns another number of the same region and type: one that nobody has, where the plan has such
// numbers, else one beside the example of the plan. random returns a number below n. It is "" if the number is
// of no region.
func Fictional(e164 string, random func(n int) int) string {
	is := Describe(e164)
	for _, forms := range [][]string{reserved[is.Region][is.Type], exampleForms(is)} {
		for range min(100*len(forms), 100) {
			made := []byte(forms[random(len(forms))])
			for i, c := range made {
				if c == 'X' {
					made[i] = byte('0' + random(10))
				}
			}
			if number := string(made); number != e164 && Describe(number) == is {
				return number
			}
		}
	}
	return ""
}

// exampleForms are the example number of a region and type, with any last digits.
func exampleForms(is Details) []string {
	for kind, name := range typeNames {
		if name != is.Type {
			continue
		}
		if example := phonenumbers.GetExampleNumberForType(is.Region, kind); example != nil {
			e164 := phonenumbers.Format(example, phonenumbers.E164)
			return []string{e164[:len(e164)-3] + "XXX", e164[:len(e164)-4] + "XXXX"}
		}
	}
	return nil
}
