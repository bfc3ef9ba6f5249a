package company_test

import (
	"encoding/csv"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/leadetl/leadetl/transforms/company"
)

// TestSharedVectors reads the whole list of ranges where it is at hand; its
// rows are restated in the tests of ParseRange.
func TestSharedVectors(t *testing.T) {
	file, err := os.Open("../../../shared/vectors/company_ranges.csv")
	if err != nil {
		t.Skip("the shared vectors are not here")
	}
	defer file.Close()
	rows, err := csv.NewReader(file).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows[1:] {
		if strings.Contains(row[1], "€") {
			continue // the list has its bounds in euros; ours are in dollars
		}
		r := company.ParseRange(row[1])
		low, high := "", ""
		if r.HasMin {
			low = strconv.FormatInt(r.Min, 10)
		}
		if r.HasMax {
			high = strconv.FormatInt(r.Max, 10)
		}
		if low != row[2] || high != row[3] {
			t.Errorf("ParseRange(%q) = %q to %q, want %q to %q", row[1], low, high, row[2], row[3])
		}
	}
}
