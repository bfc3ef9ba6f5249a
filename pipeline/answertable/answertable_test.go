package answertable

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"slices"
	"testing"
	"time"

	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"
	"github.com/apache/arrow/go/v17/parquet"
	"github.com/apache/arrow/go/v17/parquet/pqarrow"

	"github.com/leadetl/leadetl/internal/testkit/memorytest"
	"github.com/leadetl/leadetl/pipeline/answers"
	"github.com/leadetl/leadetl/resolution"
)

// answersOf makes so many answers, with a body that is no text now and then.
func answersOf(n int) iter.Seq2[answers.Item, error] {
	return func(yield func(answers.Item, error) bool) {
		for i := range n {
			q := answers.Question{Scope: answers.Scope{Service: "https://leads.example", Operation: resolution.Enrichment}, Key: fmt.Sprint("key-", i)}
			one := answers.Item{Hash: q.Hash(), Question: q, Answer: answers.Answer{Run: "night", Outcome: answers.Matched, Status: 200, Received: time.UnixMilli(int64(i)).UTC()}}
			switch i % 3 {
			case 1:
				price := int64(i)
				one.Body, one.Credits = []byte(`{"lead":{}}`), &price
			case 2:
				one.Body = []byte("\xff")
			}
			if !yield(one, nil) {
				return
			}
		}
	}
}

// TestWrite: each answer is a row of one of the files, which are as long as asked for.
func TestWrite(t *testing.T) {
	for _, c := range []struct {
		answers int
		rows    int64 // of a file; 0 for one file
		files   []int64
	}{
		{0, 0, []int64{0}},
		{0, 10, []int64{0}},
		{5, 0, []int64{5}},
		{25, 10, []int64{10, 10, 5}},
		{20, 10, []int64{10, 10}},
		{3000, 0, []int64{3000}},
	} {
		t.Run(fmt.Sprint(c.answers, " by ", c.rows), func(t *testing.T) {
			to := memorytest.New()
			written, err := Write(t.Context(), to, func(n int) string { return fmt.Sprint("file-", n) }, c.rows, answersOf(c.answers))
			if err != nil || written != int64(c.answers) {
				t.Fatalf("%d are written, %v", written, err)
			}
			row := 0
			var files []int64
			for n := range len(c.files) {
				text, err := to.Read(t.Context(), fmt.Sprint("file-", n))
				if err != nil {
					t.Fatal(err)
				}
				table, err := pqarrow.ReadTable(t.Context(), bytes.NewReader(text), parquet.NewReaderProperties(nil), pqarrow.ArrowReadProperties{}, memory.DefaultAllocator)
				if err != nil {
					t.Fatal(err)
				}
				files = append(files, table.NumRows())
				rows := array.NewTableReader(table, 0)
				for rows.Next() {
					rec := rows.Record()
					text := func(name string, i int) string {
						return rec.Column(rec.Schema().FieldIndices(name)[0]).ValueStr(i)
					}
					for i := range int(rec.NumRows()) {
						want := [][]string{{array.NullValueStr, array.NullValueStr, array.NullValueStr}, {`{"lead":{}}`, array.NullValueStr, fmt.Sprint(row)}, {array.NullValueStr, "/w==", array.NullValueStr}}[row%3]
						if got := []string{text("body", i), text("body_binary", i), text("credits", i)}; !slices.Equal(got, want) || text("key", i) != fmt.Sprint("key-", row) {
							t.Fatalf("row %d has %q and key %s, want %q", row, got, text("key", i), want)
						}
						row++
					}
				}
				rows.Release()
			}
			if !slices.Equal(files, c.files) || row != c.answers {
				t.Errorf("files of %v rows, want %v", files, c.files)
			}
		})
	}
	broken := errors.New("broken")
	to := memorytest.New()
	if _, err := Write(t.Context(), to, func(int) string { return "file" }, 0, func(yield func(answers.Item, error) bool) {
		answersOf(3)(yield)
		yield(answers.Item{}, broken)
	}); !errors.Is(err, broken) {
		t.Errorf("%v, want the error of the list", err)
	}
	if _, err := to.Read(t.Context(), "file"); err == nil {
		t.Error("a file of what could not be listed is there")
	}
}
