package provider

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/leadetl/leadetl/internal/jsontree"
	"github.com/leadetl/leadetl/resolution"
)

// next is the request that asks for the answer about key i, which comes later, by the answer that
// said so.
func (r *Request) next(body []byte, keys []string, i int) (m Message, is bool) {
	later := r.entry.later
	switch {
	case later == nil:
		return m, false
	case later.ask == nil:
		m, is = r.Message(keys[i])
	default:
		reading(body, func(v jsontree.Value) {
			m, is = later.ask.render(func(name string) (string, bool) {
				if kindOf(name) == r.kind && len(keys) == 1 {
					return formOf(keys[0])(name)
				}
				p, err := parsePath(name)
				text, _ := spelled(p.one(v))
				return text, err == nil && text != ""
			})
		})
	}
	return m, is
}

// ticket is what a poll needs to know of a call: the request without its key and headers, and which
// of the elements of a batch is its. It is on disk as the id of the answer that is promised.
type ticket struct {
	Kind   resolution.Identifier `json:"k"`
	Method string                `json:"m"`
	Target string                `json:"t"`
	Type   string                `json:"c,omitempty"`
	Body   string                `json:"b,omitempty"`
	Keys   int                   `json:"n,omitempty"` // of the batch, if there is one
	Place  int                   `json:"p,omitempty"` // of the key in it
	ID     string                `json:"i,omitempty"` // of its element
}

// ticket makes that of a key, by its place.
func (r *Request) ticket(q asked, next *Message, i int) string {
	t := ticket{Kind: r.kind, Method: next.Method, Target: next.Target, Type: next.Type, Body: next.Body}
	if r.batch != nil {
		if r.entry.later.ask == nil { // the same is asked about the key alone
			q, i = r.asked(q.run, q.keys[i:i+1]), 0
		}
		if t.Keys, t.Place = len(q.keys), i; q.ids != nil {
			t.ID = q.ids[i]
		}
	}
	text, _ := json.Marshal(t) // of texts and numbers
	return base64.RawURLEncoding.EncodeToString(text)
}

func readTicket(id string) (t ticket, err error) {
	text, err := base64.RawURLEncoding.DecodeString(id)
	if err == nil {
		err = json.Unmarshal(text, &t)
	}
	if err != nil || t.Keys < 0 || t.Keys > 10_000 || t.Place < 0 || t.Place >= max(t.Keys, 1) {
		return t, errors.New("the id of a promised answer cannot be read")
	}
	return t, nil
}

// task is what the tickets of one request have in common.
func (t ticket) task() ticket {
	t.Place, t.ID = 0, ""
	return t
}

// Task names what one poll asks for: the ids of replies that are pending with the same task are
// asked for together.
func (c *Client) Task(id string) string {
	t, err := readTicket(id)
	if err != nil {
		return id
	}
	text, _ := json.Marshal(t.task())
	return string(text)
}

// Poll asks for an answer that comes later, by the ID of the reply that is pending. It never makes a
// call unknown before the provider says that the answer is gone, or has come without it.
func (c *Client) Poll(ctx context.Context, op resolution.Operation, id, _ string) (resolution.Reply, error) {
	result := c.poll(ctx, op, []string{id}, nil)[0]
	return result.Reply, result.Err
}

// PollBatch is Poll for the answers to calls of one Task, in one request.
func (c *Client) PollBatch(ctx context.Context, calls []resolution.Call, ids []string) []resolution.Result {
	keys := make([]string, len(calls))
	for i, call := range calls {
		keys[i] = call.Key
	}
	return c.poll(ctx, calls[0].Operation, ids, keys)
}

// poll is PollBatch about keys; nil if they are not known.
func (c *Client) poll(ctx context.Context, op resolution.Operation, ids, keys []string) []resolution.Result {
	tickets := make([]ticket, len(ids))
	var err error
	for i, id := range ids {
		t, wrong := readTicket(id)
		if tickets[i] = t; wrong != nil {
			err = wrong
		} else if t.task() != tickets[0].task() {
			err = errors.New("the answers are not of one task")
		}
	}
	r, is := c.entry.Request(tickets[0].Kind)
	if err == nil && !is {
		err = errors.New("the entry is not asked about that any more")
	}
	if err != nil {
		return each(len(ids), &resolution.CallError{Operation: op, Class: resolution.Unavailable, Detail: err.Error()})
	}
	m, began := r.pollMessage(tickets[0]), time.Now()
	got, err := c.send(ctx, op, m, false)
	if failed, is := errors.AsType[*resolution.CallError](err); is {
		failed.Unbilled = true // the call itself was answered
		c.observe(Exchange{Request: r, Keys: keys, Message: m, Failure: err}, began)
		return each(len(ids), failed)
	}
	defer got.watch.Done()
	n := max(tickets[0].Keys, 1)
	q := r.asked(c.options.Asked, keysAt(n, tickets, keys))
	q.ids = r.pollIDs(n, tickets)
	answer := Response{got.Status, got.Header, got.body(), true}
	verdicts := r.judge(q, answer)
	c.observe(Exchange{Request: r, Keys: q.keys, Message: m, Response: answer, Verdicts: verdicts}, began)
	got.shared = len(ids) > 1
	c.renew(&got, verdicts)
	results := make([]resolution.Result, len(ids))
	for i, t := range tickets {
		results[i] = c.result(op, q.keys[t.Place], got, verdicts[t.Place], func() string { return ids[i] })
	}
	return results
}

// keysAt are keys at the places of their tickets; those of other places are "".
func keysAt(n int, tickets []ticket, keys []string) []string {
	all := make([]string, n)
	for i, key := range keys {
		all[tickets[i].Place] = key
	}
	return all
}

// pollMessage is the request of a ticket.
func (r *Request) pollMessage(t ticket) Message {
	headers := r.entry.headers
	switch later := r.entry.later; {
	case later != nil && later.ask != nil:
		headers = slices.Concat(headers, later.ask.headers)
	case r.batch != nil:
		headers = slices.Concat(headers, r.batch.ask.headers)
	default:
		headers = slices.Concat(headers, r.one.headers)
	}
	return Message{Method: t.Method, Target: t.Target, Type: t.Type, Body: t.Body, headers: headers}
}

// pollIDs are the ids of the keys of a batch, as far as they are known: those that are positions
// are, and those of the tickets.
func (r *Request) pollIDs(n int, tickets []ticket) (ids []string) {
	if r.batch == nil || r.batch.id == nil {
		return nil
	}
	ids = make([]string, n)
	for i := range ids {
		ids[i], _ = r.batch.id.id.render(withRef(func(string) (string, bool) { return "", false }, i+1), asItIs)
	}
	for _, t := range tickets {
		ids[t.Place] = t.ID
	}
	return ids
}
