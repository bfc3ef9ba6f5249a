package jsonfile

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/leadetl/leadetl/internal/readahead"
	"github.com/leadetl/leadetl/internal/rows"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// read reads columns of a text in blocks, in batches of rows: a line for each row and reject, and the
// marks between batches.
func read(text string, keys []string, pick []int, block, batch int, from [3]int64) (lines []string, marks [][3]int64, err error) {
	ahead := readahead.New(strings.NewReader(text[from[0]:]), block, 4)
	defer ahead.Close()
	r := NewReader("f", ahead, Header{Keys: keys}, pick)
	if from[0] > 0 {
		r.StartAt(from[0], from[1], from[2])
	}
	order := make([]int, len(pick))
	for i := range order {
		order[i] = i
	}
	for err == nil {
		b := rows.NewBuilder(len(pick), batch)
		err = r.Fill(context.Background(), b, batch)
		got := b.Batch("f", order)
		for i := range got.Len() {
			line := fmt.Sprintf("%d@%d", got.Rows[i], got.Line(i))
			for _, c := range got.Columns {
				if c.IsNull(i) {
					line += " null"
				} else {
					line += fmt.Sprintf(" %q", c.Value(i))
				}
			}
			lines = append(lines, line)
		}
		for _, x := range got.Rejects {
			lines = append(lines, fmt.Sprintf("%d@%d %s %q", x.Row, x.Line, x.Reason, x.Raw))
		}
		got.Release()
		offset, line, row := r.Mark()
		marks = append(marks, [3]int64{offset, line, row})
	}
	if err == io.EOF {
		err = nil
	}
	return lines, marks, err
}

func TestRead(t *testing.T) {
	for _, f := range []struct {
		text string
		want []string
	}{
		{`{"id":1,"email":"a@x.example"}`, []string{`1@1 "1" "a@x.example"`}},
		{"\xef\xbb\xbf{\"email\":\"a\"}\r\n\r\n  \n{\"id\":\"2\"}\n", []string{`1@1 null "a"`, `2@4 "2" null`}},
		{`{"id":null,"email":"\u00e9\n\"\ud834\udd1e","more":[1]}`, []string{"1@1 null \"é\\n\\\"𝄞\""}},
		{`{"id":1.50e3,"email":{"a" : [1, "x y"]}}`, []string{`1@1 "1.50e3" "{\"a\":[1,\"x y\"]}"`}},
		{`{"id":true,"email":""}`, []string{`1@1 "true" ""`}},
		{"bad\n[1]\n7\n{\"id\":1}\n", []string{`4@4 "1" null`, `1@1 bad_json "bad"`, `2@2 bad_json "[1]"`, `3@3 bad_json "7"`}},
		{`{"id":1} {"id":2}`, []string{`1@1 bad_json "{\"id\":1} {\"id\":2}"`}},
		{`{"id":1,"id":2}`, []string{`1@1 bad_json "{\"id\":1,\"id\":2}"`}},
		{`{"id":1,`, []string{`1@1 bad_json "{\"id\":1,"`}},
		{`{"id":"\ud800"}`, []string{`1@1 bad_json "{\"id\":\"\\ud800\"}"`}},
		{`{"id":"\u0000"}`, []string{`1@1 nul_byte "{\"id\":\"\\u0000\"}"`}},
		{"{\"id\":\"\xff\"}", []string{`1@1 invalid_utf8 "{\"id\":\"\xff\"}"`}},
		{"", nil},
	} {
		for _, block := range []int{1, 3, 1 << 10} {
			got, _, err := read(f.text, []string{"id", "email", "more"}, []int{0, 1}, block, 10, [3]int64{})
			if err != nil || !slices.Equal(got, f.want) {
				t.Errorf("%q in blocks of %d: %q, %v, want %q", f.text, block, got, err, f.want)
			}
		}
	}
}

// TestUnknownKey: a key that is no column stops the reading if all columns are read, because it would
// be lost, and is passed over like any other column that is not.
func TestUnknownKey(t *testing.T) {
	const text = "{\"id\":1}\n{\"new\":2}\n"
	_, _, err := read(text, []string{"id"}, []int{0}, 64, 10, [3]int64{})
	if want := "f:2 has a key that none of its first lines has, so it is no column and would be lost. Name the columns that you want with --select, or have a line with all keys first"; err == nil || err.Error() != want {
		t.Errorf("%v\nwant %s", err, want)
	}
	if got, _, err := read(text, []string{"id", "email"}, []int{0}, 64, 10, [3]int64{}); err != nil || len(got) != 2 {
		t.Errorf("%q, %v", got, err)
	}
}

// TestKeysInAnotherCase name the same column, unless a line has both spellings: later than in the
// first lines, it is rejected.
func TestKeysInAnotherCase(t *testing.T) {
	const text = "{\"EMAIL\":\"a\"}\n{\"Email\":\"b\",\"ID\":1}\n{\"email\":\"c\",\"Email\":\"d\"}\n{\"\u212aey\":1}\n"
	got, _, err := read(text, []string{"email", "id", "key"}, []int{0, 2}, 64, 10, [3]int64{})
	want := []string{`1@1 "a" null`, `2@2 "b" null`, `4@4 null "1"`, `3@3 bad_json "{\"email\":\"c\",\"Email\":\"d\"}"`}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v\nwant %q", got, err, want)
	}
	// Two columns that differ in case are those, and a third spelling is neither.
	got, _, err = read("{\"email\":\"a\",\"Email\":\"b\",\"EMAIL\":\"c\"}\n", []string{"email", "Email", "id"}, []int{0, 1}, 64, 10, [3]int64{})
	if want := []string{`1@1 "a" "b"`}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
}

// TestManyKeys: 100,000 distinct keys. Comparing each with each took minutes.
func TestManyKeys(t *testing.T) {
	var text strings.Builder
	for line := range 1000 {
		for i := range 100 {
			fmt.Fprintf(&text, "%c\"key %d\":1", "{,"[min(i, 1)], line*100+i)
		}
		text.WriteString("}\n")
	}
	if h, err := Inspect("f", []byte(text.String()), true); err != nil || len(h.Columns) != 100_000 || h.Columns[99_999] != "key 99999" {
		t.Errorf("%d columns, %v", len(h.Columns), err)
	}
}

func TestLineLimit(t *testing.T) {
	long := `{"id":"` + strings.Repeat("x", LineLimit) + "\"}\n"
	got, _, err := read(long+`{"id":1}`, []string{"id"}, []int{0}, 1<<20, 10, [3]int64{})
	if err != nil || len(got) != 2 || got[0] != `2@2 "1"` || !strings.HasPrefix(got[1], "1@1 record_too_large ") {
		t.Errorf("%d lines, %v", len(got), err)
	}
}

// TestMemoryOfLargeLine: a line of any size takes little more memory than the largest one that is
// read, and the next line is found.
func TestMemoryOfLargeLine(t *testing.T) {
	const size = 5 * LineLimit
	large := io.LimitReader(letters{}, size)
	ahead := readahead.New(io.MultiReader(large, strings.NewReader("\n{\"id\":1}\n")), 1<<20, 4)
	defer ahead.Close()
	r := NewReader("f", ahead, Header{Keys: []string{"id"}}, []int{0})
	b := rows.NewBuilder(1, 10)
	err := r.Fill(context.Background(), b, 10)
	if offset, line, row := r.Mark(); err != io.EOF || b.Len() != 1 || b.Rejects() != 1 || offset != size+int64(len("\n{\"id\":1}\n")) || line != 3 || row != 2 {
		t.Errorf("%d rows, %d rejects, at %d, %d, %d: %v", b.Len(), b.Rejects(), offset, line, row, err)
	}
	if cap(r.buf) > 2*LineLimit {
		t.Errorf("%d bytes of memory", cap(r.buf))
	}
	b.Discard()
}

// letters is a line without an end.
type letters struct{}

func (letters) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

// FuzzRead: neither blocks, batches nor a start at a mark change what is read.
func FuzzRead(f *testing.F) {
	f.Add("{\"a\":1}\n\nbad\n{\"b\":[ 1 ]}\r\n{\"a\":\"\\u0041\",\"c\":null}", 3, 2)
	f.Fuzz(func(t *testing.T, text string, block, batch int) {
		keys, pick := []string{"a", "b", "c"}, []int{2, 0}
		block, batch = 1+max(block, -block)%100, 1+max(batch, -batch)%5
		want, _, err := read(text, keys, pick, 1<<12, 1000, [3]int64{})
		if err != nil {
			t.Fatal(err)
		}
		got, marks, err := read(text, keys, pick, block, batch, [3]int64{})
		if err != nil || !sameLines(got, want) {
			t.Fatalf("%q, %v, want %q", got, err, want)
		}
		for _, m := range marks {
			if m[0] == 0 {
				continue
			}
			rest, _, err := read(text, keys, pick, block, 1000, m)
			if err != nil {
				t.Fatal(err)
			}
			if n := len(rest); n > len(want) || int64(len(want)-n) != m[2] {
				t.Fatalf("from %v: %d lines of %d", m, n, len(want))
			}
			for _, line := range rest {
				if !slices.Contains(want, line) {
					t.Fatalf("from %v: %q is new", m, line)
				}
			}
		}
	})
}

// sameLines compares lines in any order: rejects come behind the rows of their batch.
func sameLines(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

func TestInspect(t *testing.T) {
	for _, f := range []struct {
		text  string
		whole bool
		want  string
	}{
		{"{\"b\":1,\"a\":2}\n{\"c\":{\"d\":1},\" \":2}\n", true, "b a c column_4"},
		{"\xef\xbb\xbf{\"a\":1}\nbad\n{\"b\":1}", true, "a b"},
		{"{\"a\":1}\n{\"b\":1}", false, "a"},
		{"{}\n", true, ""},
		{strings.Repeat("{\"a\":1}\n", HeaderLines) + "{\"b\":1}\n", true, "a"},
		{" \n\n", true, "f is empty: it has no line. Write a JSON object in each line"},
		{"id,email\n1,2\n", true, "f has no JSON object in its first lines. Write a JSON object in each line"},
		{"{\"a\":", false, "f has no JSON object in its first lines. Write a JSON object in each line"},
	} {
		h, err := Inspect("f", []byte(f.text), f.whole)
		got := strings.Join(h.Columns, " ")
		if err != nil {
			got = err.Error()
		}
		if got != f.want {
			t.Errorf("%.40q: %s, want %s", f.text, got, f.want)
		}
	}
}
