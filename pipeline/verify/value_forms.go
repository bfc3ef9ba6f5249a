package verify

import (
	"encoding/base64"
	"net/netip"
	"strings"
)

// textForms are the forms of texts by name. The name of a form that ends in "…" is
// followed by words, as in "one of: b2b b2c".
var textForms = map[string]func(value []byte) bool{
	"md5 in hex":        func(v []byte) bool { return isHex(v, 32) },
	"sha1 in hex":       func(v []byte) bool { return isHex(v, 40) },
	"sha256 in hex":     func(v []byte) bool { return isHex(v, 64) },
	"sha256 in base64":  isBase64,
	"E.164":             isE164,
	"region":            func(v []byte) bool { return len(v) == 2 && isUpper(v[0]) && isUpper(v[1]) || string(v) == "001" },
	"text, never empty": func(v []byte) bool { return len(v) > 0 },
	"ip":                isIP,
}

// numberForms are the forms of numbers by name.
var numberForms = map[string]func(n int64) bool{
	"from 0": func(n int64) bool { return n >= 0 },
	"from 1": func(n int64) bool { return n >= 1 },
	"year":   func(n int64) bool { return n >= 1 && n <= 9999 },
}

// floatForms are the forms of fractions by name.
var floatForms = map[string]func(f float64) bool{
	"from 0 to 1": func(f float64) bool { return f >= 0 && f <= 1 },
}

const wordsForm = "one of: "

// textForm returns the check of a form of texts, nil without one.
func textForm(form string) func([]byte) bool {
	words, ok := strings.CutPrefix(form, wordsForm)
	if !ok {
		return textForms[form]
	}
	known := map[string]bool{}
	for _, word := range strings.Fields(words) {
		known[word] = true
	}
	return func(v []byte) bool { return known[string(v)] }
}

func isHex(v []byte, n int) bool {
	if len(v) != n {
		return false
	}
	for _, c := range v {
		if !hexDigits[c] {
			return false
		}
	}
	return true
}

// hexDigits is a table, because every row has about a hundred digits.
var hexDigits = func() (table [256]bool) {
	for _, c := range "0123456789abcdef" {
		table[c] = true
	}
	return table
}()

func isBase64(v []byte) bool {
	var sum [33]byte
	if len(v) != 44 {
		return false
	}
	n, err := base64.StdEncoding.Strict().Decode(sum[:], v)
	return err == nil && n == 32
}

// isE164 reports whether a text is a plus sign and at most 15 digits, the first of them
// not 0. Source: ITU-T E.164, 6.
func isE164(v []byte) bool {
	if len(v) < 3 || len(v) > 16 || v[0] != '+' || v[1] == '0' {
		return false
	}
	for _, c := range v[1:] {
		if c < '0' || c > '9' {
			return false
		}
	}
	return true
}

func isUpper(c byte) bool { return c >= 'A' && c <= 'Z' }

func isIP(v []byte) bool {
	_, err := netip.ParseAddr(string(v))
	return err == nil
}
