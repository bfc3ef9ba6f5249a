package request

import (
	"encoding/hex"
	"encoding/json"
	"strings"

	"github.com/google/uuid"
)

// Result reads the body of a result call. The payload is its resolution_id as it was
// sent, and nothing else.
func Result(o Object) (id uuid.UUID, payload json.RawMessage, problems []Problem) {
	const name = "resolution_id"
	f := form{object: o}
	given, ok := f.requiredText(name)
	if ok {
		if id, ok = ParseID(given); !ok {
			f.problem("/"+name, "invalid_id", "must be a resolution id: "+idPrefix+" and 32 hexadecimal digits")
		}
	}
	if problems = f.problems.all(); problems != nil {
		return uuid.UUID{}, nil, problems
	}
	payload = append(payload, `{"resolution_id":`...)
	payload = appendText(payload, given)
	return id, append(payload, '}'), nil
}

// Replay reads the body of a call that posts a callback again.
func Replay(o Object) (webhookID string, problems []Problem) {
	f := form{object: o}
	webhookID, _ = f.requiredText("webhook_id")
	return webhookID, f.problems.all()
}

const idPrefix = "res_"

// FormatID writes a resolution id as it is on the wire: res_ and 32 lower-case
// hex digits.
func FormatID(id uuid.UUID) string {
	var text [len(idPrefix) + 2*len(id)]byte
	copy(text[:], idPrefix)
	hex.Encode(text[len(idPrefix):], id[:])
	return string(text[:])
}

// ParseID reads a resolution id: 32 hex digits of either case, with or without res_
// in front.
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
