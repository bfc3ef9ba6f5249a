package sources

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
)

// parquetOf is a Parquet file with rows of a column email, 10 in a row group.
func parquetOf(t *testing.T, emails []string) string {
	t.Helper()
	type row struct {
		Email string `parquet:"email"`
	}
	var b bytes.Buffer
	w := parquet.NewGenericWriter[row](&b, parquet.MaxRowsPerRowGroup(10))
	for _, email := range emails {
		if _, err := w.Write([]row{{email}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// readFrom reads rows and rejects from a place on.
func readFrom(t *testing.T, l *List, start *Start) (lines []string, err error) {
	t.Helper()
	open := func() (*Reader, error) { return l.Reader([]string{"email"}) }
	if start != nil {
		open = func() (*Reader, error) { return l.ReaderFrom([]string{"email"}, *start) }
	}
	r, err := open()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	for {
		b, err := r.Next(context.Background(), 0)
		if err == io.EOF {
			return lines, nil
		}
		if err != nil {
			return lines, err
		}
		for i, row := range b.Rows {
			lines = append(lines, fmt.Sprintf("%s:%d:%d %q", b.Source, b.Line(i), row, b.Columns[0].Value(i)))
		}
		for _, x := range b.Rejects {
			lines = append(lines, fmt.Sprintf("%s:%d:%d %s %q", b.Source, x.Line, x.Row, x.Reason, x.Raw))
		}
		b.Release()
	}
}

// TestSurvey reads from every mark of every file, and from every row after it:
// the same rows come, with the same numbers, lines and rejects.
func TestSurvey(t *testing.T) {
	var text strings.Builder
	var emails []string
	text.WriteString("id,email\n")
	for i := range 60 {
		emails = append(emails, fmt.Sprintf("p%d@x.io", i))
		switch i % 7 {
		case 3:
			fmt.Fprintf(&text, "%d,\"a\n%d\"\"@x.io\"\n", i, i) // a row over two lines
		case 5:
			fmt.Fprintf(&text, "%d,c%d@x.io,more\n\n", i, i) // malformed, and an empty line
		case 6:
			fmt.Fprintf(&text, "%d,\"d%d@x.io\"x\n", i, i) // a quote in the wrong place
		default:
			fmt.Fprintf(&text, "%d,b%d@x.io\n", i, i)
		}
	}
	files := map[string]string{"a.csv": text.String(), "b.csv.gz": gz(text.String()), "c.parquet": parquetOf(t, emails), "d.csv": text.String() + "1,2,3\n4\n", "e.csv": "email\nx,y\n", "f.csv": "email\nlast\n"}
	folder(t, files)
	var o3 []string
	for name := range files {
		o3 = append(o3, "s3://lists/"+name)
	}
	_, _, s3 := onS3(t, files)
	for _, o := range []struct {
		uris []string
		Options
		step int64
	}{{[]string{"*.csv", "*.gz", "*.parquet"}, Options{}, 5}, {o3, s3, 60}} {
		o.BatchRows = 4
		l, err := Open(context.Background(), o.uris, o.Options)
		if err != nil {
			t.Fatal(err)
		}
		all, err := readFrom(t, l, nil)
		if err != nil {
			t.Fatal(err)
		}
		checkSurvey(t, l, all, o.step)
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
}

// checkSurvey compares what is read from all places of l with all.
func checkSurvey(t *testing.T, l *List, all []string, step int64) {
	t.Helper()
	rows, rejects := split(all)
	before, bad, marks := 0, 0, map[string]int{}
	for file, f := range l.Files() {
		s, err := l.Survey(context.Background(), file, 100)
		if err != nil {
			t.Fatal(err)
		}
		marks[f.Format] += len(s.Marks)
		for i, m := range append([]Mark{{}}, s.Marks...) {
			for skip := int64(0); skip < s.Rows-m.Rows; skip += step {
				got, err := readFrom(t, l, &Start{File: file, Mark: m, Skip: skip})
				if err != nil {
					t.Fatal(err)
				}
				good, missing := split(got)
				if want := rows[int64(before)+m.Rows+skip:]; !slices.Equal(good, want) {
					t.Fatalf("%s, mark %d, skip %d: %q\nnot %q", f.URI, i, skip, good, want)
				}
				if from := len(rejects) - len(missing); from < bad || !slices.Equal(missing, rejects[from:]) || i == 0 && skip == 0 && from != bad {
					t.Fatalf("%s, mark %d, skip %d: rejects %q of %q", f.URI, i, skip, missing, rejects[bad:])
				}
			}
		}
		before, bad = before+int(s.Rows), bad+int(s.Malformed)
	}
	if before != len(rows) || bad != len(rejects) {
		t.Errorf("%d rows and %d rejects are counted, not %d and %d", before, bad, len(rows), len(rejects))
	}
	if marks[formatCSV] < 10 || marks[formatParquet] < 3 {
		t.Errorf("marks: %v", marks)
	}
}

func split(lines []string) (rows, rejects []string) {
	for _, line := range lines {
		if _, what, _ := strings.Cut(line, " "); strings.HasPrefix(what, `"`) {
			rows = append(rows, line)
		} else {
			rejects = append(rejects, line)
		}
	}
	return rows, rejects
}

func TestSurveyRefuses(t *testing.T) {
	folder(t, map[string]string{"bad.parquet": parquetOf(t, []string{"a", "\xff", "b"})})
	l, err := Open(context.Background(), []string{"-"}, Options{Stdin: strings.NewReader("email\nx\n")})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var format *FormatError
	if _, err := l.Survey(context.Background(), 0, 1); !errors.As(err, &format) || !strings.Contains(err.Error(), "can be read only once") {
		t.Errorf("standard input: %v", err)
	}
	if l, err = Open(context.Background(), []string{"bad.parquet"}, Options{}); err != nil {
		t.Fatal(err)
	}
	if s, err := l.Survey(context.Background(), 0, 1); err != nil || s.Rows != 3 {
		t.Errorf("%+v, %v", s, err)
	}
	if _, err := readFrom(t, l, &Start{}); !errors.As(err, &format) || !strings.Contains(err.Error(), "not UTF-8") {
		t.Errorf("a text that is not UTF-8: %v", err)
	} else if want := "bad.parquet has a text that is not UTF-8, so its rows cannot be counted without reading all of it. Correct it, or read the input in one piece, with leadetl run and without --on"; err.Error() != want {
		t.Errorf("a text that is not UTF-8: %q, want %q", err, want)
	}
	if _, err := readFrom(t, l, nil); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	write(t, "a.csv", "email\nx\n")
	if l, err = Open(context.Background(), []string{"a.csv"}, Options{}); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Survey(ctx, 0, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}
