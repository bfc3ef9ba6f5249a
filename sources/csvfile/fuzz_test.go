package csvfile

import (
	"encoding/csv"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"
)

// lineEnd matches a line feed with the carriage returns before it.
var lineEnd = regexp.MustCompile(`\r+\n`)

// FuzzReader holds the Reader against encoding/csv: a text that it reads
// without an error we read as the same records, except that
//   - a record with more or fewer fields than the header is a reject,
//   - so is one with a NUL byte or invalid UTF-8,
//   - CRLF within quotes stays CRLF, where encoding/csv makes it LF,
//   - several carriage returns may precede a line feed.
//
// Of every text, what we make of it does not depend on how it arrives.
func FuzzReader(f *testing.F) {
	for _, seed := range []string{
		"a,b\n1,2\n", "a,b\r\n\"1\r\n\",\"2\"\"\"\r\n", "a,b\n1,\"2\n3,4\n5,\"6\"\n", "a\n\n\"\"\n\x00\n\xff\n",
		"a,b\n\"1\"x,2\nx\",\"y\n", "\ufeffa;b\n1;2\n", "a,b\n1\n1,2,3\r", "a,b\n\"\n\"\n\"\r\r\n\"",
		"a,b\r\r\n1,\"2\"\r\r\n\r\r\n3,4\r\r", "sep=;\na,b\n1,2\n", "\"SEP=,\"\r\n\na\nsep=,\n",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := read(text, manner{block: 4096, head: 512})
		if err != nil {
			return // no header
		}
		for _, m := range []manner{
			{block: 1}, {block: 2, head: 64}, {block: 7, head: 3},
			{block: 5, head: 2, wrap: iotest.HalfReader}, {block: 4, wrap: iotest.OneByteReader},
		} {
			again, err := read(text, m)
			if again.Batches = got.Batches; err != nil || !reflect.DeepEqual(again, got) {
				t.Fatalf("%q, block %d head %d: %v\n%vnot\n%v", text, m.block, m.head, err, again, got)
			}
			m.limit = 16 // must not panic, loop or differ by the way
			_, _ = read(text, m)
		}

		text = strings.TrimPrefix(text, "\ufeff")
		if named, n := preamble([]byte(text), true); named != 0 {
			text = text[n:] // a line that encoding/csv knows nothing of
		}
		standard := csv.NewReader(strings.NewReader(strings.TrimRight(lineEnd.ReplaceAllString(text, "\n"), "\r")))
		standard.FieldsPerRecord = -1
		records, err := standard.ReadAll()
		if err != nil {
			accountForLines(t, text, got)
			return
		}
		header, records := records[0], records[1:]
		if len(records) != len(got.Records)+len(got.Rejects) {
			t.Fatalf("%q: %d rows and %d rejects, encoding/csv has %d records", text, len(got.Records), len(got.Rejects), len(records))
		}
		for i, number := range got.Numbers {
			for j, v := range got.Records[i] {
				if v = lineEnd.ReplaceAllString(v, "\n"); v != records[number-1][j] {
					t.Fatalf("%q, record %d: %q, encoding/csv has %q", text, number, got.Records[i], records[number-1])
				}
			}
			records[number-1] = nil
		}
		for i, r := range records {
			whole := strings.Join(r, "")
			if r != nil && len(r) == len(header) && utf8.ValidString(whole) && !strings.Contains(whole, "\x00") {
				t.Fatalf("%q: record %d, %q, was rejected", text, i+1, r)
			}
		}
	})
}

// accountForLines checks that no line of a broken text was lost: every line
// that is not blank is in a row or a reject, and the numbers have no gaps.
func accountForLines(t *testing.T, text string, got result) {
	t.Helper()
	if n := len(got.Numbers) + len(got.Rejects); n > 0 {
		last := int64(0)
		if len(got.Numbers) > 0 {
			last = got.Numbers[len(got.Numbers)-1]
		}
		if last > int64(n) {
			t.Fatalf("%q: record %d of %d", text, last, n)
		}
	}
	// A line without quotes before the first quote is a record of its own.
	lines := 0
	body := text
	if i := strings.IndexByte(text, '"'); i >= 0 {
		body = text[:strings.LastIndexByte(text[:i], '\n')+1]
	}
	for line := range strings.Lines(strings.TrimPrefix(body, "\ufeff")) {
		if strings.Trim(line, "\r\n") != "" {
			lines++
		}
	}
	if n := len(got.Numbers) + len(got.Rejects); n < lines-1 {
		t.Fatalf("%q: %d records of at least %d", text, n, lines-1)
	}
}

func FuzzFirstInvalid(f *testing.F) {
	f.Add([]byte("abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcd\xe9\xff"))
	f.Add([]byte("ééééééééééééééééééééééééééééééééééé\xed\xa0\x80"))
	f.Fuzz(func(t *testing.T, p []byte) {
		i := firstInvalid(p)
		if !utf8.Valid(p[:i]) || i < len(p) && !invalidAt(p, i) {
			t.Errorf("%q: %d", p, i)
		}
	})
}

func invalidAt(p []byte, i int) bool {
	r, n := utf8.DecodeRune(p[i:])
	return r == utf8.RuneError && n == 1
}
