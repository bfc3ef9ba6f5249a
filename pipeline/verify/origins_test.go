package verify

import (
	"maps"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"

	"github.com/leadetl/leadetl/sinks"
)

var (
	originRows = []sinks.Column{
		column("source", text, false, "text, never empty"), withStatistics(column("source_row", number, false, "from 1")), column("key", text, true, "text, never empty"),
		repeating(column("outcome", text, false, "")), column("reason", text, true, ""), column("answered_by", text, true, ""),
		withStatistics(column("credits", arrow.PrimitiveTypes.Int32, true, "from 0")), column("email_answered_by", text, true, ""), column("resolvers_skipped", text, true, ""),
	}
	askedRows = []sinks.Column{
		column("key", text, true, ""), repeating(column("resolver", text, false, "")), repeating(column("outcome", text, false, "")), column("reason", text, true, ""),
		column("credits", arrow.PrimitiveTypes.Int32, true, ""), column("max_credits_open", number, true, ""), column("request_id", text, true, ""),
	}
)

// TestOrigins changes one row of three, or one answer of five, and looks for what is then wrong.
func TestOrigins(t *testing.T) {
	type change = map[string]any
	for _, c := range []struct {
		name       string
		row, asked int // which is changed, from 1
		change     change
		want       string
	}{
		{"nothing", 0, 0, nil, ""},
		{"another answered", 1, 0, change{"answered_by": "clearbit"}, "column answered_by, row 1: the resolver has no match for the key in _asked"},
		{"a value of one without a match", 2, 0, change{"email_answered_by": "pdl"}, "column email_answered_by, row 2: the resolver has no match for the key in _asked"},
		{"a match that was none", 0, 2, change{"outcome": "no_match", "reason": "no_match"}, "column email_answered_by, row 1: the resolver has no match"},
		{"a row that lacks what is wanted", 1, 0, change{"email_answered_by": nil}, "0 rows have all that is wanted, and the manifest says 1"},
		{"a price too high", 1, 0, change{"credits": int32(4)}, "column credits, row 1: it is not the sum of the answers in _asked"},
		{"no price", 1, 0, change{"credits": nil}, "column credits, row 1: it is not the sum"},
		{"a price of an answer without one", 0, 1, change{"credits": nil}, "column credits, row 1: it is not the sum"},
		{"an unknown call of another", 3, 0, change{"reason": "unknown_call:hunter"}, "column reason, row 3: the unknown call is not in _asked"},
		{"a resolver that is asked later", 1, 0, change{"resolvers_skipped": "pdl:unavailable"}, "column resolver: the counts by resolver differ from the manifest"},
		{"a row that hides an unknown call", 2, 0, change{"resolvers_skipped": nil}, "column outcome, row 2: the key has an unknown call in _asked"},
		{"an answer to an open call", 0, 5, change{"credits": int32(1)}, "column max_credits_open, row 5: an open call has no answer"},
		{"a key of no row", 0, 3, change{"key": "z"}, "column key: 1 keys are of no row of the part"},
		{"an answer without a key", 0, 3, change{"key": nil}, "column key, row 3: the key is missing, and no row of the part is suppressed"},
		{"a call of a suppressed key", 0, 3, change{"key": nil, "request_id": "r"}, "column key, row 3: the key is missing"},
		{"an answer of another", 0, 3, change{"resolver": "clearbit"}, "column resolver: the counts by resolver differ from the manifest"},
	} {
		t.Run(c.name, func(t *testing.T) {
			rows := []map[string]any{
				{"source": "a.csv", "source_row": int64(1), "key": "a", "outcome": "matched", "answered_by": "pdl", "email_answered_by": "hunter", "credits": int32(3)},
				{"source": "a.csv", "source_row": int64(2), "key": "b", "outcome": "no_match", "reason": "no_match", "credits": int32(1), "resolvers_skipped": "hunter:unknown_call"},
				{"source": "a.csv", "source_row": int64(3), "key": "c", "outcome": "failed", "reason": "unknown_call:pdl"},
			}
			asked := []map[string]any{
				{"key": "a", "resolver": "pdl", "outcome": "matched", "credits": int32(1)},
				{"key": "a", "resolver": "hunter", "outcome": "matched", "credits": int32(2)},
				{"key": "b", "resolver": "pdl", "outcome": "no_match", "reason": "no_match", "credits": int32(1)},
				{"key": "b", "resolver": "hunter", "outcome": "failed", "reason": "unknown_call", "max_credits_open": int64(9)},
				{"key": "c", "resolver": "pdl", "outcome": "failed", "reason": "unknown_call", "max_credits_open": int64(9)},
			}
			if c.row > 0 {
				maps.Copy(rows[c.row-1], c.change)
			}
			if c.asked > 0 {
				maps.Copy(asked[c.asked-1], c.change)
			}
			dir := writeDataset(t, originRows, rows, func(d *sinks.Dataset, p *sinks.Part) {
				w, err := d.Beside(sinks.AskedFolder)(0, sinks.Table{Columns: askedRows, Compression: sinks.Snappy})
				if err != nil {
					t.Fatal(err)
				}
				rec := recordOf(askedRows, asked)
				defer rec.Release()
				if err := w.Write(rec); err != nil {
					t.Fatal(err)
				}
				f, err := w.Commit()
				if err != nil {
					t.Fatal(err)
				}
				if err := d.Sum(t.Context(), []*sinks.File{&f}); err != nil {
					t.Fatal(err)
				}
				p.Asked, p.Totals.Complete = &f, 1
				p.Totals.Resolvers = map[string]sinks.ResolverTotals{"pdl": {Asked: 3, Matched: 1, Credits: 2}, "hunter": {Asked: 2, Matched: 1, Credits: 2, Added: 1, Unknown: 1}}
			})
			o := Options{Workers: 2, Rules: func(*sinks.Manifest) (Rules, bool) { return Rules{Own: originRows, Asked: askedRows}, true }}
			requireFound(t, dir, o, c.want)
		})
	}
}
