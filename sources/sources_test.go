package sources

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// folder makes a folder of these files the working directory of the test.
func folder(t *testing.T, files map[string]string) {
	t.Helper()
	t.Chdir(t.TempDir())
	for name, text := range files {
		write(t, name, text)
	}
}

func write(t testing.TB, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func gz(texts ...string) string {
	var b bytes.Buffer
	for _, text := range texts { // a member each
		w := gzip.NewWriter(&b)
		io.WriteString(w, text)
		w.Close()
	}
	return b.String()
}

func zst(texts ...string) string {
	var b bytes.Buffer
	for _, text := range texts { // a frame each
		w, _ := zstd.NewWriter(&b)
		io.WriteString(w, text)
		w.Close()
	}
	return b.String()
}

// rawZst compresses a text with a dictionary that has it, and no number.
func rawZst(text string) string {
	w, _ := zstd.NewWriter(nil, zstd.WithEncoderDictRaw(0, []byte(text)))
	defer w.Close()
	return string(w.EncodeAll([]byte(text), nil))
}

// rowsOf reads the columns of the inputs, a line per row: source:row values.
func rowsOf(uris, columns []string, o Options) (lines []string, err error) {
	l, err := Open(context.Background(), uris, o)
	if err != nil {
		return nil, err
	}
	defer l.Close()
	r, err := l.Reader(columns)
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
		for i := range b.Len() {
			line := fmt.Sprintf("%s:%d", b.Source, b.Rows[i])
			for _, c := range b.Columns {
				if c.IsNull(i) {
					line += " null"
				} else {
					line += " " + c.Value(i)
				}
			}
			lines = append(lines, line)
		}
		for _, x := range b.Rejects {
			lines = append(lines, fmt.Sprintf("%s:%d %s %q", x.Source, x.Line, x.Reason, x.Raw))
		}
		b.Release()
	}
}

func TestRows(t *testing.T) {
	folder(t, map[string]string{
		"a.csv":          "id,email\n1,x\n2,y\n",
		"b.csv":          "E-Mail;EMAIL;id\n0;z;3\n",
		"c.csv.gz":       gz("id,email\n1,", "x\n2,y\n"),
		"d.csv.zst":      zst("id,email\n1,", "x\n2,y"),
		"gz-in-disguise": gz("id,email\n1,x\n"),
		"[odd].csv":      "email\nodd\n",
		"deep/e.csv":     "email\nh\n",
		"deep/er/f.csv":  "email\ni\nj\n",
		"deep/er/g.txt":  "email\nk\n",
		"bad.csv":        "id,email\n1\n2,y\n3,\xe9\né,x\n",
		"end.csv":        "email\nx\n\"y\n",
		"none.csv":       "email\n",
	})
	tests := []struct {
		name    string
		uris    []string
		columns []string
		want    []string
	}{
		{"one file", []string{"a.csv"}, []string{"email", "id"}, []string{"a.csv:1 x 1", "a.csv:2 y 2"}},
		{"sorted, each with its own delimiter and order", []string{"b.csv", "a.csv"}, []string{"id", "email"},
			[]string{"a.csv:1 1 x", "a.csv:2 2 y", "b.csv:1 3 z"}},
		{"a column twice", []string{"a.csv"}, []string{"id", "email", "id", "ID"}, []string{"a.csv:1 1 x 1 1", "a.csv:2 2 y 2 2"}},
		{"no column", []string{"a.csv"}, nil, []string{"a.csv:1", "a.csv:2"}},
		{"gzip of two members", []string{"c.csv.gz"}, []string{"email"}, []string{"c.csv.gz:1 x", "c.csv.gz:2 y"}},
		{"zstd of two frames", []string{"d.csv.zst"}, []string{"email"}, []string{"d.csv.zst:1 x", "d.csv.zst:2 y"}},
		{"packed is told by content", []string{"gz-in-disguise"}, []string{"email"}, []string{"gz-in-disguise:1 x"}},
		{"glob", []string{"deep/*"}, []string{"email"}, []string{"deep/e.csv:1 h"}},
		{"deep glob", []string{"deep/**/*.csv"}, []string{"email"},
			[]string{"deep/e.csv:1 h", "deep/er/f.csv:1 i", "deep/er/f.csv:2 j"}},
		{"deep glob at the top", []string{"**/[fg].*"}, []string{"email"},
			[]string{"deep/er/f.csv:1 i", "deep/er/f.csv:2 j", "deep/er/g.txt:1 k"}},
		{"a name that looks like a glob", []string{"[odd].csv"}, []string{"email"}, []string{"[odd].csv:1 odd"}},
		{"rejects", []string{"bad.csv"}, []string{"email"},
			[]string{"bad.csv:2 y", "bad.csv:4 x", `bad.csv:2 ragged_row "1"`, `bad.csv:4 invalid_utf8 "3,\xe9"`}},
		{"a file that ends in a reject, one without rows", []string{"none.csv", "end.csv", "a.csv"}, []string{"email"},
			[]string{"a.csv:1 x", "a.csv:2 y", "end.csv:1 x", `end.csv:3 unclosed_quote "\"y"`}},
	}
	for _, test := range tests {
		got, err := rowsOf(test.uris, test.columns, Options{})
		if err != nil || !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s:\n got %q, %v\nwant %q", test.name, got, err, test.want)
		}
	}
}

func TestStandardInput(t *testing.T) {
	text := "id;email\n1;x\n2;y\n"
	want := []string{"-:1 x", "-:2 y"}
	for name, in := range map[string]io.Reader{
		"plain":          strings.NewReader(text),
		"byte by byte":   iotest.OneByteReader(strings.NewReader(text)),
		"gzip":           strings.NewReader(gz(text)),
		"zstd in halves": iotest.HalfReader(strings.NewReader(zst(text))),
	} {
		if got, err := rowsOf([]string{"-"}, []string{"email"}, Options{Stdin: in}); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}

	named, err := rowsOf([]string{"-"}, []string{"email"}, Options{Stdin: strings.NewReader("email\na@mail.example\n"), StdinName: "pasted"})
	if err != nil || !reflect.DeepEqual(named, []string{"pasted:1 a@mail.example"}) {
		t.Errorf("by another name: %q, %v", named, err)
	}

	big := "id,email\n" + strings.Repeat("1,someone@mail.example\n", 200_000)
	got, err := rowsOf([]string{"-"}, []string{"email"}, Options{Stdin: strings.NewReader(big)})
	if err != nil || len(got) != 200_000 || got[199_999] != "-:200000 someone@mail.example" {
		t.Errorf("beyond the sample: %d rows, %v", len(got), err)
	}

	l, err := Open(t.Context(), []string{"-"}, Options{Stdin: strings.NewReader(text)})
	if err != nil {
		t.Fatal(err)
	}
	r, err := l.Reader(nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	if _, err := l.Reader(nil); err == nil || err.Error() != "standard input has been read already. Save it to a file and name that" {
		t.Errorf("read twice: %v", err)
	}
}

func TestRefused(t *testing.T) {
	whole := gz("id,email\n" + strings.Repeat("1,x\n", 50))
	folder(t, map[string]string{
		"a.csv":         "id,e-mail,name\n1,x,y\n",
		"b.csv":         "id,e-mail,email\n1,x,y\n",
		"twice.csv":     "email,email,Email\n1,x,y\n",
		"cases.csv":     "Email,eMail\n1,x\n",
		"data.csv":      "1,ada@mail.example\n2,bob@mail.example\n",
		"people.csv":    "Doe;Jane;12 Main St\nRoe;Bob;1 Elm St\n",
		"profile.csv":   "jane-doe-82a505\n",
		"ips.csv":       "192.0.2.1\n192.0.2.2\n",
		"empty.csv":     "",
		"empty.csv.gz":  gz(""),
		"cut.csv.gz":    whole[:len(whole)-9],
		"cut.csv.zst":   zst("id,email\n1,x\n")[:12],
		"bad.csv.gz":    whole[:20] + "xxxx" + whole[24:],
		"tail.csv.gz":   whole + "tail of something else",
		"dict.csv.zst":  "\x28\xb5\x2f\xfd\x21\x07\x01\x09\x00\x00a",
		"raw.csv.zst":   rawZst("id,email\n1,ada@example.com\n"),
		"bad.csv.zst":   zst("id,email\n")[:6] + "\xff\xff\xff\xff\xff",
		"wide.csv.zst":  "\x28\xb5\x2f\xfd\x00\x90\x01\x00\x00",
		"utf16.csv.gz":  gz("\xff\xfei\x00d\x00\n\x00"),
		"book.xlsx":     "PK\x03\x04\x14\x00\x06\x00",
		"a.parquet.gz":  gz("PAR1\x15\x00\x15\x00"),
		"cut.parquet":   "PAR1\x15\x00\x15\x00 and so on",
		"folder/x.json": "{}",
		"notes/README":  "Some notes\n",
	})
	if err := os.Symlink("a.csv", "other.csv"); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		uris    []string
		columns []string
		want    string
	}{
		{[]string{"a.csv"}, []string{"email"}, `a.csv has no column "email"; it has: id, e-mail, name. Did you mean "e-mail"? Choose with --id-column, --select and --where`},
		{[]string{"b.csv", "a.csv"}, []string{"email"}, `a.csv has no column "email"; it has: id, e-mail, name. Did you mean "e-mail"? Choose with --id-column, --select and --where`},
		{[]string{"twice.csv"}, []string{"email"}, `twice.csv has 2 columns "email". Rename all but one in its header, or choose other columns`},
		{[]string{"cases.csv"}, []string{"email"}, `cases.csv has 2 columns "email". Rename all but one in its header, or choose other columns`},
		{[]string{"data.csv"}, []string{"email"}, `data.csv has no column "email": its first line looks like data, not like the names of columns. Add a header line`},
		{[]string{"ips.csv"}, []string{"ip"}, `ips.csv has no column "ip": its first line looks like data, not like the names of columns. Add a header line`},
		{[]string{"people.csv"}, []string{"email"}, `people.csv has no column "email": its first line looks like data, not like the names of columns. Add a header line, if it has none. Choose with --id-column, --select and --where`},
		{[]string{"profile.csv"}, []string{"Jane-Doe"}, `profile.csv has no column "Jane-Doe": its first line looks like data, not like the names of columns. Add a header line, if it has none. Choose with --id-column, --select and --where`},
		{nil, nil, `the list of inputs is empty. Name a file, a glob or - for standard input`},
		{[]string{""}, nil, `"" is not a file name. Name a file, a glob or - for standard input`},
		{[]string{"none.csv"}, nil, `none.csv does not exist. Check its name and the folder you are in`},
		{[]string{"*.tsv"}, nil, `*.tsv matches no file. Check the pattern; put it in quotes if the shell changes it`},
		{[]string{"f*"}, nil, `f* matches no file. Check the pattern; put it in quotes if the shell changes it`},
		{[]string{"[a"}, nil, `[a is a malformed pattern. Close its brackets`},
		{[]string{"folder"}, nil, `folder/x.json is JSON Lines, but its name does not say so. If it is a list, rename it to end in .jsonl`},
		{[]string{"notes/"}, []string{"email"}, `notes/README has no column "email"; it has: Some notes. Every file of the folder is read: move this one away, or name the files, as in --in 'notes/*.csv'`},
		{[]string{"a.csv", "a.csv"}, nil, `a.csv is given twice. Name it once; its rows would count twice`},
		{[]string{"a.csv", "?.csv"}, nil, `a.csv is given twice. Name it once; its rows would count twice`},
		{[]string{"a.csv", "./a.csv"}, nil, `a.csv is given twice. Name it once; its rows would count twice`},
		{[]string{"a.csv", "other.csv"}, nil, `other.csv is given twice. Name it once; its rows would count twice`},
		{[]string{"-", "-"}, nil, `standard input is given twice. Name it once; its rows would count twice`},
		{[]string{"s3://bucket/a.csv"}, nil, `s3://bucket/a.csv is on S3; S3 is not configured here. Copy it to this machine first`},
		{[]string{"https://files.example/a.csv"}, nil, `https://files.example/a.csv is not supported: an input is a local file or folder, s3://bucket/key, or - for standard input. Copy it to this machine or to S3 first`},
		{[]string{"empty.csv"}, nil, `empty.csv is empty: it has no header line. Write the names of the columns in its first line`},
		{[]string{"empty.csv.gz"}, nil, `empty.csv.gz is empty: it has no header line. Write the names of the columns in its first line`},
		{[]string{"cut.csv.gz"}, nil, `cut.csv.gz is truncated: its compressed data ends too early. Copy or compress it again`},
		{[]string{"cut.csv.zst"}, nil, `cut.csv.zst is truncated: its compressed data ends too early. Copy or compress it again`},
		{[]string{"bad.csv.gz"}, nil, `bad.csv.gz holds damaged gzip data. Copy or compress it again`},
		{[]string{"dict.csv.zst"}, nil, `dict.csv.zst was compressed with a zstd dictionary, which is not read. Decompress it first: zstd -d -D DICTIONARY FILE`},
		{[]string{"raw.csv.zst"}, nil, `raw.csv.zst holds damaged zstd data, or was compressed with a zstd dictionary, which is not read. Copy or compress it again, or decompress it first: zstd -d -D DICTIONARY FILE`},
		{[]string{"bad.csv.zst"}, nil, `bad.csv.zst holds damaged zstd data, or was compressed with a zstd dictionary, which is not read. Copy or compress it again, or decompress it first: zstd -d -D DICTIONARY FILE`},
		{[]string{"wide.csv.zst"}, nil, `wide.csv.zst was compressed with a zstd window of more than 128 MiB. Decompress it first: zstd -d --long=31 FILE`},
		{[]string{"tail.csv.gz"}, nil, `tail.csv.gz has extra data after its gzip-compressed data. Copy or compress it again`},
		{[]string{"utf16.csv.gz"}, nil, `utf16.csv.gz is UTF-16 text, not UTF-8. Convert it: gzip -dc utf16.csv.gz | iconv -f UTF-16 -t UTF-8 > utf16.utf8.csv`},
		{[]string{"book.xlsx"}, nil, `book.xlsx is a ZIP archive or a spreadsheet, not CSV or Parquet. Unzip it, or save the sheet as CSV (UTF-8)`},
		{[]string{"a.parquet.gz"}, nil, `a.parquet.gz is Parquet compressed with gzip, which cannot be read in place. Decompress it first: gzip -d FILE`},
		{[]string{"cut.parquet"}, nil, `cut.parquet is damaged or not a complete Parquet file. Copy or write it again`},
	}
	for _, test := range tests {
		got, err := rowsOf(test.uris, test.columns, Options{Stdin: strings.NewReader("a\n")})
		var format *FormatError
		if !errors.As(err, &format) || err.Error() != test.want {
			t.Errorf("%q %q:\n got %v (%d rows)\nwant %s", test.uris, test.columns, err, len(got), test.want)
		}
	}
	for _, d := range []byte{'"', '\n', '\r', ' ', 0x80} {
		if _, err := Open(t.Context(), []string{"a.csv"}, Options{Delimiter: d}); err == nil {
			t.Errorf("delimiter %q was taken", d)
		}
	}
	if _, err := Open(t.Context(), []string{"-"}, Options{Stdin: strings.NewReader("PAR1\x15\x00\x15\x00")}); err == nil || !strings.Contains(err.Error(), "Save it to a file") {
		t.Errorf("Parquet from standard input: %v", err)
	}
}

// Files of other kinds are named for what they are, and text that begins like
// them is read.
func TestSignatures(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"pdf":                       {"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n", "is a PDF document"},
		"gzip in gzip":              {gz(gz("a\n1\n")), "is compressed twice, with gzip and then with gzip"},
		"gzip in zstd":              {zst(gz("a\n1\n")), "is compressed twice, with gzip and then with zstd"},
		"avro":                      {"Obj\x01\x04\x14avro.codec", "is an Avro file"},
		"orc":                       {"ORC\x08\x03\x10\x00", "is an ORC file"},
		"arrow":                     {"ARROW1\x00\x00\xff\xff\xff\xff", "is an Arrow file"},
		"arrow stream":              {"\xff\xff\xff\xff\x10\x01\x00\x00", "is a stream of Arrow"},
		"sqlite":                    {"SQLite format 3\x00\x10\x00", "is an SQLite database"},
		"7z":                        {"7z\xbc\xaf\x27\x1c\x00\x04", "is a 7z archive"},
		"rar":                       {"Rar!\x1a\x07\x01\x00", "is a RAR archive"},
		"encrypted":                 {"PARE\x15\x00\x15\x00PARE", "is an encrypted Parquet file"},
		"lfs":                       {"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n", "is a pointer of Git LFS"},
		"annex":                     {"/annex/objects/SHA256E-s12--4d7a.csv\n", "is a pointer of git-annex"},
		"rtf":                       {"{\\rtf1\\ansi\n", "is an RTF document"},
		"vcard":                     {"BEGIN:VCARD\nVERSION:3.0\n", "is a vCard file"},
		"html":                      {"<!DOCTYPE html>\n<html><body>Sign in</body></html>", "is an HTML page"},
		"html in capitals":          {"\ufeff\r\n <HTML>\n<HEAD>", "is an HTML page"},
		"html comment":              {"<!-- saved -->\n<html lang=en>\n", "is an HTML page"},
		"a table of html":           {"<table border=1>\n<tr><td>a</td>", "is an HTML page"},
		"xhtml, gzipped":            {gz("<?xml version=\"1.0\"?>\n<html xmlns=\"http://www.w3.org/1999/xhtml\">"), "is an HTML page"},
		"xml":                       {"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>AccessDenied</Code></Error>", "is XML, not CSV or Parquet"},
		"xml without a declaration": {"<Error><Code>AccessDenied</Code></Error>", "is XML, not CSV or Parquet"},
		"xml with a namespace":      {"<feed xmlns=\"http://www.w3.org/2005/Atom\">\n", "is XML, not CSV or Parquet"},
		"tag as a name":             {"<email>,<name>\n1,2\n", ""},
		"less as a name":            {"<5,>5\n1,2\n", ""},
		"arrow as a name":           {"<-,a\n1,</a>\n", ""},
		"ORC as a name":             {"ORC,a\n1,2\n", ""},
		"PARE as a name":            {"PARE,a\n1,2\n", ""},
		"json lines":                {"{\"email\": \"a\"}\n{\"email\": \"b\"}\n", "is JSON Lines, but its name does not say so"},
		"json":                      {"\n[\n  {\"email\": \"a\"}\n]\n", "is a JSON array, not JSON Lines. If it is a list, write an object in each line: jq -c '.[]' FILE > FILE.jsonl"},
		"json lines of arrays":      {"[1,\"a\"]\n[2,\"b\"]\n", "is JSON Lines of arrays, not of objects. Convert it to CSV, JSON Lines or Parquet"},
		"brace as a name":           {"{a},b\n1,2\n", ""},
		"gzipped columns":           {gz("a\n1\n"), ""},
	} {
		folder(t, map[string]string{"a.csv": c.text})
		l, err := Open(t.Context(), []string{"a.csv"}, Options{})
		if err == nil {
			l.Close()
		}
		var format *FormatError
		if c.want == "" && err != nil || c.want != "" && (!errors.As(err, &format) || !strings.HasPrefix(err.Error(), "a.csv "+c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func TestFiles(t *testing.T) {
	folder(t, map[string]string{"b.csv": "id, email\n1,x\n", "a.csv": "PAR1,x\n"})
	l, err := Open(t.Context(), []string{"b.csv", "-", "a.csv"}, Options{Stdin: strings.NewReader("\tip\n")})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var got []string
	for _, f := range l.Files() {
		got = append(got, fmt.Sprintf("%s %s %d %t %q", f.URI, f.Format, f.Size, f.ModTime.IsZero(), f.Columns))
	}
	want := []string{
		`- csv -1 true ["column_1" "ip"]`,
		`a.csv csv 7 false ["PAR1" "x"]`,
		`b.csv csv 14 false ["id" "email"]`,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if err := l.Check([]string{"x"}); err == nil {
		t.Error("a column that is not there passed Check")
	}
}

func TestPosition(t *testing.T) {
	text := "id,email\n" + strings.Repeat("1,someone@mail.example\n", 100_000)
	folder(t, map[string]string{"a.csv": text, "b.csv.gz": gz(text)})
	l, err := Open(t.Context(), []string{"a.csv", "b.csv.gz"}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := l.Reader([]string{"id"})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	last := int64(-1)
	for {
		b, err := r.Next(context.Background(), 10_000)
		read, total := r.Position()
		if read < last || read > total || total != l.Files()[0].Size+l.Files()[1].Size {
			t.Fatalf("%d of %d after %d", read, total, last)
		}
		last = read
		if err != nil {
			if err != io.EOF || read != total {
				t.Errorf("%v at %d of %d", err, read, total)
			}
			return
		}
		b.Release()
	}
}

// A batch of many columns has fewer rows.
func TestBatchRows(t *testing.T) {
	const rows = 3 * leastBatchRows
	for _, c := range []struct{ columns, want int }{
		{1, rows}, {batchCells / rows, rows}, {200, batchCells / 200}, {1000, leastBatchRows},
	} {
		var names []string
		for i := range c.columns {
			names = append(names, fmt.Sprint("column", i))
		}
		line := strings.Repeat(",", c.columns-1)
		folder(t, map[string]string{"a.csv": strings.Join(names, ",") + "\n" + strings.Repeat("x"+line+"\n", rows)})
		l, err := Open(t.Context(), []string{"a.csv"}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		r, err := l.Reader(names)
		if err != nil {
			t.Fatal(err)
		}
		b, err := r.Next(t.Context(), 0)
		if err != nil || b.Len() != c.want {
			t.Errorf("%d columns: %d rows, %v; want %d", c.columns, b.Len(), err, c.want)
		}
		r.Close()
		l.Close()
	}
}

func TestNextAfterTheEnd(t *testing.T) {
	folder(t, map[string]string{"a.csv": "id\n1\n2\n"})
	l, err := Open(t.Context(), []string{"a.csv"}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	r, _ := l.Reader([]string{"id"})
	ctx, cancel := context.WithCancel(context.Background())
	b, err := r.Next(ctx, 1)
	if err != nil || b.Len() != 1 {
		t.Fatal(b, err)
	}
	b.Release()
	cancel()
	for range 2 {
		if _, err := r.Next(ctx, 1); err != context.Canceled {
			t.Errorf("after cancel: %v", err)
		}
	}
	r.Close()

	r, _ = l.Reader([]string{"id"})
	r.Close()
	if _, err := r.Next(context.Background(), 1); err != io.EOF {
		t.Errorf("after Close: %v", err)
	}
}
