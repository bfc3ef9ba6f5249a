package client

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/leadetl/leadetl/internal/jsontree"
	"github.com/leadetl/leadetl/internal/secret"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/exchange"
)

// maxBody bounds an answer, in bytes. A single record takes a few kilobytes; a page
// of a thousand complete leads takes some megabytes.
const maxBody = 32 << 20

// Do makes one call. The error is a *resolution.CallError, or the context's.
func (c *Client) Do(ctx context.Context, call resolution.Call) (resolution.Reply, error) {
	path, body, err := c.question(call)
	if err != nil {
		return resolution.Reply{}, &resolution.CallError{Operation: call.Operation, Class: resolution.Invalid, Detail: err.Error()}
	}
	r := request{http.MethodPost, call.Operation, path, call.IdempotencyKey, body}
	return c.ask(ctx, r, questionOf(c.options.Asked, call))
}

// question returns the path and the body of a call.
func (c *Client) question(call resolution.Call) (path string, body []byte, err error) {
	facts := call.Operation.Facts()
	if facts.Identifier == "" {
		return "", nil, errors.New("not an operation on one record")
	}
	if call.Key == "" {
		return "", nil, errors.New("empty key")
	}
	var q singleBody
	switch facts.Identifier {
	case resolution.Email:
		q.Email = call.Key
	case resolution.NetworkURL:
		q.NetworkURL = cmp.Or(call.Address, "https://"+call.Key) // a key has no scheme, the field is a URL
	case resolution.IP:
		q.IP = call.Key
	}
	if facts.Callback != resolution.NoCallback {
		q.CallbackURL, q.Metadata.ClientRef = c.options.CallbackURL, call.ClientRef
	}
	body, err = json.Marshal(q)
	return facts.Path, body, err
}

// singleBody is the JSON body of a question about one record.
type singleBody struct {
	Email       string   `json:"email,omitempty"`
	NetworkURL  string   `json:"network_url,omitempty"`
	IP          string   `json:"ip,omitempty"`
	CallbackURL string   `json:"callback_url,omitempty"`
	Metadata    metadata `json:"metadata,omitzero"`
}

// metadata is echoed in a callback.
type metadata struct {
	ClientRef string `json:"client_ref"`
}

// response is one HTTP response, read whole.
type response struct {
	operation resolution.Operation
	status    int
	header    http.Header
	body      []byte              // without its encodings
	fault     error               // why body is not the whole plain answer
	asked     *asked              // nil for a stored answer
	waited    time.Duration       // from the last byte sent
	decoder   *jsontree.Decoder   // reads body; nil for one of its own
	companies *exchange.Companies // known ones; nil without any
	into      *resolution.Answers // to which the data of a record are added; nil for Answers of its own
}

// isOK reports whether the status is a 2xx.
func (a response) isOK() bool { return a.status >= 200 && a.status < 300 }

// request is an HTTP request, without what all of them have.
type request struct {
	method         string
	operation      resolution.Operation
	path           string
	idempotencyKey string
	body           []byte
}

// ask makes a call and reads its answer. One that belongs to another question says
// that answers have been mixed up on the connections that are open: none of them is
// used for another call.
func (c *Client) ask(ctx context.Context, r request, about *asked) (resolution.Reply, error) {
	about.register()
	a, w, err := c.send(ctx, r)
	if err != nil {
		return resolution.Reply{}, err
	}
	defer w.Done()
	a.asked = about
	reply, err := read(a)
	failed, _ := errors.AsType[*resolution.CallError](err)
	if failed == nil || !failed.Swapped {
		doubt := ""
		switch {
		case about.named:
		case w.IsDoubtful(reply.Found.Matched()):
			doubt = "more than one answer came, and nothing says to which question this one belongs"
		case about.isPromisedOther(reply):
			doubt = "the resolution was promised to another question"
		}
		if doubt != "" {
			failed = a.envelope().swapped(doubt)
			reply, err = resolution.Reply{}, failed
		}
	}
	if failed != nil && failed.Swapped {
		c.line.Renew()
	}
	reply.KeyWindow = exchange.KeyWindow(a.header)
	if failed != nil {
		failed.KeyWindow = reply.KeyWindow
	}
	return reply, err
}

// send sends a request at most once: see exchange.Line.Send. A caller calls Done when it is done with
// the answer.
func (c *Client) send(ctx context.Context, r request) (response, *exchange.Watch, error) {
	key := c.key.Load()
	of := func(a exchange.Response) response {
		return response{operation: r.operation, status: a.Status, header: a.Header, body: a.Body, fault: a.Fault, waited: a.Waited, companies: &c.companies}
	}
	sent, w, err := c.line.Send(ctx, exchange.Request{Method: r.method, URL: c.at(r.path), Header: c.header(key, r.idempotencyKey), Body: r.body},
		func(a exchange.Response) bool { return of(a).isGarbled() })
	failed, _ := errors.AsType[*exchange.Failure](err)
	if failed == nil {
		c.heedStatus(sent.Status, key)
		return of(sent), w, nil
	}
	c.heedStatus(failed.Status, key)
	e := &resolution.CallError{
		Operation: r.operation, Class: failed.Class, Status: failed.Status, Sent: failed.Sent, Detail: failed.Detail,
		Body: failed.Body, KeyWindow: exchange.KeyWindow(failed.Header), Cause: failed.Cause,
	}
	e.General = e.Cause == nil && e.Class == resolution.Denied
	return response{}, nil, e
}

// isGarbled reports whether a request was not understood, by the server before the
// service, and not processed.
func (a response) isGarbled() bool {
	if a.status != http.StatusBadRequest && a.status != http.StatusRequestTimeout {
		return false
	}
	e := a.envelope()
	return len(e.body) == 0 && (a.status == http.StatusBadRequest || e.isUnbilled("")) && !a.saysTLS()
}

// at returns the URL of a path of the interface.
func (c *Client) at(path string) *url.URL {
	u := *c.base
	u.Path += path
	if u.RawPath != "" {
		u.RawPath += path
	}
	return &u
}

// header returns the headers of a request.
func (c *Client) header(key *secret.Text, idempotencyKey string) http.Header {
	h := make(http.Header, 7)
	h["Content-Type"] = wireJSON
	h["Accept"] = wireJSON
	h["Accept-Encoding"] = identity
	h["User-Agent"] = userAgent
	credential := key.Reveal()
	if c.options.HeaderName == "Authorization" {
		credential = "Bearer " + credential
	}
	h[c.options.HeaderName] = []string{credential}
	if idempotencyKey != "" {
		h["Idempotency-Key"] = []string{idempotencyKey}
	}
	return h
}

// The headers that are the same in all requests. They are read-only.
var (
	wireJSON  = []string{"application/json"}
	identity  = []string{"identity"}
	userAgent = []string{"leadetl"}
)
