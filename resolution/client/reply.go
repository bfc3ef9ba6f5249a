package client

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/leadetl/leadetl/resolution"
)

// NoMatch is the reason of an answer without data: a service does not say
// more.
const NoMatch = "no_match"

// reply reads an answer to a single-record call: the status first, then the
// body.
func (a answer) reply() (Reply, error) {
	body := a.object()
	if a.isMiss(body) {
		r := a.about(body)
		r.Answer.Reason = NoMatch
		return r, nil
	}
	if err := a.err(body); err != nil {
		return Reply{}, err
	}
	r := a.about(body)
	found, said := leadOf(body)
	p := picker{}
	lead := p.lead(a.operation, found)
	r.Quarantined = p.quarantined
	switch {
	case has(a.operation, lead) && said != saidNo:
		r.Answer.Lead = &lead
	case said != saidNo && !isFinished(status(body)):
		r.Pending = true
	default:
		r.Answer.Reason = NoMatch
	}
	return r, nil
}

// about reads what surrounds the data of an answer.
func (a answer) about(body map[string]any) Reply {
	r := Reply{
		ID:        text(object(body["resolution"])["id"]),
		RequestID: a.requestID(),
		Replayed:  strings.EqualFold(a.header.Get("Idempotent-Replayed"), "true"),
		Pace:      pace(a.header, body, time.Now()),
		Body:      a.body,
	}
	for _, id := range []any{body["resolution_id"], body["id"], a.header.Get("X-Resolution-Id")} {
		if r.ID == "" {
			r.ID = text(id)
		}
	}
	if n, err := strconv.ParseInt(a.header.Get("X-Credits-Spent"), 10, 64); err == nil && n >= 0 {
		r.Spent = &n
	} else if n, ok := number(object(body["credits"])["spent"]); ok && n >= 0 {
		spent := int64(n)
		r.Spent = &spent
	}
	return r
}

// object is the body as a JSON object; nil when it is none. Numbers stay as
// they are written.
func (a answer) object() map[string]any {
	d := json.NewDecoder(bytes.NewReader(bytes.TrimPrefix(a.body, []byte("\ufeff"))))
	d.UseNumber()
	var m map[string]any
	if d.Decode(&m) != nil || d.More() {
		return nil
	}
	return m
}

func (a answer) requestID() string {
	for _, name := range []string{"X-Request-Id", "Request-Id", "X-Correlation-Id"} {
		if id := a.header.Get(name); id != "" && isWord(id, 128) {
			return id
		}
	}
	return ""
}

// said is what an answer says about itself beside its data.
type said int

const (
	saidNothing said = iota
	saidYes          // data follow
	saidNo           // there are none
)

// leadOf finds the data in an answer, wherever a service puts them.
func leadOf(body map[string]any) (lead map[string]any, s said) {
	for _, name := range []string{"data", "found"} {
		if is, ok := body[name].(bool); ok && is {
			s = saidYes
		} else if ok {
			return nil, saidNo
		}
	}
	for _, name := range []string{"lead", "data", "result"} {
		if v, is := body[name]; is && v == nil && name == "lead" {
			return nil, saidNo
		}
		if m := object(body[name]); m != nil {
			if inner := object(m["lead"]); inner != nil {
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

// status is an answer's status word in lower case, "" when it has none.
func status(body map[string]any) string {
	s := text(object(body["resolution"])["status"])
	if s == "" {
		s = text(body["status"])
	}
	return strings.ToLower(s)
}

// isFinished reports whether a status says that nothing will come any more.
// Words we do not know mean that it is not over.
func isFinished(status string) bool {
	switch status {
	case "", "completed", "complete", "done", "finished", "success", "succeeded", "ok", "not_found", "no_match":
		return true
	}
	return false
}

// isMiss reports whether the answer is a 404 by which a service says that it
// has no data: one with an error code. A 404 without is that of an address
// where no service is, and so is the one by which our own service says that
// there is nothing at an address.
func (a answer) isMiss(body map[string]any) bool {
	return a.status == http.StatusNotFound && code(body) != "" && text(object(body["error"])["type"]) != nothingHere
}

// nothingHere is the type of the error for a path that is no operation's.
const nothingHere = "urn:leadetl:error:not_found"

// has reports whether a lead holds what the operation is asked for.
func has(op resolution.Operation, l resolution.Lead) bool {
	switch op {
	case resolution.EmailToHEM, resolution.NetworkToHEM:
		return len(l.HashedEmails) > 0
	case resolution.NetworkToPhone:
		return l.Phone != ""
	case resolution.IPToCompany:
		return l.Company != nil
	}
	return !isZero(l)
}
