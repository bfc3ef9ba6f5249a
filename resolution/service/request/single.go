package request

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/transforms/profile"
	"github.com/leadetl/leadetl/transforms/search"
)

// Single reads the body of a single-record operation. Any other operation panics. If
// there are problems, the call is the zero value.
func (l Limits) Single(op resolution.Operation, o Object, rules profile.Rules) (SingleCall, []Problem) {
	if op.Identifier() == "" {
		panic(fmt.Sprintf("request: %s is no single-record operation", op))
	}
	f := form{object: o, limits: l}
	call := SingleCall{Key: f.identifier(op.Identifier(), rules)}
	facts := op.Facts()
	if facts.Callback == resolution.RequiredCallback {
		f.require("callback_url")
	}
	if facts.Callback != resolution.NoCallback { // else it takes nothing else
		call.CallbackURL = f.common()
	}
	if facts.Gives == resolution.GivesVisitor {
		f.visit()
	}
	if problems := f.problems.all(); problems != nil {
		return SingleCall{}, problems
	}
	call.Payload = json.RawMessage(o.text)
	if facts.Gives == resolution.GivesPhone {
		call.Payload = o.withoutScheme(string(resolution.NetworkURL))
	}
	return call, nil
}

// common reads the fields of all operations that can be answered later.
func (f *form) common() (callback string) {
	callback = f.address("callback_url", withHost)
	f.metadata()
	return callback
}

// visit checks the optional fields about a visitor. They are not used.
func (f *form) visit() {
	f.shortText("user_agent", f.limits.UserAgent)
	f.address("page_url", anyAddress)
	f.address("referrer", anyAddress)
	f.moment("visited_at")
	f.shortText("visitor_id", f.limits.VisitorID)
}

// withoutScheme returns the body without the scheme of an address, which is the
// text of one member.
func (o Object) withoutScheme(name string) json.RawMessage {
	for _, m := range o.members {
		if m.name != name {
			continue
		}
		address := search.Trimmed(unquote(o.text[m.from:m.to]))
		// As in profile.Rules.Parse, a :// after / ? or # does not end a scheme.
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
