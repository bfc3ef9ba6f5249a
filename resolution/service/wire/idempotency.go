package wire

import (
	"net/http"
	"strings"
)

// ErrKeyReused answers an Idempotency-Key that was used with another body.
var ErrKeyReused = Refuse(KeyReused, "This Idempotency-Key was used with another body. Use a new key for a new request.")

// IdempotencyKey reads the header Idempotency-Key: 1 to 255 printable ASCII
// characters, bare or as a string of RFC 8941. Both spellings mean the same key.
func IdempotencyKey(h http.Header) (key string, given bool, err error) {
	values := h["Idempotency-Key"]
	if len(values) == 0 {
		return "", false, nil
	}
	key, ok := strings.Trim(values[0], " \t"), len(values) == 1
	if ok && strings.HasPrefix(key, `"`) {
		key, ok = unquote(key)
	}
	if !ok || key == "" || len(key) > 255 || strings.ContainsFunc(key, func(r rune) bool { return r < ' ' || r > '~' }) {
		return "", false, Refuse(ValidationError, "The header Idempotency-Key has to be 1 to 255 printable ASCII characters, bare or in quotes.")
	}
	return key, true, nil
}

// unquote reads a string of RFC 8941, 3.3.3, without parameters.
func unquote(s string) (string, bool) {
	if len(s) < 2 || s[len(s)-1] != '"' {
		return "", false
	}
	var b strings.Builder
	for i := 1; i < len(s)-1; i++ {
		if s[i] == '"' {
			return "", false
		}
		if s[i] == '\\' {
			if i++; i == len(s)-1 || s[i] != '"' && s[i] != '\\' {
				return "", false
			}
		}
		b.WriteByte(s[i])
	}
	return b.String(), true
}
