package wire

import (
	"net/http"
	"strings"
	"testing"
)

func TestIdempotencyKeyForms(t *testing.T) {
	for _, c := range []struct {
		header string
		key    string // "" is refused
	}{
		{`8e03978e-40d5-43dd-bc93-6894a57f9324`, `8e03978e-40d5-43dd-bc93-6894a57f9324`},
		{`"8e03978e-40d5-43dd-bc93-6894a57f9324"`, `8e03978e-40d5-43dd-bc93-6894a57f9324`},
		{`"a \"b\" \\ c"`, `a "b" \ c`},
		{`a "b"`, `a "b"`},
		{strings.Repeat("k", 255), strings.Repeat("k", 255)},
		{strings.Repeat("k", 256), ""},
		{`""`, ""},
		{`"`, ""},
		{`"a`, ""},
		{`"a"b"`, ""},
		{`"a\b"`, ""},
		{`"a\"`, ""},
		{"ä", ""},
		{"a\tb", ""},
		{"", ""},
	} {
		key, given, err := IdempotencyKey(http.Header{"Idempotency-Key": {c.header}})
		if key != c.key || given != (c.key != "") || (err == nil) != given {
			t.Errorf("%s: %q %v %v, want %q", c.header, key, given, err, c.key)
		}
	}
	if _, given, err := IdempotencyKey(http.Header{}); given || err != nil {
		t.Error("no header: ", given, err)
	}
	if _, _, err := IdempotencyKey(http.Header{"Idempotency-Key": {"a", "b"}}); err == nil {
		t.Error("two headers are taken")
	}
}
