package columns_test

import (
	"testing"

	"github.com/leadetl/leadetl/pipeline/columns"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/transforms/phone"
)

// TestPhoneProfiles: the hashes of the first number, as platforms have published them.
// Source: github.com/googleads/data-manager-python@5abbf5d tests/formatter_test.py (Apache-2.0), and
// developers.facebook.com, customer information parameters.
func TestPhoneProfiles(t *testing.T) {
	everyForm := []phone.Form{phone.E164, phone.Digits}
	for _, op := range []resolution.Operation{resolution.NetworkToPhone, resolution.Enrichment, resolution.Deanonymization, resolution.KeywordToLead} {
		for _, c := range []struct {
			forms  []phone.Form
			choice []string
			want   []string // by row
		}{
			{nil, []string{"phone"}, []string{`"phone": "+18005550100"`, `"phone": "+16505551212"`, ""}},
			{everyForm[:1], []string{"phone_e164_sha256"}, []string{`"phone_e164_sha256": "fb4f73a6ec5fdb7077d564cdd22c3554b43ce49168550c3b12c547b78c517b30"`, `"phone_e164_sha256": "1e231c66011e7a2d867a9cfae267a6aff103cf4913640b6e71a99850fc0ffbc8"`, ""}},
			{everyForm, []string{"phone_digits_sha256"}, []string{`"phone_digits_sha256": "92cfdc5fbcd4a20fbe5d3857af6c1aba31762105bba7f21a17155e920653046c"`, `"phone_digits_sha256": "e323ec626319ca94ee8bff2e4c87cf613be6ea19919ed1364124e16807ab3176"`, ""}},
		} {
			build := builder(t, columns.Settings{Operation: op, PhoneProfiles: c.forms, Select: c.choice})
			b := emptyBatch(3)
			b.Answers = &resolution.Answers{}
			for _, number := range []string{"+18005550100", "+16505551212", ""} {
				b.Answers.AddMatch()
				b.Answers.SetText(resolution.FieldPhone, number)
			}
			for i, got := range facts(t, build.Record(b)) {
				delete(got, "outcome")
				requireFacts(t, got, "{"+c.want[i]+"}")
			}
		}
	}
}

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
