package client

import (
	"bytes"
	"cmp"
	"math"
	"net/http"
	"strings"
	"time"

	"github.com/leadetl/leadetl/internal/jsontree"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/exchange"
)

// reply reads an answer.
func (a response) reply() (resolution.Reply, error) {
	if a.operation.IsKeyword() {
		return a.searchReply()
	}
	e := a.envelope()
	if err := e.misplaced(); err != nil {
		return resolution.Reply{}, err
	}
	r := resolution.Reply{About: e.about}
	if e.isMiss() || a.status == http.StatusNoContent {
		r.Reason = resolution.NoMatch
		return r, nil
	}
	if err := e.err(); err != nil {
		return resolution.Reply{}, err
	}
	if isMistyped(e.body.Get("lead")) || isSeveral(e.body.Get("data")) || isSeveral(e.body.Get("result")) {
		return resolution.Reply{}, e.unreadable("the lead of the answer is not an object")
	}
	found, said := leadOf(e.body)
	data, quarantined := a.data(found)
	r.Quarantined = quarantined
	switch {
	case data.Matched() && said != saidNo:
		swapped, other := a.asked.dataOf(data)
		if swapped {
			return resolution.Reply{}, e.swapped("the data of the answer are those of another question of this run")
		}
		r.OtherAddress = other
		r.Found = data
	case said != saidNo && !isFinished(e.status) && e.isPromise():
		r.Pending = true
	default:
		if fault := e.fault(said); fault != "" {
			return resolution.Reply{}, e.unreadable(fault)
		}
		r.Reason = resolution.NoMatch
	}
	return r, nil
}

// data reads the data of an answer. They match if they are what the operation asks for.
func (a response) data(found jsontree.Value) (r resolution.AnswerRow, quarantined int) {
	if found == nil {
		return r, 0
	}
	p := picker{into: a.into, companies: a.companies}
	if p.into == nil {
		p.into = resolution.NewAnswers()
	}
	if row := p.lead(a.operation.Gives(), found); has(a.operation.Gives(), p.into, row) {
		r = resolution.AnswerRow{Of: p.into, I: row}
	}
	return r, p.quarantined
}

// isPromise reports whether an answer without data can be one that is not ready:
// an error in it says otherwise, unless it says so itself.
func (e envelope) isPromise() bool { return !hasError(e.body) || isNotReady(e.body) }

// fault is why a 2xx without data is no miss, "" if it is one. A miss has a word for
// it: a status, data or found that are false, or an empty value where a lead would be.
func (e envelope) fault(said said) string {
	switch {
	case hasError(e.body):
		return "the answer reports an error"
	case said == saidNo || e.status != "" || jsontree.Object(e.body.Get("lead")) != nil:
		return ""
	}
	for _, name := range leadPlaces {
		if v := e.body.Get(name); len(v) > 0 && (jsontree.Object(v) != nil || isBlank(v)) {
			return ""
		}
	}
	return "the answer has no data and does not say that there are none"
}

// hasError reports whether an answer reports an error: in a member for it, by a
// status of HTTP, or by a success that is false however it is written.
func hasError(body jsontree.Value) bool {
	for _, m := range []jsontree.Value{body, jsontree.Object(body.Get("lead")), jsontree.Object(body.Get("data")), jsontree.Object(body.Get("result"))} {
		for _, name := range []string{"error", "errors", "error_code", "errorCode", "error_message", "errorMessage", "fault", "exception"} {
			if !isBlank(m.Get(name)) {
				return true
			}
		}
		for _, name := range []string{"code", "status", "status_code", "statusCode", "http_status", "httpStatus"} {
			if n, is := exchange.Number(m.Get(name)); is && n >= http.StatusBadRequest {
				return true
			}
		}
		for _, name := range []string{"success", "ok"} {
			if v := m.Get(name); len(v) > 0 && isBlank(v) && v.Kind() != 'n' {
				return true
			}
		}
	}
	return false
}

// isBlank reports whether a value is missing or says nothing, in any of the ways to
// write that.
func isBlank(v jsontree.Value) bool {
	switch v.Kind() {
	case 0, 'n', 'f':
		return true
	case '[', '{':
		return len(v) == 1
	case '"', '0':
		switch strings.ToLower(jsontree.Text(v)) {
		case "", "0", "false", "no", "null", "none":
			return true
		}
	}
	return false
}

// envelope is an answer or a callback with what every kind of them has.
type envelope struct {
	answer response
	body   jsontree.Value // empty when it is not a JSON object
	about  resolution.About
	status string // the word for the resolution's status, in lower case
}

// envelope reads what is around the data of an answer.
func (a response) envelope() envelope {
	d := a.decoder
	if d == nil {
		d = new(jsontree.Decoder)
	}
	body := jsontree.Object(d.Decode(bytes.TrimPrefix(a.body, []byte("\ufeff"))))
	return envelope{answer: a, body: body, about: a.about(body), status: status(body)}
}

// unreadable is the error of an answer whose data cannot be read.
func (e envelope) unreadable(detail string) error {
	return &resolution.CallError{Operation: e.answer.operation, Class: resolution.Protocol, Status: e.answer.status, Code: code(e.body), RequestID: e.about.RequestID, Sent: true,
		Detail: detail, Pace: e.about.Pace, Body: e.answer.body}
}

// swapped is the error of an answer to another question. Its ids are not those of this
// call.
func (e envelope) swapped(detail string) *resolution.CallError {
	return &resolution.CallError{Operation: e.answer.operation, Class: resolution.Protocol, Status: e.answer.status, Sent: true, Swapped: true, Detail: detail, Pace: e.about.Pace}
}

func (a response) about(body jsontree.Value) resolution.About {
	r := resolution.About{
		ID:        jsontree.Text(jsontree.Object(body.Get("resolution")).Get("id")),
		RequestID: exchange.RequestID(a.header),
		Status:    a.status,
		Replayed:  strings.EqualFold(a.header.Get("Idempotent-Replayed"), "true"),
		Pace:      exchange.PaceOf(a.header, body, time.Now()),
		Retiring:  retiring(a.header),
		Body:      a.body,
	}
	if r.ID == "" {
		r.ID = cmp.Or(jsontree.Text(body.Get("resolution_id")), jsontree.Text(body.Get("id")), strings.TrimSpace(a.header.Get("X-Resolution-Id")))
	}
	if n, is := exchange.ParseHeader(a.header.Get("X-Credits-Spent")); is && n >= 0 && n == math.Trunc(n) {
		spent := int64(min(n, math.MaxInt32))
		r.Spent = &spent
	} else if n, is := exchange.Whole(jsontree.Object(body.Get("credits")).Get("spent")); is {
		spent := min(n, math.MaxInt32)
		r.Spent = &spent
	}
	return r
}

// said is what an answer says about having data.
type said int

const (
	saidNothing said = iota
	saidYes          // there are data
	saidNo           // there are none
)

// leadOf finds the data in an answer, in all the places where services put them.
func leadOf(body jsontree.Value) (lead jsontree.Value, s said) {
	for _, name := range []string{"data", "found"} {
		if yes, is := jsontree.Truth(body.Get(name)); yes {
			s = saidYes
		} else if is {
			return nil, saidNo
		}
	}
	if body.Get("lead").Kind() == 'n' {
		return nil, saidNo
	}
	for _, name := range leadPlaces {
		if m := jsontree.Object(body.Get(name)); m != nil {
			if inner := jsontree.Object(m.Get("lead")); inner != nil {
				m = inner
			}
			if s == saidNothing {
				s = saidYes
			}
			return m, s
		}
	}
	return nil, s
}

// leadPlaces are the members in which services put a lead.
var leadPlaces = []string{"lead", "data", "result"}

// isMistyped reports whether a lead is neither an object nor one of the ways to
// write that there is none. Its data cannot be read, but it is not a miss.
func isMistyped(lead jsontree.Value) bool {
	switch lead.Kind() {
	case 0, '{', 'n', 'f':
		return false
	case '[':
		return isSeveral(lead)
	case '"':
		return jsontree.Text(lead) != ""
	}
	return true
}

// isSeveral reports whether v is a list with anything but one object.
func isSeveral(v jsontree.Value) bool {
	return v.Kind() == '[' && len(v) > 1 && jsontree.Object(v) == nil
}

// status is an answer's status word in lower case, "" when it has none. A
// callback may say it by its type alone.
func status(body jsontree.Value) string {
	s := jsontree.Text(jsontree.Object(body.Get("resolution")).Get("status"))
	if s == "" {
		s = jsontree.Text(body.Get("status"))
	}
	if _, is := exchange.ParseHeader(s); is { // of HTTP
		s = ""
	}
	if kind, is := strings.CutPrefix(jsontree.Text(body.Get("type")), "resolution."); is && s == "" {
		s = kind
	}
	return strings.ToLower(s)
}

// isOver reports whether a 2xx says that a resolution failed or was cancelled.
func (e envelope) isOver() bool { return e.answer.isOK() && isOver(e.status) }

// over returns the error of a resolution that is over. It is not billed.
func (e envelope) over() error {
	err := &resolution.CallError{
		Operation: e.answer.operation, Class: resolution.Unavailable, Status: e.answer.status, Code: cmp.Or(code(e.body), e.status), RequestID: e.about.RequestID, Sent: true,
		Over: e.about.ID != "" || e.answer.operation.IsKeyword(), Detail: "the service could not finish the resolution", Pace: e.about.Pace, Body: e.answer.body,
	}
	if e.saysNoCredits(err.Code) {
		err.Class, err.Detail = resolution.NoCredits, ""
	}
	return err
}

// isFinished reports whether a status is final. Unknown words are not.
func isFinished(status string) bool {
	switch status {
	case "", "completed", "complete", "done", "finished", "success", "succeeded", "ok", "not_found", "no_match":
		return true
	}
	return false
}

// isMiss reports whether the answer is a 404 that means no data: one with an
// error code. A code that repeats the status is a gateway's. Our own service's
// not_found means that the address is wrong.
func (e envelope) isMiss() bool {
	c := code(e.body)
	return e.answer.status == http.StatusNotFound && c != "" && c != "404" && jsontree.Text(jsontree.Object(e.body.Get("error")).Get("type")) != nothingHere
}

// nothingHere is the type of the error for an unknown path.
const nothingHere = "urn:leadetl:error:not_found"

// has reports whether the last row has the data the operation asks for.
func has(gives resolution.Gives, a *resolution.Answers, row int) bool {
	switch gives {
	case resolution.GivesHashes:
		from, to := a.Hashes.Of(row)
		return from < to
	case resolution.GivesPhone:
		return len(a.Texts[resolution.FieldPhone].At(row)) > 0
	case resolution.GivesCompany:
		return row < len(a.Companies.Codes)
	}
	return !a.IsLastEmpty()
}
