package verify

import (
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"
	"go.uber.org/goleak"

	"github.com/leadetl/leadetl/sinks"
	"github.com/leadetl/leadetl/sinks/schema"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// column is a column of test rows, with the form that Rules would say.
func column(name string, t arrow.DataType, nullable bool, form string) sinks.Column {
	c := schema.New(name, t, nullable)
	c.Meaning.Form = form
	return c
}

func repeating(c sinks.Column) sinks.Column      { c.Repeats = true; return c }
func withStatistics(c sinks.Column) sinks.Column { c.Statistics = true; return c }

var (
	text     = arrow.BinaryTypes.String
	number   = arrow.PrimitiveTypes.Int64
	testRows = []sinks.Column{
		column("id", text, true, ""),
		column("source", text, false, "text, never empty"),
		withStatistics(column("source_row", number, false, "from 1")),
		column("key", text, true, "text, never empty"),
		repeating(column("outcome", text, false, "one of: matched no_match rejected failed suppressed skipped")),
		column("reason", text, true, ""),
		column("answered_by", text, true, "one of: service embedded"),
		withStatistics(column("credits", arrow.PrimitiveTypes.Int32, true, "from 0")),
		column("hem_md5", text, true, "md5 in hex"),
		column("hem_sha1", text, true, "sha1 in hex"),
		column("hem_sha256", text, true, "sha256 in hex"),
		column("hem_uid2_sha256_base64", text, true, "sha256 in base64"),
		column("phone", text, true, "E.164"),
		column("phone_e164_sha256", text, true, "sha256 in hex"),
		column("phone_digits_sha256", text, true, "sha256 in hex"),
		column("phone_raw", text, true, ""),
		column("phone_region", text, true, "region"),
		column("phone_valid", arrow.FixedWidthTypes.Boolean, true, ""),
		column("company_revenue_min", number, true, "from 0"),
		column("company_revenue_max", number, true, "from 0"),
		withStatistics(column("confidence", arrow.PrimitiveTypes.Float64, true, "from 0 to 1")),
		column("words", arrow.ListOf(text), true, ""),
	}
)

func hexOf(sum []byte) string { return hex.EncodeToString(sum) }

// row is a good row, by column.
func row(i int) map[string]any {
	key := fmt.Sprintf("person.%d@x.example", i)
	m, s1, s256 := md5.Sum([]byte(key)), sha1.Sum([]byte(key)), sha256.Sum256([]byte(key))
	e164, digits := sha256.Sum256([]byte("+14155550123")), sha256.Sum256([]byte("14155550123"))
	return map[string]any{
		"id": fmt.Sprintf("%03d", i), "source": "a.csv", "source_row": int64(i), "key": key, "outcome": "matched",
		"answered_by": "embedded", "credits": int32(0), "hem_md5": hexOf(m[:]), "hem_sha1": hexOf(s1[:]), "hem_sha256": hexOf(s256[:]),
		"hem_uid2_sha256_base64": base64.StdEncoding.EncodeToString(s256[:]),
		"phone":                  "+14155550123", "phone_e164_sha256": hexOf(e164[:]), "phone_digits_sha256": hexOf(digits[:]), "phone_raw": "(415) 555-0123", "phone_region": "US", "phone_valid": true,
		"company_revenue_min": int64(1), "company_revenue_max": int64(1), "confidence": 1.0,
		"words": []string{"a", "b"},
	}
}

// write makes a dataset of one part. The manifest counts what the rows say.
func write(t testing.TB, rows []map[string]any, leaveOut ...string) string {
	t.Helper()
	columns := slices.DeleteFunc(slices.Clone(testRows), func(c sinks.Column) bool { return slices.Contains(leaveOut, c.Name) })
	return writeDataset(t, columns, rows, func(*sinks.Dataset, *sinks.Part) {})
}

// recordOf makes a record of rows.
func recordOf(columns []sinks.Column, rows []map[string]any) arrow.Record {
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema.Arrow(columns))
	defer b.Release()
	for _, r := range rows {
		for i, f := range columns {
			appendValue(b.Field(i), r[f.Name])
		}
	}
	return b.NewRecord()
}

// writeDataset makes a dataset of one part, to which more adds files and counts.
func writeDataset(t testing.TB, columns []sinks.Column, rows []map[string]any, more func(*sinks.Dataset, *sinks.Part)) string {
	t.Helper()
	m := &sinks.Manifest{Format: sinks.ManifestFormat, Operation: "test", SchemaVersion: 1, RulesVersion: 1, Schema: columns, Job: json.RawMessage(`{"input_columns":["id"]}`)}
	totals := sinks.Totals{Rows: int64(len(rows))}
	counts := map[any]*int64{"matched": &totals.Matched, "no_match": &totals.NoMatch, "rejected": &totals.Rejected, "suppressed": &totals.Suppressed, "failed": &totals.Failed}
	for _, r := range rows {
		if n := counts[r["outcome"]]; n != nil {
			*n++
		} else {
			totals.Matched++
		}
		if reason, _ := r["reason"].(string); r["outcome"] != "matched" && counts[r["outcome"]] != nil {
			totals.CountReason(r["outcome"].(string), reason, 1)
		}
	}
	rec := recordOf(columns, rows)
	defer rec.Release()
	dir := filepath.Join(t.TempDir(), "out")
	d, err := sinks.Open(t.Context(), dir, sinks.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	w, err := d.PartFiles(0, sinks.Table{Columns: m.Schema, Compression: sinks.Snappy, Metadata: map[string]string{
		"leadetl.operation": "test", "leadetl.schema_version": "1", "leadetl.rules_version": "1",
	}}, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write("", rec); err != nil {
		t.Fatal(err)
	}
	f, _, err := w.Commit()
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Sum(t.Context(), []*sinks.File{&f}); err != nil {
		t.Fatal(err)
	}
	p := sinks.Part{File: f, Totals: totals}
	more(d, &p)
	m.Parts, m.Totals = []sinks.Part{p}, p.Totals
	if err := d.Publish(m); err != nil {
		t.Fatal(err)
	}
	return dir
}

func appendValue(b array.Builder, v any) {
	switch b := b.(type) {
	case *array.StringBuilder:
		if s, ok := v.(string); ok {
			b.Append(s)
			return
		}
	case *array.Int64Builder:
		if n, ok := v.(int64); ok {
			b.Append(n)
			return
		}
	case *array.Int32Builder:
		if n, ok := v.(int32); ok {
			b.Append(n)
			return
		}
	case *array.BooleanBuilder:
		if is, ok := v.(bool); ok {
			b.Append(is)
			return
		}
	case *array.ListBuilder:
		if words, ok := v.([]string); ok {
			b.Append(true)
			for _, word := range words {
				appendValue(b.ValueBuilder(), word)
			}
			return
		}
	case *array.Float64Builder:
		if f, ok := v.(float64); ok {
			b.Append(f)
			return
		}
	}
	b.AppendNull()
}

func testRules(several bool) Options {
	rules := Rules{Own: testRows[1:], HashesKey: true, SeveralRows: several}
	return Options{Workers: 2, Rules: func(*sinks.Manifest) (Rules, bool) { return rules, true }}
}

// TestRules changes one row of three, and looks for what is then wrong.
func TestRules(t *testing.T) {
	type change = map[string]any
	rejected := change{"outcome": "rejected", "reason": "empty", "key": nil, "answered_by": nil, "credits": nil, "hem_md5": nil, "hem_sha1": nil, "hem_sha256": nil}
	suppressed := change{"outcome": "suppressed", "reason": "list"}
	for _, c := range testRows {
		if c.Nullable && !ofSuppressed[c.Name] {
			suppressed[c.Name] = nil
		}
	}
	with := func(base, more change) change {
		all := change{}
		for _, c := range []change{base, more} {
			for k, v := range c {
				all[k] = v
			}
		}
		return all
	}
	for _, c := range []struct {
		name   string
		change change
		want   string // column and problem; empty when all is well
	}{
		{"nothing", nil, ""},
		{"rejected", rejected, ""},
		{"suppressed", suppressed, ""},
		{"suppressed, with an input column", with(suppressed, change{"id": "7"}), "column id, row 2: a suppressed row has no value here"},
		{"suppressed, with a key", with(suppressed, change{"key": "x"}), "column key, row 2: a suppressed row has no value here"},
		{"suppressed, with a hash", with(suppressed, change{"hem_md5": strings.Repeat("0", 32)}), "column hem_md5, row 2: a suppressed row has no value here"},
		{"suppressed, with a phone", with(suppressed, change{"phone_raw": "1"}), "column phone_raw, row 2: a suppressed row has no value here"},
		{"an unknown outcome", change{"outcome": "lost"}, "column outcome, row 2: it is not one of: matched"},
		{"matched with a reason", change{"reason": "why"}, "column reason, row 2: a matched row has no reason"},
		{"no match without a reason", change{"outcome": "no_match"}, "column reason, row 2: a row that is not matched needs a reason"},
		{"rejected with a key", with(rejected, change{"key": "x"}), "column key, row 2: a rejected row has no key"},
		{"matched without a key", change{"key": nil}, "column key, row 2: the key is missing; only rejected rows have none"},
		{"an empty key", change{"key": ""}, "column key, row 2: it is not text, never empty"},
		{"a row again", change{"source_row": int64(1)}, "column source_row, row 2: rows are not in the order of the input"},
		{"row 0", change{"source_row": int64(0)}, "column source_row, row 2: it is not a number from 1"},
		{"no service answered", change{"answered_by": nil, "credits": nil}, "column answered_by, row 2: a matched row needs to say who answered"},
		{"a price without an answer", with(rejected, change{"credits": int32(1)}), "column credits, row 2: a row without an answer has a price"},
		{"a refund", change{"credits": int32(-1)}, "column credits, row 2: it is not a number from 0"},
		{"another's hash", change{"hem_md5": strings.Repeat("0", 32)}, "column hem_md5, row 2: not the hash of the key"},
		{"no hash", change{"hem_sha1": nil}, "column hem_sha1, row 2: not the hash of the key"},
		{"a hash in capitals", change{"hem_sha256": strings.Repeat("A", 64)}, "column hem_sha256, row 2: it is not sha256 in hex"},
		{"a hash that is short", change{"hem_sha256": "abc"}, "column hem_sha256, row 2: it is not sha256 in hex"},
		{"a key that is a hash", change{"key": strings.Repeat("a", 40), "hem_md5": nil, "hem_sha1": strings.Repeat("a", 40), "hem_sha256": nil}, ""},
		{"a key that is a hash, and none", change{"key": strings.Repeat("a", 40), "hem_md5": nil, "hem_sha1": nil, "hem_sha256": nil}, "column hem_sha1, row 2: the hash is missing; the key is one of this kind"},
		{"a hash without a key", with(rejected, change{"hem_md5": strings.Repeat("0", 32)}), "column hem_md5, row 2: a row without a key has a hash"},
		{"hex where base64 should be", change{"hem_uid2_sha256_base64": strings.Repeat("a", 64)}, "column hem_uid2_sha256_base64, row 2: it is not sha256 in base64"},
		{"another's hashed phone", change{"phone_e164_sha256": strings.Repeat("0", 64)}, "column phone_e164_sha256, row 2: not the hash of the phone"},
		{"the hash of another form", change{"phone_digits_sha256": row(2)["phone_e164_sha256"]}, "column phone_digits_sha256, row 2: not the hash of the phone"},
		{"no hash of a phone", change{"phone_digits_sha256": nil}, "column phone_digits_sha256, row 2: not the hash of the phone"},
		{"a hash of no phone", change{"phone": nil, "phone_valid": nil, "phone_digits_sha256": nil}, "column phone_e164_sha256, row 2: a row without a phone has a hash of one"},
		{"a phone as dialled", change{"phone": "0415 555 0123"}, "column phone, row 2: it is not E.164"},
		{"a phone out of nothing", change{"phone_raw": nil}, "column phone, row 2: phone_raw is missing"},
		{"a phone without a verdict", change{"phone_valid": nil}, "column phone_valid, row 2: exactly the rows with a phone have a value"},
		{"a judgement of no phone", change{"phone": nil, "phone_e164_sha256": nil, "phone_digits_sha256": nil}, "column phone_valid, row 2: exactly the rows with a phone have a value"},
		{"a region in words", change{"phone_region": "usa"}, "column phone_region, row 2: it is not region"},
		{"a range upside down", change{"company_revenue_min": int64(2)}, "column company_revenue_min, row 2: it is larger than company_revenue_max"},
		{"half a range", change{"company_revenue_max": nil}, ""},
		{"surer than sure", change{"confidence": 1.5}, "column confidence, row 2: it is not a number from 0 to 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			rows := []map[string]any{row(1), row(2), row(3)}
			for name, value := range c.change {
				rows[1][name] = value
			}
			requireFound(t, write(t, rows), testRules(false), c.want)
		})
	}
}

func open(t testing.TB, dir string) *sinks.Reader {
	t.Helper()
	r, err := sinks.OpenReader(t.Context(), dir, sinks.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func requireFound(t *testing.T, dir string, o Options, want string) {
	t.Helper()
	r, err := Check(t.Context(), open(t, dir), o)
	if err != nil {
		t.Fatal(err)
	}
	found := fmt.Sprint(r.Failures)
	if want == "" && !r.Whole() || !strings.Contains(found, want) || strings.Contains(found, "@") {
		t.Errorf("found %s, want %q", found, want)
	}
}

func TestRulesWithoutKeys(t *testing.T) {
	rows := []map[string]any{row(1), row(2)}
	requireFound(t, write(t, rows, "key"), testRules(false), "")
	for _, d := range digestColumns {
		rows[1][d.name] = nil
	}
	requireFound(t, write(t, rows, "key"), testRules(false), "column hem_sha256, row 2: a matched row needs at least one hash")
}

// TestSeveralRowsOfAnInputRow: a search has a row for each of its leads.
func TestSeveralRowsOfAnInputRow(t *testing.T) {
	rows := []map[string]any{row(1), row(1), row(2), row(1)}
	rows[3]["source"] = "b.csv"
	requireFound(t, write(t, rows), testRules(true), "")
	requireFound(t, write(t, rows), testRules(false), "column source_row, row 2: rows are not in the order of the input")
}

// TestProblemsOfManyRows are one failure, with the first row and how many.
func TestProblemsOfManyRows(t *testing.T) {
	var rows []map[string]any
	for i := range 100 {
		rows = append(rows, row(i+1))
		if i > 9 {
			rows[i]["confidence"] = 2.0
		}
	}
	requireFound(t, write(t, rows), testRules(false), "column confidence, row 11: it is not a number from 0 to 1 (and 89 more rows of the row group)")
}

// However many columns are read at a time, the result is the same.
func TestAnyWorkers(t *testing.T) {
	var rows []map[string]any
	for i := range 300 {
		r := row(i + 1)
		switch i % 5 {
		case 1:
			r["confidence"], r["hem_sha1"], r["phone_region"] = 2.0, "x", "us"
		case 2:
			r["outcome"], r["reason"] = "suppressed", "suppressed"
		case 3:
			r["company_revenue_min"], r["id"] = int64(5), nil
		}
		rows = append(rows, r)
	}
	dir, o := write(t, rows), testRules(false)
	o.Workers = 1
	want, err := Check(t.Context(), open(t, dir), o)
	if err != nil || len(want.Failures) < 8 {
		t.Fatal(err, want.Failures)
	}
	for workers := 2; workers <= 9; workers++ {
		o.Workers = workers
		got, err := Check(t.Context(), open(t, dir), o)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%d workers: %v\n%v\nwant\n%v", workers, err, got, want)
		}
	}
}

// TestFacts: what warehouses are told of a dataset comes from its values.
func TestFacts(t *testing.T) {
	rows := []map[string]any{row(1), row(2), row(3)}
	rows[0]["id"], rows[1]["id"] = nil, strings.Repeat("ü", 70_000)
	r, err := Check(t.Context(), open(t, write(t, rows)), testRules(false))
	if err != nil || !r.Whole() {
		t.Fatal(err, r.Failures)
	}
	if got := r.Columns[0]; got.Name != "id" || got.Nulls != 1 || got.Longest != 140_000 {
		t.Errorf("%+v", got)
	}
	if r.Rows != 3 || r.Files != 1 || len(r.Columns) != len(testRows) {
		t.Errorf("%d rows, %d files, %d columns", r.Rows, r.Files, len(r.Columns))
	}
}
