package request

import (
	"encoding/hex"
	"strings"

	"github.com/google/uuid"
)

const idPrefix = "res_"

// FormatID writes a resolution id as it is on the wire: res_ and 32 lower-case
// hex digits.
func FormatID(id uuid.UUID) string {
	var text [len(idPrefix) + 2*len(id)]byte
	copy(text[:], idPrefix)
	hex.Encode(text[len(idPrefix):], id[:])
	return string(text[:])
}

// ParseID reads a resolution id: 32 hex digits of either case, with res_ in
// front or without.
func ParseID(s string) (id uuid.UUID, ok bool) {
	if len(s) == len(idPrefix)+2*len(id) && strings.EqualFold(s[:len(idPrefix)], idPrefix) {
		s = s[len(idPrefix):]
	}
	if len(s) != 2*len(id) {
		return uuid.UUID{}, false
	}
	if _, err := hex.Decode(id[:], []byte(s)); err != nil {
		return uuid.UUID{}, false
	}
	return id, true
}
