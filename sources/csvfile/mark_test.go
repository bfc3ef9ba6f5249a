package csvfile

import (
	"context"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"

	"github.com/leadetl/leadetl/internal/readahead"
	"github.com/leadetl/leadetl/internal/rows"
)

// marked is a mark, and what was read before it.
type marked struct {
	mark          Mark
	rows, rejects int
}

// readMarks reads a text, maxRows at a time, and takes a mark after each time.
// With from, it starts there.
func readMarks(t testing.TB, text string, from Mark, maxRows, limit int) (got []string, rejects []string, marks []marked) {
	t.Helper()
	h, err := Inspect(Sample{Name: "a.csv", Bytes: []byte(text), Whole: true}, ',')
	if err != nil {
		return nil, nil, nil
	}
	src := readahead.New(strings.NewReader(text[from.Offset:]), 64, 16)
	defer src.Close()
	pick := make([]int, len(h.Columns))
	for i := range pick {
		pick[i] = i
	}
	r := NewReader("a.csv", src, h, pick)
	if limit > 0 {
		r.limit = limit
	}
	if from.Offset > 0 {
		r.StartAt(from)
	}
	for err == nil {
		b := rows.NewBuilder(len(pick), maxRows)
		err = r.Fill(context.Background(), b, maxRows)
		batch := b.Batch("a.csv", pick)
		for i, row := range batch.Rows {
			line := fmt.Sprintf("%d:%d", batch.Line(i), row)
			for _, c := range batch.Columns {
				line += fmt.Sprintf(" %q", c.Value(i))
			}
			got = append(got, line)
		}
		for _, x := range batch.Rejects {
			rejects = append(rejects, fmt.Sprintf("%d:%d %s %q", x.Line, x.Row, x.Reason, x.Raw))
		}
		batch.Release()
		if err == nil {
			marks = append(marks, marked{r.Mark(), len(got), len(rejects)})
		}
	}
	if err != io.EOF && len(marks) > 0 { // else the header is longer than the limit
		t.Fatalf("%q: %v", text, err)
	}
	return got, rejects, marks
}

// checkMarks: what is read from a mark on is what is read there from the start.
func checkMarks(t testing.TB, text string, maxRows, limit int) {
	t.Helper()
	all, rejects, marks := readMarks(t, text, Mark{}, maxRows, limit)
	for _, m := range marks {
		if m.mark.Offset == 0 {
			t.Fatalf("%q: a mark at the start: %+v", text, m.mark)
		}
		got, bad, _ := readMarks(t, text, m.mark, maxRows, limit)
		if !reflect.DeepEqual(append([]string{}, got...), append([]string{}, all[m.rows:]...)) ||
			!reflect.DeepEqual(append([]string{}, bad...), append([]string{}, rejects[m.rejects:]...)) {
			t.Fatalf("%q from %+v:\n%q %q\nnot\n%q %q", text, m.mark, got, bad, all[m.rows:], rejects[m.rejects:])
		}
	}
}

func TestMarks(t *testing.T) {
	for _, text := range []string{
		"a,b\n1,2\n3,4\n5,6\n",
		"a,b\n1,\"x\ny\"\n\n3,\"4\n,\n,\"\r\n5,6",
		"a,b\n1,\"2\n3,4\n5,6\n7,8\n",                     // a quote that never ends: lines are read one by one
		"a,b\n1,2\n\"x\"y,\"\n1,2\n\"3\n\",4\n5,6\n7,8\n", // a quote in the wrong place, before a field over two lines
		"a,b\n1\n2\n3,4\n5\n6,\xff\n7,8\n\x00,1\n",
		"sep=,\na,b\n\n1,2\n\n\n3,4\n",
	} {
		for maxRows := 1; maxRows < 4; maxRows++ {
			checkMarks(t, text, maxRows, 0)
			checkMarks(t, text, maxRows, 8)
		}
	}
}

// FuzzMarks reads any text from each of its marks.
func FuzzMarks(f *testing.F) {
	for _, seed := range []string{"a,b\n1,\"2\n3,4\n5,\"6\"\n", "a\n\"\"\n\x00\n\xff\n1\n2\n", "a,b\n\"1\"x,2\nx\",\"y\n1,2\n\"\n\",1"} {
		f.Add(seed, uint8(1), uint8(0))
		f.Add(seed, uint8(2), uint8(9))
	}
	f.Fuzz(func(t *testing.T, text string, maxRows, limit uint8) {
		if limit > 0 && limit < 8 {
			return // less than a header
		}
		checkMarks(t, text, int(max(maxRows, 1)), int(limit))
	})
}
