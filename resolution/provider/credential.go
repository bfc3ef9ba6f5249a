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
