package sources

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// TestSample: a sample is as large as it should be, spread over all files, in
// their order, and the same every time.
func TestSample(t *testing.T) {
	texts := map[string]string{}
	var all []string
	for file := range 4 {
		var text strings.Builder
		text.WriteString("id,email\n")
		for row := range 2500 {
			fmt.Fprintf(&text, "%d,\"x%d\"\n", row, row)
			all = append(all, fmt.Sprintf("%d.csv:%d x%d", file, row+1, row))
		}
		texts[fmt.Sprintf("%d.csv", file)] = text.String()
	}
	folder(t, texts)
	place := map[string]int{}
	for i, row := range all {
		place[row] = i
	}
	read := func(n, batchRows int) []string {
		t.Helper()
		got, err := rowsOf([]string{"?.csv"}, []string{"email"}, Options{Sample: n, BatchRows: batchRows})
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	for _, n := range []int{1, 7, 400, 9999, 10_000, 20_000} {
		got := read(n, 0)
		if want := min(n, len(all)); len(got) != want {
			t.Fatalf("sample of %d has %d rows, want %d", n, len(got), want)
		}
		if !slices.IsSortedFunc(got, func(a, b string) int { return place[a] - place[b] }) {
			t.Errorf("sample of %d is not in order", n)
		}
		if !reflect.DeepEqual(read(n, 3), got) {
			t.Errorf("sample of %d depends on batches", n)
		}
	}
	if !reflect.DeepEqual(read(len(all), 0), all) {
		t.Error("a sample of all rows differs from them")
	}
	counts := [10]int{} // of a thousand rows each
	sample := read(1000, 0)
	for _, row := range sample {
		counts[place[row]/1000]++
	}
	for i, n := range counts {
		if n < 60 || n > 140 { // 100 is expected, with a standard deviation of 9
			t.Errorf("%d rows of the sample are among thousand number %d", n, i)
		}
	}

	// Most of a sample stays when lines are added.
	write(t, "3.csv", texts["3.csv"]+strings.Repeat("0,new\n", 500))
	kept := 0
	for _, row := range read(1000, 0) {
		if slices.Contains(sample, row) {
			kept++
		}
	}
	if kept < 900 {
		t.Errorf("%d of 1000 rows are still in the sample", kept)
	}
}

// TestSampleOfMalformedLines: they are lines like others, and keep their place.
func TestSampleOfMalformedLines(t *testing.T) {
	folder(t, map[string]string{"a.csv": "id,email\n" + strings.Repeat("1,x\n\nmalformed\n", 1000)})
	l, err := Open(t.Context(), []string{"a.csv"}, Options{Sample: 300})
	if err != nil {
		t.Fatal(err)
	}
	r, err := l.Reader([]string{"email"})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	rows, rejects := 0, 0
	for {
		b, err := r.Next(t.Context(), 0)
		if err != nil {
			break
		}
		rows, rejects = rows+b.Len(), rejects+len(b.Rejects)
		for i, row := range b.Rows {
			if b.Line(i) != 2+(row-1)/2*3 {
				t.Errorf("row %d is on line %d", row, b.Line(i))
			}
		}
		for _, reject := range b.Rejects {
			if reject.Line != 4+(reject.Row-2)/2*3 || string(reject.Raw) != "malformed" {
				t.Errorf("%+v", reject)
			}
		}
		b.Release()
	}
	if read, total := r.Position(); rows+rejects != 300 || rejects < 100 || rejects > 200 || read != total {
		t.Errorf("%d rows and %d malformed lines, position %d of %d", rows, rejects, read, total)
	}
}
