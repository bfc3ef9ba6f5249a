package csvfile

import (
	"bytes"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/leadetl/leadetl/internal/rows"
)

// checkEncoding refuses a sample that is not UTF-8 text with line feeds. The
// error contains the command that converts the file.
func (s Sample) checkEncoding() error {
	refuse := func(problem, filter string) error {
		advice := s.advice(filter)
		if other, known := decodable[filter]; known && s.Encoding != "" {
			advice = "Give encoding " + string(other) + ", or convert it" + strings.TrimPrefix(advice, "Convert it")
		}
		return &rows.FormatError{File: s.Name, Problem: problem, Advice: advice}
	}
	p := s.Bytes
	switch {
	// UTF-32's little-endian mark begins with UTF-16's.
	case bytes.HasPrefix(p, []byte{0xff, 0xfe, 0, 0}), bytes.HasPrefix(p, []byte{0, 0, 0xfe, 0xff}):
		return refuse("is UTF-32 text, not UTF-8", "iconv -f UTF-32 -t UTF-8")
	case bytes.HasPrefix(p, []byte{0xff, 0xfe}), bytes.HasPrefix(p, []byte{0xfe, 0xff}):
		return refuse("is UTF-16 text, not UTF-8", "iconv -f UTF-16 -t UTF-8")
	}
	switch utf16Pattern(p) {
	case littleEndian:
		return refuse("is UTF-16 text, not UTF-8", "iconv -f UTF-16LE -t UTF-8")
	case bigEndian:
		return refuse("is UTF-16 text, not UTF-8", "iconv -f UTF-16BE -t UTF-8")
	}
	switch otherEncoding(p, s.Whole) {
	case western:
		return refuse("is Latin-1 or Windows-1252 text, not UTF-8", "iconv -f WINDOWS-1252 -t UTF-8")
	case unknownEncoding:
		if named := path.Ext(strings.ToLower(s.Name)); s.Packing == "" && (named == ".gz" || named == ".zst") {
			return &rows.FormatError{File: s.Name, Problem: "is neither compressed, as its name says, nor UTF-8 text", Advice: "Send it again: it is damaged or encrypted"}
		}
		return &rows.FormatError{File: s.Name, Problem: "is not UTF-8 text", Advice: "Save it as UTF-8, or convert it with iconv from the encoding it was written in"}
	}
	// A carriage return at the very end may be a line end cut in half.
	if bytes.IndexByte(p, '\n') < 0 && bytes.IndexByte(bytes.TrimRight(p, "\r"), '\r') >= 0 {
		return refuse("has lines that end in a carriage return alone", `tr '\r' '\n'`)
	}
	return nil
}

// decodable are the encodings of what filters read.
var decodable = map[string]Encoding{
	"iconv -f UTF-16 -t UTF-8": UTF16, "iconv -f UTF-16LE -t UTF-8": UTF16, "iconv -f UTF-16BE -t UTF-8": UTF16, "iconv -f WINDOWS-1252 -t UTF-8": Windows1252,
}

type byteOrder uint8

const (
	noOrder byteOrder = iota
	littleEndian
	bigEndian
)

// utf16Pattern detects UTF-16 without a mark. At least the punctuation and
// digits of most scripts have a zero byte at every other position.
func utf16Pattern(p []byte) byteOrder {
	p = p[:min(len(p), 64<<10)]
	var zero [2]int
	for i, c := range p {
		if c == 0 {
			zero[i%2]++
		}
	}
	even, odd, enough := zero[0], zero[1], len(p)/8
	switch {
	case len(p) < 4:
		return noOrder
	case odd > enough && even <= odd/8:
		return littleEndian
	case even > enough && odd <= even/8:
		return bigEndian
	}
	return noOrder
}

type encoding uint8

const (
	utf8Encoding encoding = iota // UTF-8, maybe with bad lines
	western                      // Latin-1 or Windows-1252
	unknownEncoding
)

// otherEncoding detects the encoding of a sample: UTF-8, a one-byte encoding of
// a western language, or another one. It does not name the last: a wrong name
// would produce wrong text.
//
// A sample is not UTF-8 if it has invalid bytes and no valid multi-byte
// character, or so few of them that they are there by chance, as in GBK.
func otherEncoding(p []byte, whole bool) encoding {
	invalid, valid, letters := 0, 0, 0
	for i := firstHigh(p, 0); i < len(p); i = firstHigh(p, i) {
		if !whole && !utf8.FullRune(p[i:]) {
			break // cut off by the end of the sample
		}
		if r, n := utf8.DecodeRune(p[i:]); r != utf8.RuneError || n > 1 {
			valid++
			i += n
			continue
		}
		invalid++
		if isWestern(p, i) {
			letters++
		}
		i++
	}
	const byChance = 10 // invalid bytes per valid character
	switch {
	case invalid == 0 || valid > 0 && invalid < byChance*valid:
		return utf8Encoding
	case valid == 0 && letters >= invalid-invalid/10:
		return western
	}
	return unknownEncoding
}

// isWestern reports whether the byte at i is likely a letter or sign of a
// western language: a single byte between ASCII bytes. Words in Cyrillic
// encodings and characters in East Asian encodings are runs of high bytes. In
// Shift-JIS most of them begin with bytes below 0xa0.
func isWestern(p []byte, i int) bool {
	if i > 0 && p[i-1] >= utf8.RuneSelf || i+1 < len(p) && p[i+1] >= utf8.RuneSelf {
		return false
	}
	switch c := p[i]; {
	case c >= 0xc0:
		return c != 0xd7 && c != 0xf7
	case c >= 0xa0:
		// Signs. In Central European encodings some of them are letters within
		// words.
		return i == 0 || !isLetter(p[i-1]) || c == 0xaa || c == 0xba || c == 0xae || c == 0xb7 || c == 0xa0
	default:
		// The euro sign, quotes and dashes, and the letters that Latin-1 lacks.
		return bytes.IndexByte([]byte{0x80, 0x85, 0x8a, 0x8c, 0x8e, 0x91, 0x92, 0x93, 0x94, 0x96, 0x97, 0x99, 0x9a, 0x9c, 0x9e, 0x9f}, c) >= 0 &&
			(c == 0x92 || i+1 == len(p) || !isLetter(p[i+1]) || i > 0 && isLetter(p[i-1]))
	}
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

// firstHigh returns the offset of the first non-ASCII byte from i on.
func firstHigh(p []byte, i int) int {
	for i < len(p) && p[i] < utf8.RuneSelf {
		i++
	}
	return i
}

// advice returns the command that converts the file with a filter.
func (s Sample) advice(filter string) string {
	if s.Name == "-" {
		return "Pipe it through " + filter + " first"
	}
	name := quoteShell(s.Name)
	switch s.Packing {
	case "gzip":
		return "Convert it: gzip -dc " + name + " | " + filter + " > " + quoteShell(converted(s.Name))
	case "zstd":
		return "Convert it: zstd -dc " + name + " | " + filter + " > " + quoteShell(converted(s.Name))
	}
	return "Convert it: " + filter + " < " + name + " > " + quoteShell(converted(s.Name))
}

// converted returns the name for a converted copy of a file: a.csv.gz →
// a.utf8.csv.
func converted(name string) string {
	for _, suffix := range []string{".gz", ".zst"} {
		name = strings.TrimSuffix(name, suffix)
	}
	return strings.TrimSuffix(name, ".csv") + ".utf8.csv"
}

// quoteShell quotes a name if a shell would change it.
func quoteShell(name string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-./+@%=:,", r)
	}
	if strings.IndexFunc(name, func(r rune) bool { return !plain(r) }) < 0 {
		return name
	}
	return "'" + strings.ReplaceAll(name, "'", `'\''`) + "'"
}
