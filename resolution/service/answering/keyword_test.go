package answering

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/leadetl/leadetl/resolution"
)

// TestWorkSurvives: what a job is to do is read back as it was written.
func TestWorkSurvives(t *testing.T) {
	asked := work{
		Search: resolution.KeywordSearch{
			Keywords: []string{"a", "b"}, Cities: []string{"c"}, States: []string{"CA"}, Zips: []string{"94105"}, LeadType: "b2b",
			Start: time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC), End: time.Date(2026, 11, 2, 0, 0, 0, 0, time.UTC),
			JobTitleInclusions: []string{"x"}, JobTitleExclusions: []string{"y"}, Edition: "e",
		},
		Page: resolution.SearchPage{Number: 2, Limit: 3, HEMs: 4, Deanonymize: true, SuperEnrichment: true},
		Unit: 3,
	}
	text, err := json.Marshal(asked)
	if err != nil {
		t.Fatal(err)
	}
	var read work
	if err := json.Unmarshal(text, &read); err != nil || !reflect.DeepEqual(read, asked) {
		t.Errorf("%+v, %v", read, err)
	}
}
