package columns_test

import (
	"testing"

	"github.com/leadetl/leadetl/pipeline/columns"
	"github.com/leadetl/leadetl/resolution"
)

// TestPhoneDetails: answers that have details of all numbers are not described again. What is given
// here is not what the plans say.
func TestPhoneDetails(t *testing.T) {
	table := &resolution.TextTable{}
	for _, text := range []string{"FR mobile", " unknown"} {
		table.Add([]byte(text))
	}
	const french, nowhere, none, us = `"phone_region": "FR", "phone_type": "mobile", "phone_valid": true`, `"phone_type": "unknown", "phone_valid": false`,
		``, `"phone_region": "US", "phone_type": "fixed_line_or_mobile", "phone_valid": true`
	for _, c := range []struct {
		name    string
		phones  []string
		details []int32 // 2 for none
		want    []string
	}{
		{"all", []string{"+12025550100", "+12025550101", "+12025550102"}, []int32{0, 1, 0}, []string{french, nowhere, french}},
		{"a row without a number", []string{"", "+12025550101"}, []int32{2, 0}, []string{none, french}},
		{"fewer rows than numbers", []string{"+12025550100", "+12025550101"}, []int32{0}, []string{us, us}},
		{"a number without details", []string{"+12025550100", "+12025550101"}, []int32{0, 2}, []string{us, us}},
	} {
		build := builder(t, columns.Settings{Operation: resolution.NetworkToPhone, Select: []string{"phone_region", "phone_type", "phone_valid"}})
		b := emptyBatch(len(c.phones))
		b.Answers = &resolution.Answers{}
		for i, number := range c.phones {
			b.Answers.AddMatch()
			b.Answers.SetText(resolution.FieldPhone, number)
			if i < len(c.details) {
				b.Answers.Texts[resolution.FieldPhoneDetails].Table = table
				b.Answers.Texts[resolution.FieldPhoneDetails].Codes = c.details[:i+1]
			}
		}
		for i, got := range facts(t, build.Record(b)) {
			delete(got, "outcome")
			t.Run(c.name, func(t *testing.T) { requireFacts(t, got, "{"+c.want[i]+"}") })
		}
	}
}
