package sources

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
)

// TestJSONLines: by name, packed, from a stream, and with columns that its first lines say.
func TestJSONLines(t *testing.T) {
	const text = "{\"id\":1,\"email\":\"x\"}\n{\"id\":2}\n"
	late := strings.Repeat("{\"id\":1,\"email\":\"x\"}\n", 1000) + "{\"new\":1}\n"
	folder(t, map[string]string{
		"a.jsonl": text, "b.ndjson.gz": gz(text), "C.JSONL.zst": zst(text), "d.csv": "id,email\n3,y\n", "late.jsonl": late,
		"other.json": text, "array.jsonl": "[1,2]\n[3,4]\n", "empty.jsonl": "",
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
		{[]string{"a.jsonl"}, []string{"mail"}, nil, `a.jsonl has no column "mail"; it has: id, email. Did you mean "email"? Choose with --column, --keep and --where`},
		{[]string{"other.json"}, []string{"id"}, nil, "other.json is JSON Lines, but its name does not say so. If it is a list, rename it to end in .jsonl"},
		{[]string{"array.jsonl"}, []string{"id"}, nil, "array.jsonl has no JSON object in its first lines. Write a JSON object in each line"},
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
