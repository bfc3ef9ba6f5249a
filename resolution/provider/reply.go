package provider

import (
	"net/http"
	"time"

	"github.com/leadetl/leadetl/internal/jsontree"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/exchange"
)

// result is what a verdict means for a call about a key; "" is not known. later makes the id of an
// answer that is pending.
func (c *Client) result(op resolution.Operation, key string, g got, v Verdict, later func() string) resolution.Result {
	about := resolution.About{RequestID: exchange.RequestID(g.Header), Status: v.Status, Spent: v.Credits, Pace: c.pace(g), Body: v.Body}
	if g.doubtful {
		v = Verdict{Status: g.Status, Swapped: true, Fault: "more than one answer came, and nothing says to which request this one belongs"}
	}
	switch v.Outcome {
	case Match:
		var reply resolution.Reply
		reading(v.Body, func(body jsontree.Value) { reply = c.entry.read(op, c.kindOf(op), v.Status, body, nil) })
		about.Quarantined, about.OtherAddress = reply.Quarantined, c.isElsewhere(op, key, reply.Found)
		reply.About = about
		return resolution.Result{Reply: reply}
	case NoMatch:
		return resolution.Result{Reply: resolution.Reply{About: about, Reason: resolution.NoMatch}}
	case Later:
		about.ID, about.Pending = later(), true
		return resolution.Result{Reply: resolution.Reply{About: about}}
	}
	return resolution.Result{Err: c.failed(op, g, v, about)}
}

// isElsewhere reports whether an answer about a profile is of another address, which may be another
// one of the same person.
func (c *Client) isElsewhere(op resolution.Operation, key string, found resolution.AnswerRow) bool {
	if !found.Matched() {
		return false
	}
	q := c.options.Asked.Question(c.kindOf(op), key, "")
	_, other := q.Profile(found.Lead().NetworkURL, false)
	return other
}

// failed is the error of an outcome without an answer.
func (c *Client) failed(op resolution.Operation, g got, v Verdict, about resolution.About) *resolution.CallError {
	e := &resolution.CallError{
		Operation: op, Status: v.Status, Detail: v.Fault, RequestID: about.RequestID, Sent: true, Swapped: v.Swapped, Pace: about.Pace, Body: v.Body,
		Over: v.Over && v.Outcome != Unknown, Gone: v.Over && v.Outcome == Unknown,
	}
	if g.shared && !v.IsElement {
		e.Body = nil // it would be kept for each of the keys
	}
	switch v.Outcome {
	case SlowDown:
		e.Class = resolution.Limited
	case NotBilled:
		e.Class, e.Unbilled = resolution.Unavailable, true
	case NoCredits:
		e.Class = resolution.NoCredits
	case Refused:
		e.Class, e.General = resolution.Denied, true
	case BadRow:
		if e.Class, e.Spent = resolution.Invalid, v.Credits; v.Alone {
			e.Class, e.Unbilled, e.Cause = resolution.Unavailable, true, resolution.ErrAskAlone
		}
	default:
		c.unknown(e, g, v)
	}
	return e
}

// unknown says why an answer fits no rule. A redirect comes from before the provider: the base is
// wrong for all calls.
func (c *Client) unknown(e *resolution.CallError, g got, v Verdict) {
	e.Class = resolution.Protocol
	switch {
	case e.Detail != "":
	case g.Status/100 == 3:
		e.Class, e.General, e.Detail = resolution.Denied, true, "the provider redirects, and redirects are not followed; use the address it redirects to as base"
	case g.Status == http.StatusUnauthorized && c.entry.key.token != nil:
		e.Class, e.General = resolution.Denied, true // whatever the rules say: the token is new
	case g.Fault != nil:
		e.Detail = g.Fault.Error()
	case v.Rule > 0:
		e.Detail = "a rule of " + c.entry.Name + " calls the answer unknown"
	default:
		e.Detail = "the answer fits no rule of " + c.entry.Name
	}
}

// pace is what an answer says about when to call again.
func (c *Client) pace(g got) (p resolution.Pace) {
	h := g.Header
	if left := h.Get(c.entry.limit); c.entry.limit != "" && left != "" {
		h = h.Clone()
		h.Set("Ratelimit-Remaining", left)
	}
	reading(g.body(), func(v jsontree.Value) { p = exchange.PaceOf(h, jsontree.Object(v), time.Now()) })
	return p
}
