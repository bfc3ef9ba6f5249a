package phone_test

import (
	"encoding/csv"
	"os"
	"testing"

	"github.com/leadetl/leadetl/transforms/phone"
)

// TestPublishedVectors reads the whole list of published phone hashes where it
// is at hand; the rows that matter are restated in TestParse and TestForm.
func TestPublishedVectors(t *testing.T) {
	file, err := os.Open("../../../shared/vectors/phone_published.csv")
	if err != nil {
		t.Skip("the shared vectors are not here")
	}
	defer file.Close()
	rows, err := csv.NewReader(file).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	column := map[string]int{}
	for i, name := range rows[0] {
		column[name] = i
	}
	forms := map[string]phone.Form{"e164": phone.E164, "digits": phone.Digits, "drop_last10": phone.Last10}
	checked := 0
	for _, row := range rows[1:] {
		form, ok := forms[row[column["profile"]]]
		if !ok {
			continue
		}
		cell, region, want := row[column["phone"]], row[column["default_region"]], row[column["normalized"]]
		n, err := phone.Parse(cell, region)
		if got := n.Form(form); err != nil || got != want {
			t.Errorf("Parse(%q, %q) in form %d = %q, %v, want %q", cell, region, form, got, err, want)
		}
		checked++
	}
	if checked == 0 {
		t.Error("no row of a known profile")
	}
}
