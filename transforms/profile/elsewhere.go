package profile

import (
	"fmt"
	"strings"
	"unicode"
)

// elsewhere is the key of a page of a host that is not the network: host and
// path. A path in the network's own shape (/in/slug) gets the network's
// spelling; in any other, case may mean something and stays.
//
// Two things are refused that would be keys of the wrong person or of
// everybody: a host that merely looks like the network's, and an address that
// only leads to another.
func (r Rules) elsewhere(host string, path []string, query string) (URL, error) {
	for _, known := range r.Hosts {
		// linkedin.com.evil.example and notlinkedin.com: an attack or a slip,
		// never a neutral host.
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
		path[0], path[1] = strings.ToLower(path[0]), slug
		query = "" // may name a referrer; the page is the path's all the same
	}
	if len(path) == 0 || r.leadsOn(strings.Join(path, "/")) || r.leadsOn(query) {
		return URL{}, ErrInvalid
	}
	for i, part := range path {
		path[i] = encode(part)
	}
	return URL{Key: host + "/" + strings.Join(path, "/"), Kind: Other}, nil
}

func isShaped(path []string) bool {
	if len(path) == 0 {
		return false
	}
	_, ok := pageKinds[strings.ToLower(path[0])]
	return ok
}

// leadsOn reports whether s, what follows a host, holds another address, plain
// or encoded: the pages of redirects, caches and archives. They are not
// unwrapped, because what they lead to is the wrapper's to change, and without
// their query they would all be one key.
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

// encode percent-encodes the characters that cannot stand for themselves in a
// key, with format characters, which would be invisible at its end.
func encode(part string) string {
	hidden := func(c rune) bool { return isReserved(c) || unicode.Is(unicode.Cf, c) }
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
