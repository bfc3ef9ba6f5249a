package request

import (
	"encoding/json"

	"github.com/google/uuid"
)

// Result reads the body of a result call. The payload is the resolution_id as
// given and nothing else.
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
