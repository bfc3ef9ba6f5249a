package sources

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/leadetl/leadetl/sources/jsonfile"
)

// TestJSONLines: by name, packed, from a stream, and with columns that its first lines say.
func TestJSONLines(t *testing.T) {
	const text = "{\"id\":1,\"email\":\"x\"}\n{\"id\":2}\n"
	late := strings.Repeat("{\"id\":1,\"email\":\"x\"}\n", 1000) + "{\"new\":1}\n"
	folder(t, map[string]string{
		"a.jsonl": text, "b.ndjson.gz": gz(text), "C.JSONL.zst": zst(text), "d.csv": "id,email\n3,y\n", "late.jsonl": late,
		"long.jsonl":           "{\"email\":\"x\",\"note\":\"" + strings.Repeat("n", 3<<20) + "\"}\n{\"email\":\"y\"}\n",
		"late-object.jsonl":    "bad\n{\"note\":\"" + strings.Repeat("n", 3<<20) + "\",\"id\":1}\n",
		"cases.jsonl":          "{\"id\":1,\"Email\":\"x\"}\n{\"ID\":2,\"eMail\":\"y\"}\n",
		"apart.jsonl":          "{\"email\":\"x\"}\n{\"Email\":\"y\",\"email\":\"z\"}\n",
		"lines-of-array.jsonl": "[\n\t{\"id\":1},\n\t{\"id\":2}\n]\n",
		"one-line.jsonl":       "[{\"id\":1},{\"id\":2}]",
		"long-array.jsonl":     "[" + strings.Repeat("{\"id\":1},", 200_000) + "{\"id\":1}]\n",
		"cut-array.jsonl":      "[\n{\"id\":1},\n{\"id\":2}",
		"wrapped.jsonl":        "{\"people\":[\n{\"id\":1},\n{\"id\":2}\n]}\n",
		"pretty.ndjson":        "{\n  \"id\": 1\n}\n{\n  \"id\": 2\n}\n",
		"other.json":           text, "array.jsonl": "[1,2]\n[3,4]\n", "empty.jsonl": "",
	})
	for _, f := range []struct {
		in, columns []string
		want        []string
		err         string
	}{
		{[]string{"a.jsonl", "d.csv"}, []string{"email", "ID"}, []string{"a.jsonl:1 x 1", "a.jsonl:2 null 2", "d.csv:1 y 3"}, ""},
		{[]string{"b.ndjson.gz"}, []string{"email"}, []string{"b.ndjson.gz:1 x", "b.ndjson.gz:2 null"}, ""},
		{[]string{"C.JSONL.zst"}, []string{"id"}, []string{"C.JSONL.zst:1 1", "C.JSONL.zst:2 2"}, ""},
		{[]string{"-"}, []string{"id"}, []string{"-:1 1", "-:2 2"}, ""},
		{[]string{"a.jsonl"}, []string{"mail"}, nil, `a.jsonl has no column "mail"; it has: id, email. Did you mean "email"? Choose with --id-column, --select and --where`},
		{[]string{"other.json"}, []string{"id"}, nil, "other.json is JSON Lines, but its name does not say so. If it is a list, rename it to end in .jsonl"},
		{[]string{"array.jsonl"}, []string{"id"}, nil, "array.jsonl has no JSON object in its first lines. Write a JSON object in each line"},
		{[]string{"long.jsonl"}, []string{"email"}, []string{"long.jsonl:1 x", "long.jsonl:2 y"}, ""},
		{[]string{"late-object.jsonl"}, []string{"id"}, []string{"late-object.jsonl:2 1", "late-object.jsonl:1 bad_json \"bad\""}, ""},
		{[]string{"cases.jsonl"}, []string{"email", "id"}, []string{"cases.jsonl:1 x 1", "cases.jsonl:2 y 2"}, ""},
		{[]string{"apart.jsonl"}, []string{"email", "Email"}, []string{"apart.jsonl:1 x null", "apart.jsonl:2 z y"}, ""},
		{[]string{"lines-of-array.jsonl"}, []string{"id"}, nil, "lines-of-array.jsonl is a JSON array, not JSON Lines. " + jsonfile.OneObjectEach},
		{[]string{"one-line.jsonl"}, []string{"id"}, nil, "one-line.jsonl is a JSON array, not JSON Lines. " + jsonfile.OneObjectEach},
		{[]string{"long-array.jsonl"}, []string{"id"}, nil, "long-array.jsonl is a JSON array, not JSON Lines. " + jsonfile.OneObjectEach},
		{[]string{"cut-array.jsonl"}, []string{"id"}, nil, "cut-array.jsonl is a JSON array, not JSON Lines. " + jsonfile.OneObjectEach},
		{[]string{"wrapped.jsonl"}, []string{"id"}, nil, "wrapped.jsonl is JSON over several lines, not JSON Lines. " + jsonfile.OneObjectEach},
		{[]string{"pretty.ndjson"}, []string{"id"}, nil, "pretty.ndjson is JSON over several lines, not JSON Lines. " + jsonfile.OneObjectEach},
		{[]string{"empty.jsonl"}, []string{"id"}, nil, "empty.jsonl is empty: it has no line. Write a JSON object in each line"},
	} {
		got, err := rowsOf(f.in, f.columns, Options{Stdin: strings.NewReader(text)})
		message := ""
		if err != nil {
			message = err.Error()
		}
		if !slices.Equal(got, f.want) || message != f.err {
			t.Errorf("%q: %q, %q\nwant %q, %q", f.in, got, message, f.want, f.err)
		}
	}
	if got, err := rowsOf([]string{"late.jsonl"}, []string{"id"}, Options{}); err != nil || len(got) != 1001 {
		t.Errorf("%d rows without the other columns, %v", len(got), err)
	}
	var format *FormatError
	if _, err := rowsOf([]string{"late.jsonl"}, []string{"id", "email"}, Options{}); !errors.As(err, &format) || format.Line != 1001 {
		t.Errorf("all columns: %v", err)
	}
}

// TestJSONSurvey: reading can begin at every mark of JSON Lines.
func TestJSONSurvey(t *testing.T) {
	folder(t, map[string]string{"a.jsonl": strings.Repeat("{\"id\":1}\nbad\n\n{\"id\":2}\n", 50)})
	l, err := Open(context.Background(), []string{"a.jsonl"}, Options{BatchRows: 3})
	if err != nil {
		t.Fatal(err)
	}
	s, err := l.Survey(context.Background(), 0, 100)
	if err != nil || s.Rows != 100 || s.Malformed != 50 || len(s.Marks) < 5 {
		t.Fatalf("%+v, %v", s, err)
	}
	for _, mark := range s.Marks {
		r, err := l.ReaderFrom([]string{"id"}, Start{Mark: mark})
		if err != nil {
			t.Fatal(err)
		}
		rows := mark.Rows
		b, err := r.Next(context.Background(), 0)
		for ; err == nil; b, err = r.Next(context.Background(), 0) {
			rows += int64(b.Len())
		}
		r.Close()
		if rows != 100 || err != io.EOF {
			t.Errorf("at %+v: %d rows, %v", mark, rows, err)
		}
	}
}

// TestIndexOfReferenceData: a folder of reference data is no list.
func TestIndexOfReferenceData(t *testing.T) {
	folder(t, map[string]string{"ref/directory.json": "{\n  \"format\": 4\n}\n"})
	if _, err := Open(t.Context(), []string{"ref"}, Options{}); err == nil || !strings.Contains(err.Error(), "is the index of reference data, not a list. Name a list, and the folder with --directory") {
		t.Errorf("it is opened: %v", err)
	}
}
