package wire

import (
	"testing"
)

func TestParseDelimiter(t *testing.T) {
	for text, want := range map[string]byte{"": 0, ",": ',', ";": ';', "|": '|', "tab": '\t', `\t`: '\t', "\t": '\t', ":": ':'} {
		if got, err := ParseDelimiter(text); got != want || err != nil {
			t.Errorf("parseDelimiter(%q) = %q, %v; want %q", text, got, err, want)
		}
	}
	for _, text := range []string{`"`, "\n", "\r", ";;", "é", "comma"} {
		if got, err := ParseDelimiter(text); err == nil {
			t.Errorf("parseDelimiter(%q) = %q, want an error", text, got)
		}
	}
}
