package resolution_test

import (
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/leadetl/leadetl/resolution"
)

// A company is the same after it was a record.
func TestCompanyRecord(t *testing.T) {
	text := rapid.SampledFrom([]string{"", "a", "some text"})
	rapid.Check(t, func(t *rapid.T) {
		c := &resolution.Company{
			Name: text.Draw(t, "name"), Domain: text.Draw(t, "domain"), WebsiteURL: text.Draw(t, "website"), NetworkURL: text.Draw(t, "network"),
			Revenue: text.Draw(t, "revenue"), EmployeeCount: text.Draw(t, "employees"), About: text.Draw(t, "about"),
			Address: resolution.Address{Street: text.Draw(t, "street"), ZipCode: text.Draw(t, "zip"), City: text.Draw(t, "city"), State: text.Draw(t, "state")},
		}
		if industry := text.Draw(t, "industry"); industry != "" {
			c.Industry = &industry
		}
		if rapid.Bool().Draw(t, "founded") {
			c.YearFounded = new(rapid.Int32().Draw(t, "year"))
		}
		r := c.Record()
		if got := r.Company(); !reflect.DeepEqual(got, c) {
			t.Fatalf("%+v, want %+v", got, c)
		}
	})
}
