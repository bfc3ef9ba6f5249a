package columns_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"
	"github.com/apache/arrow/go/v17/parquet"
	"github.com/apache/arrow/go/v17/parquet/file"

	"github.com/leadetl/leadetl/pipeline/columns"
	"github.com/leadetl/leadetl/pipeline/outcome"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/transforms/phone"
)

// TestIdentifiersStayPlain: identifiers, digests and input columns have no dictionary, even
// where all rows are the same, as docs/reference/formats.md says. Phone numbers in columns of their own
// may have one.
func TestIdentifiersStayPlain(t *testing.T) {
	plain := map[string]bool{ // by the path of the leaf: whether some layout has it
		"id": false, "key": false, "resolution_id": false, "lead_id": false, "network_url": false, "email": false,
		"emails.list.element.email": false, "phones.list.element.phone": false, "hashed_emails.list.element.email": false,
		"matched_keywords.list.element": false,
		"hem_md5":                       false, "hem_sha1": false, "hem_sha256": false, "hem_uid2_sha256_base64": false, "hem_google_sha256": false,
		"phone_e164_sha256": false, "phone_digits_sha256": false,
	}
	repeats := []string{"source", "outcome", "answered_by", "city", "phone", "company_domain"} // where a layout has them
	for _, op := range append(slices.Clone(resolution.SingleRecord), resolution.KeywordToLead, resolution.KeywordToLeadCount) {
		for _, settings := range []columns.Settings{
			{},
			{Remote: true},
			{HEMProfiles: everyProfile, PhoneProfiles: []phone.Form{phone.E164, phone.Digits}, Remote: true},
			{HEMTypes: []string{"sha256"}},
			{DropIdentifier: true, Identifier: "email"},
		} {
			settings.Operation, settings.Kept, settings.DefaultRegion = op, []string{"id"}, "US"
			layout, err := columns.NewLayout(settings)
			if err != nil {
				t.Fatal(err)
			}
			f, err := file.OpenParquetFile(written(t, layout, sameRows(300)), false)
			if err != nil {
				t.Fatal(err)
			}
			group := f.MetaData().RowGroup(0)
			for i := range group.NumColumns() {
				chunk, err := group.ColumnChunk(i)
				if err != nil {
					t.Fatal(err)
				}
				name := chunk.PathInSchema().String()
				coded := chunk.HasDictionaryPage() || slices.Contains(chunk.Encodings(), parquet.Encodings.PlainDict) || slices.Contains(chunk.Encodings(), parquet.Encodings.RLEDict)
				_, identifies := plain[name]
				switch {
				case identifies && coded:
					t.Errorf("%s, %+v: %s has a dictionary", op, settings, name)
				case identifies:
					plain[name] = true
				case strings.HasPrefix(name, "hem_"):
					t.Errorf("%s: is %s a digest?", op, name)
				case slices.Contains(repeats, name) && !coded:
					t.Errorf("%s, %+v: %s has no dictionary; nothing is shown", op, settings, name)
				}
			}
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(plain)) {
		if !plain[name] {
			t.Errorf("no layout has %s", name)
		}
	}
}

// sameRows is a batch for any operation, of n rows that are the same.
func sameRows(n int) *columns.Batch {
	b := cellBatch(slices.Repeat([]string{"user@example.com"}, n)...)
	id := array.NewStringBuilder(memory.DefaultAllocator)
	for range n {
		id.Append("A-1")
	}
	b.Kept = []*array.String{id.NewStringArray()}
	b.Answers = answersOf()
	for range n {
		b.Answers.AddFound(&resolution.FoundLead{LeadID: "lead_1", LeadType: "b2c", MatchedKeywords: []string{"crm"}, Lead: *fullLead})
	}
	inTheUS.CleanPhones(b.Answers)
	b.IPClasses, b.Answers.OrgTypes = slices.Repeat([]string{"public"}, n), slices.Repeat([]string{"business"}, n)
	b.Receipts = slices.Repeat([]outcome.Receipt{{ResolutionID: "res_1", ResolvedAt: time.Unix(1, 0), Credits: 1, Priced: true}}, n)
	b.Finds = slices.Repeat([]columns.Find{{SearchRow: 1, Page: 1}}, n)
	b.Counts = slices.Repeat([]*resolution.SearchCount{{Leads: 1}}, n)
	return b
}
