package lines

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"math"
	"slices"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"

	"github.com/leadetl/leadetl/sinks/schema"
)

// value makes an array of one value from its JSON.
func value(t testing.TB, kind arrow.DataType, text string) arrow.Array {
	t.Helper()
	a, _, err := array.FromJSON(memory.DefaultAllocator, kind, bytes.NewReader([]byte("["+text+"]")))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestValues(t *testing.T) {
	text, whole := arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int64
	for _, c := range []struct {
		kind            arrow.DataType
		value, csv, out string // out is of JSON
	}{
		{text, `"Oslo"`, `Oslo`, `"Oslo"`},
		{text, `null`, ``, `null`},
		{text, `""`, `""`, `""`},
		{text, `"a,b"`, `"a,b"`, `"a,b"`},
		{text, `"say \"x\""`, `"say ""x"""`, `"say \"x\""`},
		{text, `"a\nb\r"`, "\"a\nb\r\"", `"a\nb\r"`},
		{text, `" a;b "`, ` a;b `, `" a;b "`},
		{text, `"日本 <&>"`, `日本 <&>`, `"日本 <&>"`},
		{whole, `-9223372036854775808`, `-9223372036854775808`, `-9223372036854775808`},
		{arrow.PrimitiveTypes.Int32, `7`, `7`, `7`},
		{arrow.FixedWidthTypes.Boolean, `true`, `true`, `true`},
		{arrow.PrimitiveTypes.Float64, `0.25`, `0.25`, `0.25`},
		{arrow.PrimitiveTypes.Float64, `1e300`, `1e+300`, `1e+300`},
		{arrow.FixedWidthTypes.Date32, `"2026-11-29"`, `2026-11-29`, `"2026-11-29"`},
		{schema.Instant, `"2026-11-29T01:02:03.000400Z"`, `2026-11-29T01:02:03.0004Z`, `"2026-11-29T01:02:03.0004Z"`},
		{schema.Instant, `"2026-11-29T01:02:03Z"`, `2026-11-29T01:02:03Z`, `"2026-11-29T01:02:03Z"`},
		{schema.Words, `["a","b c"]`, `a;b c`, `["a","b c"]`},
		{schema.Words, `["a,b","c"]`, `"a,b;c"`, `["a,b","c"]`},
		{schema.Words, `["a;b","c"]`, `"[""a;b"",""c""]"`, `["a;b","c"]`},
		{schema.Words, `["[a","c"]`, `"[""[a"",""c""]"`, `["[a","c"]`},
		{schema.Words, `["a","[c"]`, `a;[c`, `["a","[c"]`},
		{schema.Words, `["a",null]`, `"[""a"",null]"`, `["a",null]`},
		{schema.Words, `["a",""]`, `"[""a"",""""]"`, `["a",""]`},
		{schema.Words, `[""]`, `"[""""]"`, `[""]`},
		{schema.Words, `[]`, `[]`, `[]`},
		{schema.Words, `null`, ``, `null`},
		{schema.Emails, `[{"email":"a@x.example","type":null}]`, `"[{""email"":""a@x.example"",""type"":null}]"`, `[{"email":"a@x.example","type":null}]`},
		{schema.Emails, `[]`, `[]`, `[]`},
	} {
		arrays := []arrow.Array{value(t, c.kind, c.value), value(t, whole, "1")}
		names := []string{"c", "n"}
		asCSV, asJSON := NewCSV(names), NewJSON(names)
		if got, want := string(asCSV.Append(asCSV.Header, arrays, 1)), "c,n\n"+c.csv+",1\n"; got != want {
			t.Errorf("%s %s as CSV: %q, want %q", c.kind, c.value, got, want)
		}
		if got, want := string(asJSON.Append(nil, arrays, 1)), `{"c":`+c.out+`,"n":1}`+"\n"; got != want {
			t.Errorf("%s %s as JSON: %q, want %q", c.kind, c.value, got, want)
		}
	}
	names := []string{"a,b", `"`}
	if got := string(NewCSV(names).Header); got != `"a,b",""""`+"\n" {
		t.Errorf("header %q", got)
	}
	for alone, want := range map[string]string{`null`: `""`, `"a"`: `a`, `"\\."`: `"\."`} {
		if got := string(NewCSV(names[:1]).Append(nil, []arrow.Array{value(t, text, alone)}, 1)); got != want+"\n" {
			t.Errorf("%s alone is %q, want %s", alone, got, want)
		}
	}
	nan := array.NewFloat64Builder(memory.DefaultAllocator)
	nan.Append(math.NaN())
	if got := string(AppendJSON(nil, nan.NewArray(), 0)); got != "null" {
		t.Errorf("NaN is %q", got)
	}
}

// FuzzLines: any texts are read back from CSV and from JSON.
func FuzzLines(f *testing.F) {
	for _, s := range []string{"", "a", "\"", "a,b", "\r\n", ";", "[", "\x80", "\u2028"} {
		f.Add(s, "b")
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		builder := array.NewStringBuilder(memory.DefaultAllocator)
		builder.Append(a)
		list := array.NewListBuilder(memory.DefaultAllocator, arrow.BinaryTypes.String)
		list.Append(true)
		for _, s := range []string{a, b} {
			list.ValueBuilder().(*array.StringBuilder).Append(s)
		}
		arrays := []arrow.Array{builder.NewArray(), list.NewArray()}
		names := []string{"a", "list"}
		var object struct {
			A    string
			List []string
		}
		text := func(s string) string { return string(bytes.ToValidUTF8([]byte(s), []byte("\ufffd"))) }
		if err := json.Unmarshal(NewJSON(names).Append(nil, arrays, 1), &object); err != nil || len(object.List) != 2 || text(object.A) != object.A {
			t.Fatalf("%v %+v", err, object)
		}
		row, err := csv.NewReader(bytes.NewReader(NewCSV(names).Append(nil, arrays, 1))).ReadAll()
		if err != nil || len(row) != 1 || row[0][0] != string(bytes.ReplaceAll([]byte(a), []byte("\r\n"), []byte("\n"))) { // Go's reader changes it
			t.Fatalf("%v %q, want %q", err, row, a)
		}
		if cell := row[0][1]; cell[0] == '[' {
			var members []string
			if err := json.Unmarshal([]byte(cell), &members); err != nil || len(members) != 2 {
				t.Fatalf("%v %q", err, cell)
			}
		} else if parts := bytes.Split([]byte(cell), []byte(";")); len(parts) != 2 || slices.ContainsFunc(parts, func(p []byte) bool { return len(p) == 0 }) {
			t.Fatalf("%q", cell)
		}
	})
}
