package sources

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf16"
)

// wide is a text in UTF-16.
func wide(text string, big bool) string {
	var b []byte
	for _, u := range utf16.Encode([]rune(text)) {
		if big {
			b = append(b, byte(u>>8), byte(u))
		} else {
			b = append(b, byte(u), byte(u>>8))
		}
	}
	return string(b)
}

// TestEncodings: text of another encoding, and lines before the header.
func TestEncodings(t *testing.T) {
	plain := "id,email\n1,é𝄞@x\n2,y\n"
	long := "id,email\n" + strings.Repeat("1,ÄÖ𝄞@x.example\n", 40_000)
	folder(t, map[string]string{
		"le.csv": wide("\ufeff"+plain, false), "be.csv": wide("\ufeff"+plain, true), "none.csv": wide(plain, false), "big.csv": wide(plain, true),
		"packed.csv.gz": gz(wide("\ufeff"+plain, false)), "half.csv": wide("\ufeff"+"id,email\n1,", false) + "\x00\xd8" + wide("@x\n2,y\n3,z", false) + "\x41",
		"long.csv":    wide("\ufeff"+long, false),
		"western.csv": "id,email\n1,\x80\xe9\x93@x\n2,\x81\n3,y\n", "french.csv": "id,email\n1,Andr\xe9\n", "latin.csv": "id,email\n1,\x81\xe9\n",
		"skip.csv": "\xef\xbb\xbfExport of 2026-11-20\n\n\"an open quote\nid,email\n1,x\nbad\n2,y\n", "sep.csv": "title\nsep=;\nid;email\n1;x\n",
		"p.parquet": "PAR1\x15\x04PAR1",
	})
	for _, f := range []struct {
		file, encoding string
		skip           int
		want           []string
		err            string
	}{
		{"le.csv", "utf-16", 0, []string{":1 é𝄞@x", ":2 y"}, ""},
		{"be.csv", "utf-16", 0, []string{":1 é𝄞@x", ":2 y"}, ""},
		{"none.csv", "utf-16", 0, []string{":1 é𝄞@x", ":2 y"}, ""},
		{"big.csv", "utf-16", 0, []string{":1 é𝄞@x", ":2 y"}, ""},
		{"packed.csv.gz", "utf-16", 0, []string{":1 é𝄞@x", ":2 y"}, ""},
		{"half.csv", "utf-16", 0, []string{":2 y", `:2 invalid_utf8 "1,\xff@x"`, `:4 invalid_utf8 "3,z\xff"`}, ""},
		{"western.csv", "windows-1252", 0, []string{":1 €é“@x", ":3 y", `:3 invalid_utf8 "2,\xff"`}, ""},
		{"latin.csv", "latin-1", 0, []string{":1 \u0081é"}, ""},
		{"skip.csv", "utf-8", 3, []string{":1 x", ":3 y", `:6 ragged_row "bad"`}, ""},
		{"sep.csv", "", 1, []string{":1 x"}, ""},
		{"skip.csv", "utf-8", 9, nil, "skip.csv has no header line after 9 skipped lines. Give fewer skip_lines"},
		{"le.csv", "utf-8", 0, nil, "le.csv is UTF-16 text, not UTF-8. Give encoding utf-16, or convert it: iconv -f UTF-16 -t UTF-8 < le.csv > le.utf8.csv"},
		{"french.csv", "utf-8", 0, nil, "french.csv is Latin-1 or Windows-1252 text, not UTF-8. Give encoding windows-1252, or convert it: iconv -f WINDOWS-1252 -t UTF-8 < french.csv > french.utf8.csv"},
		{"p.parquet", "utf-16", 0, nil, "p.parquet is Parquet, and encoding and skip_lines are for CSV. Leave them out, or leave out the file"},
		{"p.parquet", "", 1, nil, "p.parquet is Parquet, and encoding and skip_lines are for CSV. Leave them out, or leave out the file"},
		{"le.csv", "ebcdic", 0, nil, `unknown encoding "ebcdic"; it is one of utf-8, utf-16, windows-1252, latin-1`},
	} {
		got, err := rowsOf([]string{f.file}, []string{"email"}, Options{Encoding: f.encoding, SkipLines: f.skip})
		for i := range got {
			got[i] = strings.TrimPrefix(got[i], f.file)
		}
		text := ""
		if err != nil {
			text = err.Error()
		}
		if !slices.Equal(got, f.want) || text != f.err {
			t.Errorf("%s in %s, %d skipped: %q, %q\nwant %q, %q", f.file, f.encoding, f.skip, got, text, f.want, f.err)
		}
	}
	if got, err := rowsOf([]string{"long.csv"}, []string{"email"}, Options{Encoding: "utf-16"}); err != nil || len(got) != 40_000 || got[39_999] != "long.csv:40000 ÄÖ𝄞@x.example" {
		t.Errorf("%d rows of a long file, %v", len(got), err)
	}
	stream := Options{Stdin: strings.NewReader(wide("\ufeff"+plain, false)), Encoding: "utf-16"}
	if got, err := rowsOf([]string{"-"}, []string{"email"}, stream); err != nil || len(got) != 2 || got[0] != "-:1 é𝄞@x" {
		t.Errorf("of a stream: %q, %v", got, err)
	}
}
