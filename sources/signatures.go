package sources

import (
	"bytes"
	"encoding/json"
	"path"
	"regexp"

	"github.com/leadetl/leadetl/internal/unpack"
	"github.com/leadetl/leadetl/sources/jsonfile"
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
	{"version https://git-lfs.github.com/spec/", false, "is a pointer of Git LFS, not the file itself", "Get the file: git lfs pull"},
	{"version https://hawser.github.com/spec/", false, "is a pointer of Git LFS, not the file itself", "Get the file: git lfs pull"},
	{"/annex/objects/", false, "is a pointer of git-annex, not the file itself", "Get the file: git annex get FILE"},
	{"{\\rtf", false, "is an RTF document, not CSV or Parquet", "Save its table as CSV (UTF-8)"},
	{"BEGIN:VCARD", false, "is a vCard file, not CSV or Parquet", convertAdvice},
	{"SQLite format 3\x00", false, "is an SQLite database, not CSV or Parquet", "Export a table of it as CSV: sqlite3 -csv -header FILE 'SELECT ...'"},
}

const convertAdvice = "Convert it to CSV, JSON Lines or Parquet"

// checkKind refuses files that are not text, by their first bytes.
func (in *input) checkKind(head []byte) error {
	refuse := func(problem, advice string) error {
		return &FormatError{File: in.URI, Problem: problem, Advice: advice}
	}
	switch inner := unpack.Of(head); {
	case parquetMagic(head) && in.packing != unpack.None:
		return refuse("is Parquet compressed with "+string(in.packing)+", which cannot be read in place", "Decompress it first: "+string(in.packing)+" -d FILE")
	case parquetMagic(head) && in.archive != nil:
		return refuse("is Parquet in a ZIP archive, which cannot be read in place", "Unzip the archive, and name the folder")
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
	switch markupKind(head) {
	case "HTML":
		return refuse("is an HTML page, not CSV or Parquet", "Get the list again: servers send a page where they refuse a download or ask to sign in")
	case "XML":
		return refuse("is XML, not CSV or Parquet", convertAdvice)
	}
	switch json := jsonKind(head, true); json {
	case "":
	case jsonLines:
		return refuse("is "+json+", but its name does not say so", "If it is a list, rename it to end in .jsonl")
	case jsonArray, otherJSON:
		if path.Base(in.URI) == "directory.json" {
			return refuse("is the index of reference data, not a list", "Name a list, and the folder with --directory")
		}
		return refuse("is "+json+", not JSON Lines", jsonfile.OneObjectEach)
	default:
		return refuse("is "+json+", not of objects", convertAdvice)
	}
	return nil
}

// markup matches the start of a tag, with its name, of an instruction or of a
// comment.
var markup = regexp.MustCompile(`^<(?:[!?]?[A-Za-z_][A-Za-z0-9_:.-]*(?:[\s/][^<>]*)?>|!--|\?xml\s)`)

// page matches what HTML pages begin with, after comments and what XML begins with.
var page = regexp.MustCompile(`(?i)<(?:!doctype\s+html|html|head|body|title|meta|script|table|div|p)[\s/>]`)

// markupKind returns HTML or XML for a text that starts with a tag, "" for other
// text. The first line of a CSV file has a tag only as the name of a column, and
// none is closed.
func markupKind(head []byte) string {
	text := bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf")), " \t\r\n")
	text = text[:min(len(text), 4096)]
	switch first := markup.Find(text); {
	case first == nil:
		return ""
	case page.Match(text):
		return "HTML"
	case first[1] == '?' || first[1] == '!' || bytes.Contains(text, []byte("</")) || bytes.HasSuffix(first, []byte("/>")) || bytes.Contains(first, []byte("xmlns")):
		return "XML"
	}
	return ""
}

// Kinds of JSON. Only jsonLines is read.
const (
	jsonLines = "JSON Lines"
	jsonArray = "a JSON array"
	otherJSON = "JSON"
)

// jsonKind returns the kind of JSON that a text starts as, "" for other text. Its first line may
// be longer, unless the text is the whole.
func jsonKind(head []byte, whole bool) string {
	text := bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf")), " \t\r\n")
	first, rest, ended := bytes.Cut(text, []byte("\n"))
	if len(text) == 0 || !bytes.ContainsRune([]byte("{["), rune(text[0])) {
		return ""
	}
	next := bytes.TrimLeft(text[1:], " \t\r\n")
	switch {
	case json.Valid(first) && text[0] == '{', text[0] == '{' && !ended && !whole && bytes.HasPrefix(next, []byte(`"`)):
		return jsonLines
	case json.Valid(first) && len(bytes.TrimSpace(rest)) > 0:
		return "JSON Lines of arrays"
	case len(next) == 0 || !bytes.ContainsRune([]byte("\"{[]}"), rune(next[0])):
		return ""
	case text[0] == '[':
		return jsonArray
	default:
		return otherJSON
	}
}
