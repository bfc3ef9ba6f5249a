package columns_test

import (
	"slices"
	"testing"

	"github.com/apache/arrow/go/v17/arrow/array"

	"github.com/leadetl/leadetl/pipeline/columns"
	"github.com/leadetl/leadetl/pipeline/outcome"
	"github.com/leadetl/leadetl/resolution"
)

// A row of several resolvers says whose its values are; a suppressed one does not.
func TestOrigins(t *testing.T) {
	layout, err := columns.NewLayout(columns.Settings{Operation: resolution.Enrichment, DefaultRegion: "US", Remote: true, Named: true, Want: []string{"email", "phone"}, NotesSkipped: true})
	if err != nil {
		t.Fatal(err)
	}
	b := leadBatch(fullLead, fullLead, nil)
	b.Receipts = []outcome.Receipt{{Priced: true}, {Credits: 2, Priced: true}, {}}
	b.Origins = []columns.Origin{
		{AnsweredBy: "embedded", Wanted: []string{"embedded", "pdl"}, Skipped: "hunter:outage"},
		{AnsweredBy: "pdl", Wanted: []string{"pdl", "pdl"}},
		{Wanted: []string{"", ""}},
	}
	b.Suppress(func(i int) string { return []string{"", "suppressed_answer:email", ""}[i] })
	b = b.Pick([]int{2, 0, 1}).Slice(0, 3)
	rec := layout.NewBuilder().Record(b)
	defer rec.Release()
	for column, want := range map[string][]string{
		"answered_by": {"(null)", "embedded", "(null)"}, "email_answered_by": {"(null)", "embedded", "(null)"}, "phone_answered_by": {"(null)", "pdl", "(null)"},
		"resolvers_skipped": {"(null)", "hunter:outage", "(null)"}, "credits": {"(null)", "0", "2"},
	} {
		var got []string
		values := rec.Column(rec.Schema().FieldIndices(column)[0])
		for i := range values.Len() {
			got = append(got, values.ValueStr(i))
		}
		if dictionary, is := values.(*array.Dictionary); is {
			for i := range got {
				if got[i] = "(null)"; !dictionary.IsNull(i) {
					got[i] = dictionary.Dictionary().ValueStr(dictionary.GetValueIndex(i))
				}
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", column, got, want)
		}
	}
}
