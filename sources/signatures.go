package sources

import (
	"bytes"
	"encoding/json"

	"github.com/leadetl/leadetl/internal/unpack"
)

// signature is the start of files of one kind, with advice what to do with
// them.
type signature struct {
	begins  string
	binary  bool // zero bytes follow; otherwise a text file may begin the same way
	problem string
	advice  string
}

// The kinds of files that are often mistaken for input.
var signatures = []signature{
	{"PK\x03\x04", false, "is a ZIP archive or a spreadsheet, not CSV or Parquet", "Unzip it, or save the sheet as CSV (UTF-8)"},
	{"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", false, "is a spreadsheet, not CSV or Parquet", "Save the sheet as CSV (UTF-8)"},
	{"BZh", true, "is compressed with bzip2; only gzip and zstd are supported", "Decompress it first: bzip2 -d FILE"},
	{"\xfd7zXZ\x00", false, "is compressed with xz; only gzip and zstd are supported", "Decompress it first: xz -d FILE"},
	{"7z\xbc\xaf\x27\x1c", false, "is a 7z archive, not CSV or Parquet", "Unpack it first: 7z x FILE"},
	{"Rar!\x1a\x07", false, "is a RAR archive, not CSV or Parquet", "Unpack it first"},
	{"%PDF-", false, "is a PDF document, not CSV or Parquet", "Export the table it was made of as CSV (UTF-8)"},
	{"PARE", true, "is an encrypted Parquet file, which is not supported", "Write it again without encryption"},
	{"Obj\x01", false, "is an Avro file, not CSV or Parquet", convertAdvice},
	{"ORC", true, "is an ORC file, not CSV or Parquet", convertAdvice},
	{"ARROW1\x00\x00", false, "is an Arrow file, not CSV or Parquet", convertAdvice},
	{"\xff\xff\xff\xff", true, "is a stream of Arrow, not CSV or Parquet", convertAdvice},
	{"SQLite format 3\x00", false, "is an SQLite database, not CSV or Parquet", "Export a table of it as CSV: sqlite3 -csv -header FILE 'SELECT ...'"},
}

const convertAdvice = "Convert it to Parquet or CSV"

// checkKind refuses files that are not text, by their first bytes.
func (in *input) checkKind(head []byte) error {
	refuse := func(problem, advice string) error {
		return &FormatError{File: in.URI, Problem: problem, Advice: advice}
	}
	switch inner := unpack.Of(head); {
	case parquetMagic(head) && in.packing != unpack.None:
		return refuse("is Parquet compressed with "+string(in.packing)+", which cannot be read in place", "Decompress it first: "+string(in.packing)+" -d FILE")
	case parquetMagic(head) && in.once:
		return refuse("is Parquet, which cannot be read from a stream: it is read from its end", "Save it to a file and name that")
	case in.packing != unpack.None && inner != unpack.None:
		return refuse("is compressed twice, with "+string(inner)+" and then with "+string(in.packing), "Decompress it once: "+string(in.packing)+" -d FILE")
	}
	for _, s := range signatures {
		if bytes.HasPrefix(head, []byte(s.begins)) && (!s.binary || bytes.IndexByte(head, 0) >= 0) {
			return refuse(s.problem, s.advice)
		}
	}
	if json := jsonKind(head); json != "" {
		return refuse("is "+json+", not CSV or Parquet", convertAdvice)
	}
	return nil
}

// jsonKind returns the kind of JSON that a text starts as, "" for other text.
func jsonKind(head []byte) string {
	text := bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf")), " \t\r\n")
	first, rest, _ := bytes.Cut(text, []byte("\n"))
	if len(text) == 0 || !bytes.ContainsRune([]byte("{["), rune(text[0])) {
		return ""
	}
	next := bytes.TrimLeft(text[1:], " \t\r\n")
	switch {
	case json.Valid(first) && (text[0] == '{' || len(bytes.TrimSpace(rest)) > 0):
		return "JSON Lines"
	case len(next) > 0 && bytes.ContainsRune([]byte("\"{[]}"), rune(next[0])):
		return "JSON"
	}
	return ""
}
