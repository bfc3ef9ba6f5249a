// Package profile turns the address of a profile page into the key of a person, a
// company or a school.
//
// The one thing to know before using it: Rules.Hosts says which hosts are the network.
// An address elsewhere keeps its host, path and query, and its kind is Other.
package profile

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/leadetl/leadetl/internal/invisible"
	"github.com/leadetl/leadetl/internal/nullword"
	"github.com/leadetl/leadetl/internal/spreadsheet"
)

// Kind is the kind of a page.
type Kind uint8

// The kinds.
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

// String returns the kind in a word.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "unknown"
}

// Rules says which hosts are the network; none in the zero value. It is read only, and
// safe from any number of goroutines.
type Rules struct {
	// Hosts are in lower case, without www. Their subdomains belong to the
	// network too.
	Hosts []string
}

// DefaultRules are the rules for the network that most lists come from.
func DefaultRules() Rules { return Rules{Hosts: []string{"linkedin.com"}} }

// URL is a parsed address.
type URL struct {
	// Key is the address in one spelling, without scheme:
	// linkedin.com/in/jane-doe-82a505. Parse of it returns the same key.
	Key  string
	Kind Kind
}

// Parse reads a cell with an address, with or without scheme: of a page of the network
// that belongs to somebody, or of any page elsewhere. Errors are the sentinels of this
// package, unwrapped.
func (r Rules) Parse(s string) (URL, error) {
	if !utf8.ValidString(s) {
		return URL{}, ErrInvalidUTF8
	}
	s = strings.TrimFunc(spreadsheet.Value(s), isSurrounding)
	if s == "" || nullword.Is(s) {
		return URL{}, ErrEmpty
	}
	if isList(s) {
		return URL{}, ErrMultiple
	}
	return r.parse(s)
}

// parse is Parse of a trimmed text.
func (r Rules) parse(s string) (URL, error) {
	scheme, rest, found := strings.Cut(s, "://")
	switch {
	case !found || strings.ContainsAny(scheme, "/?#"): // no scheme; a :// after / ? or # does not end one
		rest = strings.TrimPrefix(s, "//")
	case strings.EqualFold(scheme, "http"), strings.EqualFold(scheme, "https"):
	default:
		// linkedin://in/jane-doe opens a page in the app of the network. What
		// looks like a host is a part of the path.
		if host := r.deepLink(scheme); host != "" {
			path, query, _ := splitAddress(rest)
			return r.page(host, splitPath(path), query)
		}
		return URL{}, ErrInvalid
	}

	rest, query, fragment := splitAddress(rest)
	authority, path, _ := strings.Cut(rest, "/")
	host, ok := cleanHost(authority)
	if !ok {
		return URL{}, ErrInvalid
	}
	if network := r.network(host); network != "" {
		return r.page(network, splitPath(path), query)
	}
	return r.elsewhere(host, splitPath(path), query, fragment)
}

// ParsePerson reads a cell of a column of people and returns the key. The error is
// ErrNotProfile for a page of a company, a school or a showcase. Outside the network
// the path decides (/company/…); any other page there counts as that of a person.
// The key may be a part of s.
func (r Rules) ParsePerson(s string) (key string, err error) {
	key, lowered, ok := r.plainPerson(s)
	if !ok {
		return r.parsePerson(s)
	}
	if hasCapitals(key[:lowered]) {
		key = strings.ToLower(key[:lowered]) + key[lowered:]
	}
	return key, nil
}

// AppendPerson appends what ParsePerson returns.
func (r Rules) AppendPerson(to []byte, s string) ([]byte, error) {
	key, lowered, ok := r.plainPerson(s)
	if !ok {
		key, err := r.parsePerson(s)
		return append(to, key...), err
	}
	return append(appendLower(to, key[:lowered]), key[lowered:]...), nil
}

// WithoutQuery returns the host and path of a key. other says that the key has a query.
func WithoutQuery(key string) (page string, other bool) {
	page, _, other = strings.Cut(key, "?")
	return page, other
}

// AsTyped returns the address to open instead of https:// and a key: that in the cell of the
// key, if it has a query, because the key has it in another order. Else it is empty. The user
// of an address is left out: it is a credential.
func AsTyped(cell, key string) string {
	if !strings.Contains(key, "?") {
		return ""
	}
	address := strings.TrimFunc(spreadsheet.Value(cell), isSurrounding)
	scheme, rest, found := strings.Cut(address, "://")
	if !found || strings.ContainsAny(scheme, "/?#") {
		scheme, rest = "https", strings.TrimPrefix(address, "//")
	}
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		return ""
	}
	host, _ := cleanHost(rest[:end])
	address = scheme + "://" + rest[strings.LastIndexByte(rest[:end], '@')+1:]
	if address == "https://"+key || !strings.HasPrefix(key, host+"/") || len(address) > maxTyped { // the host is another one behind /in/
		return ""
	}
	return address
}

// maxTyped bounds an address that is sent as typed. Services refuse longer ones, and long
// ones have many parameters of campaigns.
const maxTyped = 2000

func (r Rules) parsePerson(s string) (key string, err error) {
	u, err := r.Parse(s)
	if err != nil {
		return "", err
	}
	kind := u.Kind
	if kind == Other {
		_, path, _ := strings.Cut(u.Key, "/")
		first, _, _ := strings.Cut(path, "/")
		kind = pageKinds[first] // Person without one
	}
	if kind != Person {
		return "", ErrNotProfile
	}
	return u.Key, nil
}

// splitAddress returns the parts of an address without scheme: host and path, query, and
// fragment.
func splitAddress(s string) (before, query, fragment string) {
	s, fragment, _ = strings.Cut(s, "#")
	before, query, _ = strings.Cut(s, "?")
	return before, query, fragment
}

// isSurrounding reports whether c is trimmed at both ends: white space, angle brackets,
// and the invisible characters of copied text.
func isSurrounding(c rune) bool {
	return c == '<' || c == '>' || unicode.IsSpace(c) || invisible.Is(c)
}
