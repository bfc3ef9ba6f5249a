package csvfile

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/leadetl/leadetl/internal/readahead"
	"github.com/leadetl/leadetl/internal/rows"
)

// manner is how a text is read; none of it may show in the result, except
// limit and maxRows.
type manner struct {
	block, head int
	limit       int
	maxRows     int
	wrap        func(io.Reader) io.Reader
}

// manners are blocks that end anywhere, with and without room in front.
var manners = []manner{
	{block: 1, head: 0}, {block: 1, head: 64}, {block: 2, head: 1}, {block: 3, head: 64}, {block: 7, head: 3},
	{block: 64, head: 16}, {block: readahead.BlockSize, head: readahead.Headroom},
}

// result is what a text was read as.
type result struct {
	Records [][]string // of the columns picked
	Numbers []int64    // per record
	Lines   []int64    // per record
	Batches []int      // rows of each
	Rejects []string   // line:record reason raw
}

func (r result) String() string {
	var s strings.Builder
	for i, record := range r.Records {
		fmt.Fprintf(&s, "row %d: %q\n", r.Numbers[i], record)
	}
	for _, reject := range r.Rejects {
		s.WriteString("reject " + reject + "\n")
	}
	return s.String()
}

// read reads a text whose header is found in its first SampleSize bytes.
func read(text string, m manner) (result, error) {
	sample := text[:min(len(text), SampleSize)]
	h, err := Inspect(Sample{Name: "a.csv", Bytes: []byte(sample), Whole: len(sample) == len(text)}, ',')
	if err != nil {
		return result{}, err
	}
	pick := make([]int, len(h.Columns))
	for i := range pick {
		pick[i] = i
	}
	return readColumns(text, m, h, pick)
}

func readColumns(text string, m manner, h Header, pick []int) (got result, err error) {
	var in io.Reader = strings.NewReader(text)
	if m.wrap != nil {
		in = m.wrap(in)
	}
	src := readahead.New(in, m.block, m.head)
	defer src.Close()
	r := NewReader("a.csv", src, h, pick)
	if m.limit > 0 {
		r.limit = m.limit
	}
	if m.maxRows == 0 {
		m.maxRows = 1000
	}
	order := make([]int, len(pick))
	for i := range order {
		order[i] = i
	}
	for err == nil {
		b := rows.NewBuilder(len(pick), m.maxRows)
		err = r.Fill(context.Background(), b, m.maxRows)
		batch := b.Batch("a.csv", order)
		for i := range batch.Len() {
			record := make([]string, len(pick))
			for j, c := range batch.Columns {
				record[j] = strings.Clone(c.Value(i))
			}
			got.Records = append(got.Records, record)
		}
		got.Numbers = append(got.Numbers, batch.Rows...)
		for i := range batch.Len() {
			got.Lines = append(got.Lines, batch.Line(i))
		}
		got.Batches = append(got.Batches, batch.Len())
		for _, x := range batch.Rejects {
			got.Rejects = append(got.Rejects, fmt.Sprintf("%d:%d %s %q", x.Line, x.Row, x.Reason, x.Raw))
		}
		batch.Release()
	}
	if err == io.EOF {
		err = nil
	}
	return got, err
}

func TestRead(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"plain", "a,b\n1,2\n3,4\n", `
			row 1: ["1" "2"]
			row 2: ["3" "4"]`},
		{"no final newline", "a,b\n1,2", `
			row 1: ["1" "2"]`},
		{"byte order mark", "\ufeffa,b\n1,2\n", `
			row 1: ["1" "2"]`},
		{"crlf", "a,b\r\n1,2\r\n\"3\",\"4\"\r\n5,6\r", `
			row 1: ["1" "2"]
			row 2: ["3" "4"]
			row 3: ["5" "6"]`},
		{"delimiter named", "sep=,\na,b\n1,2\n3\n", `
			row 1: ["1" "2"]
			reject 4:2 ragged_row "3"`},
		{"delimiter named in quotes, and blank lines", "\ufeff\r\n\"SEP=,\"\r\n\r\na,b\r\n1,2\r\n3\r\n", `
			row 1: ["1" "2"]
			reject 6:2 ragged_row "3"`},
		{"another delimiter named than the one given", "sep=;\na,b\n1,2\n", `
			row 1: ["1" "2"]`},
		{"named once only", "sep=,\na,b\nsep=,\n", `
			row 1: ["sep=" ""]`},
		{"header only after a named delimiter, cut", "sep=,\na,b", ``},
		{"header only", "a,b\n", ``},
		{"header only, cut", "a,b", ``},
		{"quoted header", "\"a\",\"b\nb\"\n1,2\n", `
			row 1: ["1" "2"]`},
		{"quoted delimiters, newlines and quotes", "a,b\n\"1,1\",\"2\n2\"\n\"say \"\"x\"\"\",\"\"\n", `
			row 1: ["1,1" "2\n2"]
			row 2: ["say \"x\"" ""]`},
		{"crlf within quotes stays", "a,b\r\n\"1\r\n1\",2\r\n", `
			row 1: ["1\r\n1" "2"]`},
		{"blank lines do not count", "\n\r\na,b\n\n1,2\n\r\n\n3,4\n\n", `
			row 1: ["1" "2"]
			row 2: ["3" "4"]`},
		{"empty fields", "a,b\n,\n\"\",\n", `
			row 1: ["" ""]
			row 2: ["" ""]`},
		{"white space is kept", "a,b\n 1 ,\t2\n", `
			row 1: [" 1 " "\t2"]`},
		{"one column, quoted nothing is a row", "a\n\"\"\n\nx\n", `
			row 1: [""]
			row 2: ["x"]`},
		{"ragged", "a,b\n1\n1,2,3\n1,2,\n5,6\n", `
			row 4: ["5" "6"]
			reject 2:1 ragged_row "1"
			reject 3:2 ragged_row "1,2,3"
			reject 4:3 ragged_row "1,2,"`},
		{"ragged with quotes", "a,b\n\"1\n1\"\n\"1\",2,3\r\n5,6\n", `
			row 3: ["5" "6"]
			reject 2:1 ragged_row "\"1\n1\""
			reject 4:2 ragged_row "\"1\",2,3"`},
		{"quotes inside a field are characters", "a,b\n1\"2,x \"y\" z\n 3\",\"4\"\n", `
			row 1: ["1\"2" "x \"y\" z"]
			row 2: [" 3\"" "4"]`},
		{"text after a closing quote", "a,b\n\"1\"x,2\n3,4\n", `
			row 2: ["3" "4"]
			reject 2:1 stray_quote "\"1\"x,2"`},
		{"carriage return after a closing quote", "a,b\n\"1\"\rx,2\n\"3\",\"4\"\r", `
			row 2: ["3" "4"]
			reject 2:1 stray_quote "\"1\"\rx,2"`},
		{"unclosed quote loses its line only", "a,b\n1,\"2\n3,4\n5,6", `
			row 2: ["3" "4"]
			row 3: ["5" "6"]
			reject 2:1 unclosed_quote "1,\"2"`},
		{"unclosed quote on the last line", "a,b\n1,2\n3,\"4", `
			row 1: ["1" "2"]
			reject 3:2 unclosed_quote "3,\"4"`},
		{"a quote that meets the next quoted field", "a,b\n1,\"2\n3,4\n5,\"6\n7\"\n8,9\n", `
			row 2: ["3" "4"]
			row 3: ["5" "6\n7"]
			row 4: ["8" "9"]
			reject 2:1 stray_quote "1,\"2"`},
		{"lines of a broken field are judged alone", "a,b\nx\",\"y\nx\",\"y\nx\",\"y\n1,2\n", `
			row 4: ["1" "2"]
			reject 2:1 unclosed_quote "x\",\"y"
			reject 3:2 unclosed_quote "x\",\"y"
			reject 4:3 unclosed_quote "x\",\"y"`},
		{"nul", "a,b\n1,\x002\n\"3\x00\",4\n5,6\n", `
			row 3: ["5" "6"]
			reject 2:1 nul_byte "1,\x002"
			reject 3:2 nul_byte "\"3\x00\",4"`},
		{"invalid utf-8", "a,b\né,2\n1,\xe9\n\"\xc3\",4\n5,6\n7,\xf0\x9f\x98", `
			row 1: ["é" "2"]
			row 4: ["5" "6"]
			reject 3:2 invalid_utf8 "1,\xe9"
			reject 4:3 invalid_utf8 "\"\xc3\",4"
			reject 6:5 invalid_utf8 "7,\xf0\x9f\x98"`},
		{"surrogates and overlong forms", "a\né\n\xed\xa0\x80\n\xc0\xaf\n", `
			row 1: ["é"]
			reject 3:2 invalid_utf8 "\xed\xa0\x80"
			reject 4:3 invalid_utf8 "\xc0\xaf"`},
		{"lone carriage return is a character", "a,b\n1\r2,3\n\r1,\r\r3\r4\r\n", `
			row 1: ["1\r2" "3"]
			row 2: ["\r1" "\r\r3\r4"]`},
		{"several carriage returns before the line feed", "a,b\r\r\n1,2\r\r\n\r\r\n\"3\",\"4\"\r\r\r\n5,\r\r\n6,7\r\r", `
			row 1: ["1" "2"]
			row 2: ["3" "4"]
			row 3: ["5" ""]
			row 4: ["6" "7"]`},
		{"several carriage returns after a quote, a directive and in rejects", "\ufeff\r\r\n\"sep=,\"\r\r\n\r\r\n\"a\",\"b\"\r\r\n\"1\r\r\n\",2\r\r\n3\r\r\n\"4\"\r\r5,\r\r\n\"6\",\"\r\r\n7,8\r\r\n\"9\",\"10\"\r\r", `
			row 1: ["1\r\r\n" "2"]
			row 5: ["7" "8"]
			row 6: ["9" "10"]
			reject 7:2 ragged_row "3"
			reject 8:3 stray_quote "\"4\"\r\r5,"
			reject 9:4 stray_quote "\"6\",\""`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			for _, m := range manners {
				got, err := read(test.text, m)
				if want := outdent(test.want); err != nil || got.String() != want {
					t.Fatalf("%q, block %d head %d:\n%v%v\nwant\n%s", test.text, m.block, m.head, got, err, want)
				}
			}
		})
	}
}

// TestLines: the line of a row is where it begins, whatever stands before it.
func TestLines(t *testing.T) {
	text := "\n\"a\nx\",b\n\n1,2\n\n\n3,\"4\n\n\"\n5,6\nragged\n7,8\n\n9,10\n"
	for _, m := range manners {
		for _, m.maxRows = range []int{0, 1, 2} {
			got, err := read(text, m)
			if want := []int64{5, 8, 11, 13, 15}; err != nil || !slices.Equal(got.Lines, want) {
				t.Errorf("block %d, %d rows a batch: lines %d, want %d, %v", m.block, m.maxRows, got.Lines, want, err)
			}
		}
	}
}

func outdent(s string) string {
	var lines strings.Builder
	for line := range strings.Lines(s) {
		if line = strings.TrimSpace(line); line != "" {
			lines.WriteString(line + "\n")
		}
	}
	return lines.String()
}

func TestRecordLimit(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"a record just within, its line end included", "a,b\n12345678,012345\n1,2\n", `
			row 1: ["12345678" "012345"]
			row 2: ["1" "2"]`},
		{"a line beyond", "a,b\n12345678,0123456\n1,2\n", `
			row 2: ["1" "2"]
			reject 2:1 record_too_large "12345678,0123456"`},
		{"a line far beyond, at the end", "a,b\n1,2\n" + strings.Repeat("x", 100), `
			row 1: ["1" "2"]
			reject 3:2 record_too_large "xxxxxxxxxxxxxxxx"`},
		{"a quoted line beyond", "a,b\n\"12345678\",\"01234567\"\n1,2\n", `
			row 2: ["1" "2"]
			reject 2:1 record_too_large "\"12345678\",\"0123"`},
		{"a field that does not end in time", "a,b\n1,\"2\n3,4\n5,6\n7,8\n9,\"\n", `
			row 2: ["3" "4"]
			row 3: ["5" "6"]
			row 4: ["7" "8"]
			reject 2:1 unclosed_quote "1,\"2"
			reject 6:5 unclosed_quote "9,\""`},
		{"a field that ends in time", "a,b\n1,\"2\n3,4\n5,\"\n7,8\n", `
			row 1: ["1" "2\n3,4\n5,"]
			row 2: ["7" "8"]`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			for _, m := range manners {
				m.limit = 16
				got, err := read(test.text, m)
				if want := outdent(test.want); err != nil || got.String() != want {
					t.Fatalf("%q, block %d head %d:\n%v%v\nwant\n%s", test.text, m.block, m.head, got, err, want)
				}
			}
		})
	}
}

func TestMegabytesInAField(t *testing.T) {
	tests := []struct {
		field string
		bytes int
	}{
		{`"` + strings.Repeat(`many ""words"", `, 400_000) + `"`, 14 * 400_000},
		{strings.Repeat("many words ", 400_000), 11 * 400_000},
	}
	for _, test := range tests {
		got, err := read("a,b\n1,2\n"+test.field+",x\n3,4\n", manners[len(manners)-1])
		if err != nil || len(got.Records) != 3 || len(got.Records[1][0]) != test.bytes || got.Records[1][1] != "x" {
			t.Fatalf("%d records, rejects %.100q, %v", len(got.Records), got.Rejects, err)
		}
	}
}

// A text in which every line begins a field that never ends is read in time
// that grows with its length, not with its square: this would not end.
func TestBrokenQuotesAreNotScannedAgainAndAgain(t *testing.T) {
	const lines = 200_000
	text := "a,b\n" + strings.Repeat("x\",\"y\n", lines)
	got, err := read(text, manners[len(manners)-1])
	if err != nil || len(got.Rejects) != lines || len(got.Records) != 0 {
		t.Fatal(len(got.Records), len(got.Rejects), err)
	}
}

func TestOnlyPickedColumnsAreStored(t *testing.T) {
	text := "a,b,c\n1,2,3\n4,\"5\",6\n7,8\n9,\xff,é\n10,11,12\n"
	h := Header{Delimiter: ',', Columns: []string{"a", "b", "c"}}
	tests := []struct {
		pick []int
		want string
	}{
		{[]int{2, 0}, `
			row 1: ["3" "1"]
			row 2: ["6" "4"]
			row 5: ["12" "10"]`},
		{[]int{1}, `
			row 1: ["2"]
			row 2: ["5"]
			row 5: ["11"]`},
		{nil, `
			row 1: []
			row 2: []
			row 5: []`},
	}
	for _, test := range tests {
		want := outdent(test.want + `
			reject 4:3 ragged_row "7,8"
			reject 5:4 invalid_utf8 "9,\xff,é"`)
		for _, m := range manners {
			if got, err := readColumns(text, m, h, test.pick); err != nil || got.String() != want {
				t.Errorf("pick %v, block %d: %v\n%vwant\n%s", test.pick, m.block, err, got, want)
			}
		}
	}
}
