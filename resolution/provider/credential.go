package provider

import (
	"strings"

	"github.com/leadetl/leadetl/internal/yamltree"
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

var credentialForms = []string{"none", "bearer", "basic", "header", "query", "body"}

// credential reads key.
func (r *reader) credential(n *yamltree.Node) (c credential) {
	if n == nil {
		return c
	}
	if n.Kind == yamltree.Map {
		m := r.members(n, "token")
		if m["token"] != nil {
			c.how, c.token = "token", r.token(m["token"])
		}
		return c
	}
	if words := strings.Fields(r.text(n)); len(words) > 0 {
		return r.words(n, words[0], words[1:])
	}
	return c
}

// words reads a key that is written as words.
func (r *reader) words(n *yamltree.Node, how string, args []string) (c credential) {
	c.how = how
	least, most := 0, 0
	switch c.how {
	case "none", "bearer", "basic":
	case "header":
		least, most = 1, 2
	case "query", "body":
		least, most = 1, 1
	default:
		r.fail(n, "%s is no way to send a key%s", quoted(c.how), suggest(c.how, credentialForms))
		return c
	}
	if len(args) < least || len(args) > most {
		r.fail(n, "key is one of: none, bearer, basic, header NAME, header NAME PREFIX, query NAME, body PATH, {token: …}")
		return c
	}
	if most > 0 {
		c.name = args[0]
	}
	if len(args) > 1 {
		c.prefix = args[1]
	}
	switch {
	case c.how == "header" && !isHeaderName(c.name):
		r.fail(n, "%s is no name of a header", quoted(c.name))
	case c.how == "body":
		c.at = strings.Split(c.name, ".")
	}
	return c
}

// token reads how a token is fetched.
func (r *reader) token(n *yamltree.Node) *token {
	t := &token{at: path{{name: "access_token", index: -1}}, expires: path{{name: "expires_in", index: -1}}}
	m := r.members(n, "send", "json", "form", "headers", "at", "expires")
	request := &yamltree.Node{Line: n.Line, Kind: yamltree.Map, Name: n.Name}
	for _, item := range n.Items {
		if item.Name != "at" && item.Name != "expires" {
			request.Items = append(request.Items, item)
		}
	}
	t.send = r.send(request)
	r.checkPlaces(n, t.send.places, []string{"id", "secret"})
	if p := r.path(m["at"]); p != nil {
		t.at = *p
	}
	if p := r.path(m["expires"]); p != nil {
		t.expires = *p
	}
	return t
}
