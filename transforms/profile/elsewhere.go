package profile

import (
	"fmt"
	"strings"

	"github.com/leadetl/leadetl/internal/invisible"
	"github.com/leadetl/leadetl/internal/nullword"
)

// elsewhere returns the key of a page outside the network: host, path, and what of the
// query may name a person. A path in the form of the network (/in/slug) gets the spelling
// of the network. Others keep their case, which may mean something.
//
// It refuses a host that looks like one of the network, and an address that leads to
// another one: their keys would be of the wrong person, or of everybody.
func (r Rules) elsewhere(host string, path []string, query, fragment string) (URL, error) {
	for _, known := range r.Hosts {
		// linkedin.com.evil.example and notlinkedin.com: an attack or a typing
		// error.
		if strings.Contains(host, known) {
			return URL{}, ErrInvalid
		}
	}
	for i, part := range path {
		part, err := decode(part)
		if err != nil {
			return URL{}, err
		}
		if part == "" || part == "." || part == ".." {
			return URL{}, ErrInvalid
		}
		path[i] = part
	}

	shaped := path
	for len(shaped) > 0 && (strings.EqualFold(shaped[0], "m") || strings.EqualFold(shaped[0], "mwlite")) {
		shaped = shaped[1:]
	}
	if isShaped(shaped) {
		if len(shaped) < 2 {
			return URL{}, ErrInvalid // a kind without a slug
		}
		slug, err := cleanSlug(shaped[1])
		if err != nil {
			return URL{}, err
		}
		path = shaped
		if meansNobody(slug) {
			return URL{}, ErrEmpty
		}
		path[0], path[1] = strings.ToLower(path[0]), slug
		fragment = "" // the path names the page
	}
	query, err := cleanQuery(query)
	if err != nil {
		return URL{}, err
	}
	if len(path) == 0 && query == "" || mayName(fragment) || r.leadsOn(strings.Join(path, "/")) || !isShaped(path) && r.leadsOn(query) {
		return URL{}, ErrInvalid
	}
	if len(path) > 0 && nullword.Is(path[len(path)-1]) {
		return URL{}, ErrEmpty
	}
	for i, part := range path {
		path[i] = encode(part)
	}
	u := URL{Key: host + "/" + strings.Join(path, "/"), Kind: Other}
	if query != "" {
		if u.Key += "?" + query; isList(u.Key) {
			return URL{}, ErrMultiple
		}
	}
	return u, nil
}

// mayName reports whether a fragment may name a person, as in /users#/ada and /users#id=1.
// Keys have no fragment, and would be those of many.
func mayName(fragment string) bool {
	if strings.HasPrefix(fragment, "/") || strings.HasPrefix(fragment, "!") {
		return true
	}
	if !strings.Contains(fragment, "=") || strings.HasPrefix(fragment, ":~:") { // #:~:text=… marks a text
		return false
	}
	named, err := cleanQuery(fragment)
	return named != "" || err != nil
}

func isShaped(path []string) bool {
	if len(path) == 0 {
		return false
	}
	_, ok := pageKinds[strings.ToLower(path[0])]
	return ok
}

// leadsOn reports whether s, the text after a host, contains another address, plain or
// encoded, as redirects, caches and archives do. Their targets may change.
func (r Rules) leadsOn(s string) bool {
	s = strings.ToLower(s)
	for _, mark := range []string{"://", "http:/", "https:/", "%3a%2f%2f", "%253a%252f%252f"} {
		if strings.Contains(s, mark) {
			return true
		}
	}
	for _, known := range r.Hosts {
		if strings.Contains(s, known) {
			return true
		}
	}
	return false
}

// encode percent-encodes reserved characters, and invisible ones, which would be trimmed at
// the end of a key.
func encode(part string) string {
	hidden := func(c rune) bool { return isReserved(c) || invisible.Is(c) }
	if !strings.ContainsFunc(part, hidden) {
		return part
	}
	var b strings.Builder
	for _, c := range part {
		if !hidden(c) {
			b.WriteRune(c)
			continue
		}
		for _, octet := range []byte(string(c)) {
			fmt.Fprintf(&b, "%%%02X", octet)
		}
	}
	return b.String()
}
