package answering

import (
	"testing"

	"github.com/leadetl/leadetl/resolution"
)

// TestPrices are those of the interface's guide.
func TestPrices(t *testing.T) {
	c := DefaultCosts()
	person, company := &resolution.Lead{MatchLevel: "person"}, &resolution.Lead{MatchLevel: "company"}
	for _, f := range []struct {
		operation resolution.Operation
		lead      *resolution.Lead
		want      int64
	}{
		{resolution.EmailToHEM, person, 1},
		{resolution.NetworkToHEM, person, 1},
		{resolution.NetworkToPhone, person, 3},
		{resolution.IPToCompany, person, 1},
		{resolution.Enrichment, person, 2},
		{resolution.Deanonymization, person, 3},
		{resolution.Deanonymization, company, 1},
		{resolution.Deanonymization, nil, 0},
		{resolution.NetworkToPhone, nil, 0},
	} {
		if got := c.found(f.operation, resolution.Answer{Lead: f.lead}); got != f.want {
			t.Errorf("%s of %+v: %d credits, want %d", f.operation, f.lead, got, f.want)
		}
	}
}
