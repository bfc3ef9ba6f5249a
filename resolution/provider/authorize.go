package provider

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/leadetl/leadetl/internal/jsontree"
	"github.com/leadetl/leadetl/internal/secret"
	"github.com/leadetl/leadetl/internal/yamltree"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/exchange"
)

// credential is how the key is sent.
type credential struct {
	how    string // none, bearer, basic, header, query, body or token
	name   string // of the header or of the member of the query
	prefix string // before the key in a header
	at     []string
	token  *token
}

// token is how a token is fetched with the key.
type token struct {
	send        send
	at, expires path
}

// credential reads key.
func (r *reader) credential(n *yamltree.Node) (c credential) {
	if t := members(n)["token"]; t != nil {
		return credential{how: "token", token: r.token(t)}
	}
	words := append(strings.Fields(textOf(n)), "", "", "")
	c = credential{how: words[0], name: words[1], prefix: words[2]}
	if c.how == "body" {
		c.at = strings.Split(c.name, ".")
	}
	return c
}

// token reads how a token is fetched.
func (r *reader) token(n *yamltree.Node) *token {
	t := &token{at: path{{name: "access_token", index: -1}}, expires: path{{name: "expires_in", index: -1}}}
	m := members(n)
	t.send = r.send(n)
	r.checkPlaces(n, t.send.places, []string{"id", "secret"})
	if p := r.path(m["at"]); p != nil {
		t.at = *p
	}
	if p := r.path(m["expires"]); p != nil {
		t.expires = *p
	}
	return t
}

// trimmed is a key without one line end behind it.
func trimmed(key secret.Text) secret.Text {
	text := strings.TrimSuffix(key.Reveal(), "\n")
	return secret.New(strings.TrimSuffix(text, "\r"))
}

// check says why a key cannot be sent.
func (c credential) check(key secret.Text) error {
	text := key.Reveal()
	switch {
	case c.how == "none":
		return nil
	case text == "":
		return errors.New("there is no key")
	case strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' }):
		return errors.New("it has characters that a request cannot carry")
	case c.how == "basic" && !strings.Contains(text, ":"):
		return errors.New("it has the form USER:PASSWORD")
	case c.how == "token" && !strings.Contains(text, ":"):
		return errors.New("it has the form ID:SECRET")
	}
	return nil
}

// request is a message with base and key.
func (c *Client) request(m Message, key *secret.Text, token string) (r exchange.Request, err error) {
	r = exchange.Request{Method: m.Method, Body: []byte(m.Body), Header: http.Header{
		"Accept": {"application/json"}, "Accept-Encoding": {"identity"}, "User-Agent": {"leadetl"},
	}}
	if m.Type != "" {
		r.Header.Set("Content-Type", m.Type)
	}
	for _, h := range m.headers {
		r.Header.Set(h.name, h.value)
	}
	target, text := m.Target, key.Reveal()
	switch how := c.entry.key; how.how {
	case "bearer":
		r.Header.Set("Authorization", "Bearer "+text)
	case "token":
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
	case "basic":
		r.Header.Set("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(text)))
	case "header":
		r.Header.Set(how.name, strings.TrimSpace(how.prefix+" "+text))
	case "query":
		mark := "?"
		if strings.Contains(target, "?") {
			mark = "&"
		}
		target += mark + percentEncoded(how.name) + "=" + percentEncoded(text)
	case "body":
		if m.Type == "application/json" {
			r.Body = withMember(r.Body, how.at, text)
		} else {
			r.Body = []byte(strings.TrimPrefix(m.Body+"&"+percentEncoded(how.name)+"="+percentEncoded(text), "&"))
		}
	}
	if r.URL, err = url.Parse(c.base.String() + target); err != nil {
		return r, errors.New("the address of the request cannot be made") // the error would repeat it
	}
	return r, nil
}

// withMember is a JSON object with a text at a path.
func withMember(object []byte, at []string, text string) []byte {
	members := map[string]json.RawMessage{}
	_ = json.Unmarshal(object, &members) // it was made as an object
	if len(at) == 1 {
		members[at[0]] = appendQuoted(nil, text)
	} else {
		inner := members[at[0]]
		if inner == nil {
			inner = []byte("{}")
		}
		members[at[0]] = withMember(inner, at[1:], text)
	}
	object, _ = json.Marshal(members) // of JSON
	return object
}

// The life of a token, and how old one is that a provider may have forgotten.
const (
	tokenLife  = time.Hour
	freshToken = 60 * time.Second
)

// tokens is the token that all requests share.
type tokens struct {
	turn chan struct{} // is full while somebody looks at the rest
	now  bearer
}

// bearer is a token; the zero bearer is none.
type bearer struct {
	value       string
	since, ends time.Time
	key         *secret.Text // that it was fetched with
}

// token returns the token to send, which is fetched if there is none, at 80% of its life, with
// another key, and to replace one that is not new. It is empty if the entry needs none.
func (c *Client) token(ctx context.Context, op resolution.Operation, renew bool) (bearer, error) {
	if c.entry.key.token == nil {
		return bearer{}, nil
	}
	select {
	case c.tokens.turn <- struct{}{}:
	case <-ctx.Done():
		return bearer{}, &resolution.CallError{Operation: op, Class: resolution.Unavailable, Detail: "the call was cancelled", Cause: ctx.Err()}
	}
	defer func() { <-c.tokens.turn }()
	t, key := c.tokens.now, c.key.Load()
	if t.value != "" && t.key == key && time.Now().Before(t.ends) && !(renew && time.Since(t.since) > freshToken) {
		return t, nil
	}
	t, err := c.fetchToken(ctx, op, key)
	if err == nil {
		c.tokens.now = t
	}
	return t, err
}

// fetchToken asks for a token. An error is about no call: none has left.
func (c *Client) fetchToken(ctx context.Context, op resolution.Operation, key *secret.Text) (bearer, error) {
	how := c.entry.key.token
	id, password, _ := strings.Cut(key.Reveal(), ":")
	m, _ := how.send.render(func(name string) (string, bool) {
		if name == "id" {
			return id, true
		}
		return password, true
	})
	request, err := c.request(m, key, "")
	failed := &resolution.CallError{Operation: op, Class: resolution.Unavailable, Detail: "no token could be fetched"}
	if err != nil {
		return bearer{}, failed
	}
	since := time.Now()
	a, w, err := c.line.Send(ctx, request, func(exchange.Response) bool { return false })
	if err != nil {
		broken, _ := errors.AsType[*exchange.Failure](err)
		failed.Class, failed.Detail, failed.Cause = broken.Class, "no token could be fetched: "+broken.Detail, broken.Cause
		failed.General = failed.Class == resolution.Denied
		return bearer{}, failed
	}
	w.Done()
	c.heed(a.Status, key)
	failed.Status, failed.RequestID, failed.Pace = a.Status, exchange.RequestID(a.Header), c.pace(got{Response: a})
	t := bearer{since: since, key: key}
	how.read(a.Body, &t)
	switch {
	case a.Status/100 == 2 && t.value != "" && a.Fault == nil:
		return t, nil
	case a.Status == http.StatusTooManyRequests:
		failed.Class = resolution.Limited
	case a.Status/100 == 4:
		failed.Class, failed.General, failed.Detail = resolution.Denied, true, "the provider gives no token for this key"
	}
	return bearer{}, failed
}

// read reads a token, which is empty if there is none that a header can carry, and when it ends.
func (how *token) read(body []byte, t *bearer) {
	reading(body, func(v jsontree.Value) {
		if text := jsontree.Text(how.at.one(v)); !strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' }) {
			t.value = strings.Clone(text)
		}
		life := tokenLife
		if seconds, is := exchange.Number(how.expires.one(v)); is && seconds > 0 {
			life = time.Duration(min(seconds, (365*24*time.Hour).Seconds()) * float64(time.Second))
		}
		t.ends = t.since.Add(life * 8 / 10)
	})
}
