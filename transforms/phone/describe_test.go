package phone

import (
	"testing"

	"github.com/nyaruka/phonenumbers"
)

// TestDescribeExamples asks about the example number of every region and type:
// each is valid, of that region's plan and of a type with a name.
func TestDescribeExamples(t *testing.T) {
	for region := range phonenumbers.GetSupportedRegions() {
		for kind := range typeNames {
			example := phonenumbers.GetExampleNumberForType(region, kind)
			if example == nil || kind == phonenumbers.UNKNOWN {
				continue
			}
			e164 := phonenumbers.Format(example, phonenumbers.E164)
			d := Describe(e164)
			if d.Valid != phonenumbers.IsValidNumber(example) || !d.Valid || d.Type == "" || d.Region == "" {
				t.Errorf("Describe(%s), an example of %s in %s, = %+v", e164, typeNames[kind], region, d)
			}
		}
	}
}
