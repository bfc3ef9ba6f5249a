// Package profile turns the address of a profile page into the key of a
// person, a company or a school.
//
// The one thing to know before using it: which hosts are the network is a
// setting (Rules.Hosts); an address anywhere else keeps its host and its path,
// and nobody can say whose it is.
package profile

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/leadetl/leadetl/internal/nullword"
)

// Kind is whose page an address is.
type Kind uint8

// The kinds of page.
const (
	Person Kind = iota
	Company
	School
	Showcase
	Other // a page of a host that is not the network
)

var kindNames = [...]string{
	Person: "person", Company: "company", School: "school", Showcase: "showcase", Other: "other",
}

// String is the kind in a word.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "unknown"
}

// Rules says which hosts are the network. The zero value knows none. A Rules is
// read only and may be used from any number of goroutines.
type Rules struct {
	// Hosts are lower-case, without www.; a host is of the network when it is
	// one of them, or ends in a dot and one of them.
	Hosts []string
}

// DefaultRules are the rules for the one professional network that most lists
// come from.
func DefaultRules() Rules { return Rules{Hosts: []string{"linkedin.com"}} }

// URL is a parsed address.
type URL struct {
	// Key is the address in its one spelling, without scheme:
	// linkedin.com/in/jane-doe-82a505. Parsed again it gives itself.
	Key  string
	Kind Kind
}

// Parse reads one cell: an address with or without scheme, of a page of the
// network that belongs to somebody or of any page elsewhere. Errors are the
// sentinels of this package, unwrapped.
func (r Rules) Parse(s string) (URL, error) {
	if !utf8.ValidString(s) {
		return URL{}, ErrInvalidUTF8
	}
	s = strings.TrimFunc(s, isSurrounding)
	if s == "" || nullword.Is(s) {
		return URL{}, ErrEmpty
	}
	if isList(s) {
		return URL{}, ErrMultiple
	}

	scheme, rest, found := strings.Cut(s, "://")
	switch {
	case !found || strings.ContainsAny(scheme, "/?#"): // no scheme; a :// further on is no scheme's
		rest = strings.TrimPrefix(s, "//")
	case strings.EqualFold(scheme, "http"), strings.EqualFold(scheme, "https"):
	default:
		// linkedin://in/jane-doe is how the network's app is opened at a page:
		// what looks like a host is the path.
		if host := r.deepLink(scheme); host != "" {
			path, _ := splitQuery(rest)
			return page(host, splitPath(path))
		}
		return URL{}, ErrInvalid
	}

	rest, query := splitQuery(rest)
	authority, path, _ := strings.Cut(rest, "/")
	host, ok := cleanHost(authority)
	if !ok {
		return URL{}, ErrInvalid
	}
	if network := r.network(host); network != "" {
		return page(network, splitPath(path))
	}
	return r.elsewhere(host, splitPath(path), query)
}

// ParsePerson reads one cell of a column of people and returns the key.
// ErrNotProfile: the page is a company's, a school's or a showcase; of a host
// that is not the network, that is guessed by a path in the network's shape
// (/company/…), and every other page there is taken for a person's.
func (r Rules) ParsePerson(s string) (key string, err error) {
	u, err := r.Parse(s)
	if err != nil {
		return "", err
	}
	kind := u.Kind
	if kind == Other {
		_, path, _ := strings.Cut(u.Key, "/")
		first, _, _ := strings.Cut(path, "/")
		kind = pageKinds[first] // Person when it is none
	}
	if kind != Person {
		return "", ErrNotProfile
	}
	return u.Key, nil
}

func splitQuery(s string) (before, query string) {
	if i := strings.IndexAny(s, "?#"); i >= 0 {
		return s[:i], s[i+1:]
	}
	return s, ""
}

// isSurrounding reports whether c is taken off at both ends: white space,
// angle brackets, and the invisible marks that come with copied text.
func isSurrounding(c rune) bool {
	return c == '<' || c == '>' || unicode.IsSpace(c) || unicode.Is(unicode.Cf, c)
}
