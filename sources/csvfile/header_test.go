package csvfile

import (
	"fmt"
	"strings"
	"testing"
)

func TestInspect(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"comma", "id,email\n1,a;b\n", `',' ["id" "email"]`},
		{"semicolon", "id;email\n1;a,b\n", `';' ["id" "email"]`},
		{"semicolon with decimal commas", "id;price;x\n1;3,50;2,5\n2;1,25;1,5\n", `';' ["id" "price" "x"]`},
		{"comma in the names, semicolon between them", "name, first;email\nAda;x\nBob;y\n", `';' ["name, first" "email"]`},
		{"as many commas as semicolons", "email;amount, EUR\nx@y.example;1,50\nz@y.example;2,75\n", `';' ["email" "amount, EUR"]`},
		{"as many semicolons as commas", "email,a;b\nx@y.example,1;5\n", `',' ["email" "a;b"]`},
		{"more commas than semicolons", "Email;price, net, EUR\nx@y.example;1,2,3\n", `';' ["Email" "price, net, EUR"]`},
		{"more bars than tabs", "name|alias|x\temail\na|b|c\tx@y.example\n", `'\t' ["name|alias|x" "email"]`},
		{"a wanted name that fits no row", "email;a,b\nx,1\ny,2\n", `',' ["email;a" "b"]`},
		{"tab", "id\temail\n1\tx\n", `'\t' ["id" "email"]`},
		{"pipe", "id|email\r\n1|x\r\n", `'|' ["id" "email"]`},
		{"one column", "email\na|b\nx;y\n", `',' ["email"]`},
		{"header only", "a;b;c", `';' ["a" "b" "c"]`},
		{"quoted delimiters have no say", "a;\"x,y,z\"\n1;2\n", `';' ["a" "x,y,z"]`},
		{"broken lines have no say", "a;b\n\"1\"x;2\n1;2\n3;4\n", `';' ["a" "b"]`},
		{"names are trimmed", "\ufeff id ,\u00a0e-mail\t,\"\ufeffname \"\n", `',' ["id" "e-mail" "name"]`},
		{"names that are missing or twice", "a,,a,\" \"\n", `',' ["a" "column_2" "a" "column_4"]`},
		{"quotes in a name", "\"the \"\"id\"\"\",b\n", `',' ["the \"id\"" "b"]`},
		{"blank lines first", "\n\r\n\na,b\n", `',' ["a" "b"]`},
		{"utf-8 with a bad line", "a,b\né,2\n\xe9,3\n", `',' ["a" "b"]`},

		{"delimiter named", "sep=;\nid,x;email\n1,a;b\n", `';' ["id,x" "email"]`},
		{"delimiter named, of those not looked for", "sep=^\r\nid^email\r\n1^2\r\n", `'^' ["id" "email"]`},
		{"delimiter named: tab", "SEP=\t\nid\temail\n", `'\t' ["id" "email"]`},
		{"delimiter named in quotes, after a mark and before blank lines", "\ufeff\n\"Sep=|\"\r\n\r\nid|email\n", `'|' ["id" "email"]`},
		{"names that only look like a named delimiter", "sep=;;b\n1;;2\n", `';' ["sep=" "column_2" "b"]`},
		{"no delimiter named", "sep=\na\n", `',' ["sep="]`},
		{"a letter separates nothing", "sep=a,b\n1,2\n", `',' ["sep=a" "b"]`},
		{"a named delimiter is no header", "sep=;\n", "a.csv is empty: it has no header line. Write the names of the columns in its first line"},
		{"a named delimiter counts as a line", "sep=,\n\"a\"b,c\n1,2\n", "a.csv:2 has a header line with broken quotes (stray_quote). Correct the quotes in its first line"},

		{"empty", "", "a.csv is empty: it has no header line. Write the names of the columns in its first line"},
		{"only blank lines", "\n\r\n", "a.csv is empty: it has no header line. Write the names of the columns in its first line"},
		{"only a mark", "\ufeff", "a.csv is empty: it has no header line. Write the names of the columns in its first line"},
		{"utf-16 little-endian", "\xff\xfea\x00,\x00b\x00\n\x00", "a.csv is UTF-16 text, not UTF-8. Convert it: iconv -f UTF-16 -t UTF-8 < a.csv > a.utf8.csv"},
		{"utf-16 big-endian", "\xfe\xff\x00a\x00,\x00b\x00\n", "a.csv is UTF-16 text, not UTF-8. Convert it: iconv -f UTF-16 -t UTF-8 < a.csv > a.utf8.csv"},
		{"utf-16 little-endian without mark", "i\x00d\x00,\x00b\x00\n\x00", "a.csv is UTF-16 text, not UTF-8. Convert it: iconv -f UTF-16LE -t UTF-8 < a.csv > a.utf8.csv"},
		{"utf-16 big-endian without mark", "\x00i\x00d\x00,\x00b\x00\n", "a.csv is UTF-16 text, not UTF-8. Convert it: iconv -f UTF-16BE -t UTF-8 < a.csv > a.utf8.csv"},
		{"utf-32", "\xff\xfe\x00\x00a\x00\x00\x00", "a.csv is UTF-32 text, not UTF-8. Convert it: iconv -f UTF-32 -t UTF-8 < a.csv > a.utf8.csv"},
		{"latin-1", "id,name\n1,Andr\xe9\n", "a.csv is Latin-1 or Windows-1252 text, not UTF-8. Convert it: iconv -f WINDOWS-1252 -t UTF-8 < a.csv > a.utf8.csv"},
		{"latin-1, many words", "id,name\n1,Ren\xe9e M\xfcller\n2,Jos\xe9 Pe\xf1a\n", "a.csv is Latin-1 or Windows-1252 text, not UTF-8. Convert it: iconv -f WINDOWS-1252 -t UTF-8 < a.csv > a.utf8.csv"},
		{"windows-1252", "id,name\n1,O\x92Brien \x80\n", "a.csv is Latin-1 or Windows-1252 text, not UTF-8. Convert it: iconv -f WINDOWS-1252 -t UTF-8 < a.csv > a.utf8.csv"},
		{"shift-jis", "id,name\n1,\x8e\x52\x93\x63\n2,\x83\x65\x83\x58\x83\x67\n", notUTF8},
		{"koi8-r", "id,name\n1,\xe9\xd7\xc1\xce\n", notUTF8},
		{"windows-1251", "id,name\n1,\xc8\xe2\xe0\xed\n", notUTF8},
		{"gbk", "id,name\n1,\xd5\xc5\xc8\xfd\n2,\xc0\xee\xcb\xc4\n", notUTF8},
		{"gbk with a pair that is valid UTF-8 by chance", "id,name\n" + strings.Repeat("1,\xd5\xc5\xc8\xfd\n", 9) + "2,\xc2\xa9\n", notUTF8},
		{"windows-1250", "id,name\n1,Micha\xb3\n", notUTF8},
		{"lone carriage returns", "a,b\r1,2\r", `a.csv has lines that end in a carriage return alone. Convert it: tr '\r' '\n' < a.csv > a.utf8.csv`},
		{"broken quotes", "\n\"a\"b,c\n1,2\n", "a.csv:2 has a header line with broken quotes (stray_quote). Correct the quotes in its first line"},
		{"unclosed quote", "\"a,b\n1,2\n", "a.csv:1 has a header line with broken quotes (unclosed_quote). Correct the quotes in its first line"},
		{"nul", "a\x00,b\n1,2\n3,4\n", "a.csv:1 has a header line with zero bytes: it is no text file, or a damaged one. Write it again as CSV (UTF-8)"},
		{"a very long line", strings.Repeat("x", SampleSize+1), "a.csv:1 has a header line of more than 1 MiB. Check that it is a CSV file and that every quote in its first line is closed"},
	}
	for _, test := range tests {
		sample := test.text[:min(len(test.text), SampleSize)]
		h, err := Inspect(Sample{Name: "a.csv", Bytes: []byte(sample), Whole: len(sample) == len(test.text), Wanted: []string{"email"}}, 0)
		got := fmt.Sprintf("%q %q", h.Delimiter, h.Columns)
		if err != nil {
			got = err.Error()
		}
		if got != test.want {
			t.Errorf("%s: %.50q\n got %s\nwant %s", test.name, test.text, got, test.want)
		}
	}
}

func TestConversionAdvice(t *testing.T) {
	tests := []struct{ name, packing, want string }{
		{"a.csv", "", "Convert it: tr x y < a.csv > a.utf8.csv"},
		{"my list.csv", "", "Convert it: tr x y < 'my list.csv' > 'my list.utf8.csv'"},
		{"it's", "", `Convert it: tr x y < 'it'\''s' > 'it'\''s.utf8.csv'`},
		{"a.csv.gz", "gzip", "Convert it: gzip -dc a.csv.gz | tr x y > a.utf8.csv"},
		{"a.csv.zst", "zstd", "Convert it: zstd -dc a.csv.zst | tr x y > a.utf8.csv"},
		{"-", "", "Pipe it through tr x y first"},
	}
	for _, test := range tests {
		if got := (Sample{Name: test.name, Packing: test.packing}).advice("tr x y"); got != test.want {
			t.Errorf("%s %s: %s, want %s", test.name, test.packing, got, test.want)
		}
	}
}

const notUTF8 = "a.csv is not UTF-8 text. Save it as UTF-8, or convert it with iconv from the encoding it was written in"

func TestDamagedGzip(t *testing.T) {
	for name, want := range map[string]string{"a.csv": notUTF8, "A.csv.GZ": "A.csv.GZ is neither compressed, as its name says, nor UTF-8 text. Send it again: it is damaged or encrypted"} {
		if _, err := Inspect(Sample{Name: name, Bytes: []byte("a\x81\x8d\x8f\xff\n\x00\x01\x02")}, 0); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
}

// The end of the sample may cut a character; that makes it no Latin-1.
func TestSampleMayCutACharacter(t *testing.T) {
	for _, cut := range []string{"a,b\n1,\xc3", "a,b\n1,\xf0\x9f\x98"} {
		if _, err := Inspect(Sample{Name: "a.csv", Bytes: []byte(cut)}, 0); err != nil {
			t.Errorf("%q: %v", cut, err)
		}
	}
}
