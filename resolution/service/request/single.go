package request

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/transforms/profile"
	"github.com/leadetl/leadetl/transforms/search"
)

// Single reads the body of a single-record operation; any other is the caller's
// mistake and panics. With problems the call is the zero value.
func (l Limits) Single(op resolution.Operation, o Object, rules profile.Rules) (SingleCall, []Problem) {
	if op.Identifier() == "" {
		panic(fmt.Sprintf("request: %s is no single-record operation", op))
	}
	f := form{object: o, limits: l}
	call := SingleCall{Key: f.identifier(op.Identifier(), rules)}
	switch op {
	case resolution.IPToCompany: // has its answer at once and takes nothing else
	case resolution.EmailToHEM, resolution.NetworkToHEM, resolution.NetworkToPhone:
		f.require("callback_url")
		call.CallbackURL = f.common()
	case resolution.Deanonymization:
		call.CallbackURL = f.common()
		f.visit()
	default:
		call.CallbackURL = f.common()
	}
	if problems := f.problems.all(); problems != nil {
		return SingleCall{}, problems
	}
	call.Payload = json.RawMessage(o.text)
	if op == resolution.NetworkToPhone {
		call.Payload = o.withoutScheme(string(resolution.NetworkURL))
	}
	return call, nil
}

// common reads what every operation with an envelope takes.
func (f *form) common() (callback string) {
	callback = f.address("callback_url", withHost)
	f.metadata()
	return callback
}

// visit checks what deanonymization may be told about the visitor. Nothing of
// it is looked up.
func (f *form) visit() {
	f.shortText("user_agent", f.limits.UserAgent)
	f.address("page_url", anyAddress)
	f.address("referrer", anyAddress)
	f.moment("visited_at")
	f.shortText("visitor_id", f.limits.VisitorID)
}

// withoutScheme is the body with the scheme taken off the address that one of
// its members, a string, holds. The rest of the address stays as it came.
func (o Object) withoutScheme(name string) json.RawMessage {
	for _, m := range o.members {
		if m.name != name {
			continue
		}
		address := search.Trimmed(unquote(o.text[m.from:m.to]))
		// The same cut as in profile.Rules.Parse: a :// further on is no scheme's.
		if scheme, rest, found := strings.Cut(address, "://"); found && !strings.ContainsAny(scheme, "/?#") {
			address = rest
		}
		address = strings.TrimPrefix(address, "//")

		payload := make([]byte, 0, len(o.text))
		payload = append(payload, o.text[:m.from]...)
		payload = appendText(payload, address)
		return append(payload, o.text[m.to:]...)
	}
	return json.RawMessage(o.text)
}
