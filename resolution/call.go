package resolution

import (
	"errors"
	"strings"
	"time"
)

// Call is one question about one record, as it goes to a service.
type Call struct {
	Request
	// Address is the profile address to send; empty means https:// and the key.
	Address string
	// IdempotencyKey is sent as the header of that name; empty sends none.
	IdempotencyKey string
	// ClientRef is sent as metadata.client_ref. It identifies a callback that does
	// not name its resolution; empty sends none.
	ClientRef string
}

// NoMatch is the reason of a service's answer without data.
const NoMatch = "no_match"

// WithAddress returns a key together with the Call.Address to ask about it, for what hands
// on keys. The zero byte between them is in no key.
func WithAddress(key, address string) string {
	if address == "" {
		return key
	}
	return key + "\x00" + address
}

// CutAddress undoes WithAddress.
func CutAddress(asked string) (key, address string) {
	key, address, _ = strings.Cut(asked, "\x00")
	return key, address
}

// WithPerson returns what WithAddress does together with the values of a person that the row of the key has, as JSON.
func WithPerson(asked, values string) string {
	if values == "" {
		return asked
	}
	key, address := CutAddress(asked)
	return key + "\x00" + address + "\x00" + values
}

// CutPerson undoes WithPerson.
func CutPerson(asked string) (rest, values string) {
	if key, address := CutAddress(asked); strings.Contains(address, "\x00") {
		address, values, _ = strings.Cut(address, "\x00")
		return WithAddress(key, address), values
	}
	return asked, ""
}

// Distinct is the text that tells questions of a run apart: the key, with the values of a person.
func Distinct(asked string) string {
	rest, values := CutPerson(asked)
	key, _ := CutAddress(rest)
	return key + values
}

// SearchCall asks a service to begin one page of a keyword search, or its
// count.
type SearchCall struct {
	// Operation is KeywordToLead or KeywordToLeadCount.
	Operation Operation
	KeywordSearch
	SearchPage
	// IdempotencyKey and ClientRef are those of Call.
	IdempotencyKey, ClientRef string
}

// About is what surrounds the data of every answer of a service.
type About struct {
	// ID is the resolution's id as the service writes it, "" when it has none.
	ID string
	// RequestID is the service's name for the call, for its operator.
	RequestID string
	// Status is the HTTP status.
	Status int
	// Spent is what the call cost in credits, nil when the service does not
	// say.
	Spent *int64
	// Replayed says that the service answered from an earlier call with the
	// same idempotency key.
	Replayed bool
	// Pending says that the answer comes later: by a callback or by polling.
	Pending bool
	// Quarantined counts values left out because they are none, such as a plain
	// address or a word in place of a hash.
	Quarantined int
	// OtherAddress says that the data are of an address that was not asked about, which
	// may be another one of the same person.
	OtherAddress bool
	// Pace is what the service said about its limits.
	Pace Pace
	// KeyWindow is how long the service remembers an idempotency key, 0 when it does
	// not say.
	KeyWindow time.Duration
	// Retiring is what the service says of the operation's end, "" when
	// nothing: the Deprecation and Sunset headers, as dates.
	Retiring string
	// Body is the answer as it was received.
	Body []byte
}

// Reply is the answer of a service to a Call or a SearchCall. The result of a
// search that is Pending is asked for with its ID.
type Reply struct {
	About
	// Found is the data about a single record, Reason why there are none; both are empty
	// while it is Pending.
	Found  AnswerRow
	Reason string
	// Helpers are values beside the data, by name: they decide whether the data is taken.
	Helpers map[string]string
	// Page is the result of a finished search; nil before, and for a single record.
	Page *FoundPage
}

// Result is what came of one of the Calls that shared a request.
type Result struct {
	Reply Reply
	Err   error
}

// ErrAskAlone says of a Call that the service does not take it together with others. It was
// not billed, and may be asked alone.
var ErrAskAlone = errors.New("the service does not take the question together with others")

// FoundPage is a page of the leads of a search, or its count.
type FoundPage struct {
	Result SearchResult
	Count  SearchCount
	// HasMore says that more pages follow.
	HasMore bool
	// LeftOut counts leads without data. They may be billed all the same.
	LeftOut int
}

// Delivery is an answer that a service posts after the call.
type Delivery struct {
	// ID is the resolution's id, and ClientRef the metadata.client_ref of its
	// call; "" where the service does not say.
	ID, ClientRef string
	// RequestID is the service's name for the delivery.
	RequestID string
	// Spent is what the answer cost in credits, nil when the headers and the body
	// do not say.
	Spent *int64
	// Body has the form of an answer with status 200.
	Body []byte
}

// ErrNotAsked says that a Delivery answers no question that was asked.
var ErrNotAsked = errors.New("the callback answers nothing that was asked")

// Pace is what an answer says about the rate of calls. A zero field was not sent.
type Pace struct {
	// RetryAfter is how long to wait before the next call.
	RetryAfter time.Duration
	// Limited says that Remaining and Reset are known: so many calls are left
	// until Reset from now.
	Limited   bool
	Remaining int
	Reset     time.Duration
	// Quota is how many calls are granted in each Window, of several limits
	// those of the slowest; Window is 0 where only Quota was said.
	Quota  int
	Window time.Duration
}
