// Package provider is the language of provider files, and the client that asks a provider by its
// entry. An entry says how an HTTP API of others is asked and what its answers mean: request, key,
// batches, prices, rules for answers, and where the values of columns are.
//
// The one thing to know before using it: an answer that fits no rule is Unknown, which means that
// it may have been billed. Nothing here guesses.
package provider

import (
	"embed"
	"maps"
	"math/big"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/leadetl/leadetl/internal/jsontree"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/exchange"
)

// Entries are the entries of a file, or of several, by their names.
type Entries map[string]*Entry

// Entry describes a provider. It does not change after Parse, and is safe from many goroutines.
type Entry struct {
	Name string
	// Documented is the day of the documentation that the entry was written by, "" if it is not
	// said.
	Documented string
	// Tried is the day on which the entry read answers of the provider itself as it should, "" before
	// somebody has tried it.
	Tried string
	Price Price
	// Rate are the limits that the provider asks for; all of them hold.
	Rate []Rate
	// Check is Email or Phone for a verifier, which says something about a value that another
	// resolver found; else "".
	Check resolution.Identifier
	// Later is how long answers that come later are asked for; nil if there are none.
	Later *Polling
	// RetryBills says that the provider bills each retry of a request.
	RetryBills bool

	file     string // that it is read from
	base     *url.URL
	headers  []header
	key      credential
	echo     *path // where an answer says its key, nil if it does not
	rules    []rule
	fields   fields
	helpers  []string
	cost     figure
	unit     *big.Rat // what the figure is multiplied with
	limit    string   // a header with the requests that are left, "" without one
	requests map[resolution.Identifier]*Request
	later    *poll
	balance  *balance // nil if the provider does not say it
	warnings []string
	digest   [32]byte

	companies exchange.Companies
}

// Price is what an answer costs, in whole units of the provider's credits, if neither the answer nor
// its rule says it. Rules is the highest price that a rule says.
type Price struct{ Match, NoMatch, BadRow, Later, Rules int64 }

// Max is the most that an answer costs.
func (p Price) Max() int64 { return max(p.Match, p.NoMatch, p.BadRow, p.Later, p.Rules) }

// Of is the price of an answer with an outcome; 0 for one that is not billed.
func (p Price) Of(o Outcome) int64 {
	switch o {
	case Match:
		return p.Match
	case NoMatch:
		return p.NoMatch
	case BadRow:
		return p.BadRow
	case Later:
		return p.Later
	}
	return 0
}

// Rate is a limit of requests, or of keys, in a time.
type Rate struct {
	Count int
	Per   time.Duration
	Keys  bool // keys are counted, not requests
}

// Polling says how often an answer that comes later is asked for, and how long.
type Polling struct{ Every, Wait time.Duration }

// figure is where an answer says what it cost: a header, or a path in the body.
type figure struct {
	header string
	body   path
	isBody bool
}

func (f figure) isSet() bool { return f.isBody || f.header != "" }

// header is one that is sent with every request.
type header struct{ name, value string }

// poll is how an answer that comes later is asked for.
type poll struct {
	ask    *send   // nil repeats the request
	rules  []rule  // nil are those of the entry
	fields *fields // nil are those of the request
}

// balance is how a provider is asked for what is left of its credits.
type balance struct {
	line    int32
	ask     send
	credits path
	counts  string // what it counts, if not the credits of prices
}

// Balance reports whether the provider says what is left, and what that counts: "" are the credits of prices.
func (e *Entry) Balance() (counts string, is bool) {
	if e.balance == nil {
		return "", false
	}
	return e.balance.counts, true
}

// TrustsOrder reports whether answers to a batch belong to keys by their order alone, which nothing in
// them confirms.
func (e *Entry) TrustsOrder() bool {
	for _, r := range e.requests {
		if b := r.batch; b != nil && b.id == nil && b.echo == nil {
			return true
		}
	}
	return false
}

// Digest is that of the meaning of an entry: of all that decides on what is asked, what answers
// mean, and what is read from them. It is the same for another spelling, other comments and
// another default rate.
func (e *Entry) Digest() [32]byte { return e.digest }

// Base is the address of the provider.
func (e *Entry) Base() string { return e.base.String() }

// Warnings are sentences about what may not be meant.
func (e *Entry) Warnings() []string { return e.warnings }

// NeedsKey reports whether requests have a key.
func (e *Entry) NeedsKey() bool { return e.key.how != "" && e.key.how != "none" }

// HelperNames are the names of values that serve accept and are no columns.
func (e *Entry) HelperNames() []string { return e.helpers }

// Kinds are the kinds of identifiers that can be asked about, in order.
func (e *Entry) Kinds() (kinds []resolution.Identifier) {
	for kind := range e.requests {
		kinds = append(kinds, kind)
	}
	slices.Sort(kinds)
	return kinds
}

// Columns are the columns that an answer may fill, with those that follow from others, in the
// order of their names.
func (e *Entry) Columns() []string {
	all := e.fields.columns()
	for _, r := range e.requests {
		all = append(all, r.fields.columns()...)
	}
	if e.later != nil && e.later.fields != nil {
		all = append(all, e.later.fields.columns()...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Request is how a kind of identifier is asked about; false if the provider cannot be asked.
func (e *Entry) Request(kind resolution.Identifier) (*Request, bool) {
	r, is := e.requests[kind]
	return r, is
}

// BatchSize is how many keys a request can have: 1 without a batch, 0 if the kind cannot be asked
// about.
func (e *Entry) BatchSize(kind resolution.Identifier) int {
	switch r := e.requests[kind]; {
	case r == nil:
		return 0
	case r.batch != nil:
		return r.batch.size
	}
	return 1
}

// maxValues bounds the values in an answer. A batch of 1,000 rich records has half as many; 4 MiB of
// brackets have 4 times as many, and would take 100 MB.
const maxValues = 512 << 10

var decoders = sync.Pool{New: func() any { return &jsontree.Decoder{Most: maxValues} }}

// reading calls use with the value of a body, which is empty if the body is not one complete JSON
// value. It is valid as long as use runs.
func reading(body []byte, use func(jsontree.Value)) {
	d := decoders.Get().(*jsontree.Decoder)
	defer func() {
		d.Forget()
		decoders.Put(d)
	}()
	use(d.Decode(body))
}

// Read reads a stored match by the rules of today: it may be a miss now, or fit none of them, which the
// error says. The data are added to into; nil is for Answers of its own.
func (r *Request) Read(op resolution.Operation, status int, body []byte, into *resolution.Answers) (resolution.Reply, error) {
	return r.readStored(op, status, body, Match, into)
}

// ReadMiss is Read of a stored miss, which may be a match now.
func (r *Request) ReadMiss(op resolution.Operation, status int, body []byte, into *resolution.Answers) (resolution.Reply, error) {
	return r.readStored(op, status, body, NoMatch, into)
}

func (r *Request) readStored(op resolution.Operation, status int, body []byte, was Outcome, into *resolution.Answers) (reply resolution.Reply, err error) {
	reading(body, func(v jsontree.Value) {
		switch r.entry.judgeAgain(r.kind, received{status, v, len(body) == 0}, was) {
		case Match:
			reply = r.entry.read(op, r.kind, status, v, into)
		case NoMatch:
			reply.Reason = resolution.NoMatch
		default:
			err = &resolution.CallError{Operation: op, Class: resolution.Protocol, Status: status, Sent: true, Detail: "the stored answer fits no rule of " + r.entry.Name}
		}
	})
	reply.About = resolution.About{Status: status, Body: body, Quarantined: reply.Quarantined}
	return reply, err
}

// judgeAgain is the outcome of a stored answer by the rules of today: what it was, if any list of rules
// that it may have been judged by still says so, or what one of them says now. Answers without a 2xx
// and without a body stay.
func (e *Entry) judgeAgain(kind resolution.Identifier, a received, was Outcome) Outcome {
	if a.status/100 != 2 || a.bare {
		return was
	}
	now := Unknown
	for _, rules := range e.rulesOf(kind) {
		var v Verdict
		switch v.classify(rules, a); v.Outcome {
		case was:
			return was
		case Match, NoMatch:
			if now == Unknown {
				now = v.Outcome
			}
		}
	}
	return now
}

// rulesOf are the lists of rules by which an answer about one key of a kind is judged.
func (e *Entry) rulesOf(kind resolution.Identifier) (all [][]rule) {
	r := e.requests[kind]
	if r != nil && r.batch != nil {
		if all = append(all, r.batch.rules); !r.batch.sameAnswer {
			return all
		}
	}
	all = append(all, e.rules)
	if e.later != nil && e.later.rules != nil {
		all = append(all, e.later.rules)
	}
	return all
}

// KindOf is the kind that an operation asks about, or a verifier, unless the job chooses another.
func (e *Entry) KindOf(op resolution.Operation) resolution.Identifier {
	if e.Check != "" {
		return e.Check
	}
	return op.Identifier()
}

// read reads the data of a match. It is always one, even if nothing is in it.
func (e *Entry) read(op resolution.Operation, kind resolution.Identifier, status int, body jsontree.Value, into *resolution.Answers) (reply resolution.Reply) {
	if into == nil {
		into = resolution.NewAnswers()
	}
	of := e.fieldsOf(kind, status, body)
	reply.Quarantined = of.read(op, body, &e.companies, into)
	reply.Helpers = of.helpers(e.helpers, body)
	reply.Found = resolution.AnswerRow{Of: into, I: into.Len() - 1}
	return reply
}

// Helpers are the values in a stored match that are no columns, by their names. kind is what was
// asked about.
func (e *Entry) Helpers(kind resolution.Identifier, status int, body []byte) (values map[string]string) {
	reading(body, func(v jsontree.Value) { values = e.fieldsOf(kind, status, v).helpers(e.helpers, v) })
	return values
}

// fieldsOf are the fields of an answer. Those of answers that come later may be others: these are
// told by their rules.
func (e *Entry) fieldsOf(kind resolution.Identifier, status int, body jsontree.Value) *fields {
	if e.later != nil && e.later.fields != nil {
		var v Verdict
		if v.classify(e.later.rules, received{status: status, body: body}); v.Outcome == Match {
			return e.later.fields
		}
	}
	if r := e.requests[kind]; r != nil {
		return r.fields
	}
	return &e.fields
}

//go:embed shipped/*.yaml
var shipped embed.FS

// Shipped are the entries that the program brings along, one of each file in shipped. Their shape and language are
// checked as those of any other file, which takes longer than a run of few rows: ShippedNames needs none of it.
var Shipped = sync.OnceValue(func() Entries {
	all := Entries{}
	for _, name := range ShippedNames() {
		content, _ := ShippedFile(name)
		entries, err := Parse(name, content)
		if err != nil {
			panic(err) // a test reads them all
		}
		maps.Copy(all, entries)
	}
	return all
})

// ShippedNames are the names of the entries that the program brings along, in order.
func ShippedNames() (names []string) {
	files, _ := shipped.ReadDir("shipped") // it is embedded
	for _, f := range files {
		names = append(names, strings.TrimSuffix(f.Name(), ".yaml"))
	}
	return names
}

// ShippedFile is the file of an entry that the program brings along; false if there is none.
func ShippedFile(name string) (content []byte, is bool) {
	content, err := shipped.ReadFile("shipped/" + name + ".yaml")
	return content, err == nil
}
