package request

import (
	"net/url"
	"strings"
	"unicode"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/transforms/email"
	"github.com/leadetl/leadetl/transforms/ipaddr"
	"github.com/leadetl/leadetl/transforms/profile"
	"github.com/leadetl/leadetl/transforms/search"
)

// addressKind is what a URI is for.
type addressKind uint8

const (
	// anyAddress is a page of a visitor: any absolute URI, such as
	// android-app:// or about:blank, or empty, as browsers send it for a page
	// that was opened directly.
	anyAddress addressKind = iota
	// withHost is an address to call.
	withHost
)

// address reads an absolute URI of at most Limits.URL characters; empty when the
// field is missing. Source: RFC 3986 4.3.
func (f *form) address(name string, kind addressKind) string {
	s, ok := f.text(name)
	if !ok || s == "" && kind == anyAddress || !f.fits("/"+name, s, f.limits.URL) {
		return ""
	}
	if !isAbsolute(s, kind == withHost) {
		f.problem("/"+name, "invalid_url", "must be an absolute URL, such as https://example.com/path")
		return ""
	}
	return s
}

func isAbsolute(s string, host bool) bool {
	if strings.ContainsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }) {
		return false // net/url accepts some of them
	}
	u, err := url.Parse(s)
	return err == nil && u.Scheme != "" && (!host || u.Hostname() != "")
}

// reasons explains the errors of the transforms to the caller. Their texts are the
// codes of the problems.
var reasons = map[error]string{
	email.ErrEmpty:            "must be an email address or the digest of one, not empty and not the digest of a missing value",
	email.ErrInvalidUTF8:      "must be UTF-8",
	email.ErrInvalidCharacter: "must not have a control, space or invisible character inside the address",
	email.ErrMultiple:         "must be one address, not several",
	email.ErrInvalid:          "must be an email address, or the md5, sha1 or sha256 digest of one",

	profile.ErrEmpty:       "must be the address of a profile page",
	profile.ErrInvalidUTF8: "must be UTF-8, also after percent-decoding",
	profile.ErrMultiple:    "must be one address, not several",
	profile.ErrInvalid:     "must be the address of a profile page, such as https://www.network.example/in/name",
	profile.ErrNotProfile:  "must be the page of a person, not of a company, a school or a showcase",

	ipaddr.ErrEmpty:    "must be an IP address",
	ipaddr.ErrMultiple: "must be one address, not several",
	ipaddr.ErrInvalid:  "must be an IPv4 or IPv6 address, such as 192.0.2.1 or 2001:db8::1",
}

// identifier reads the identifier of a single-record operation and returns its key.
func (f *form) identifier(kind resolution.Identifier, rules profile.Rules) (key string) {
	name := string(kind)
	text, ok := f.requiredText(name)
	if !ok || kind == resolution.NetworkURL && !f.fits("/"+name, text, f.limits.URL) {
		return ""
	}
	key, err := canonicalKey(kind, text, rules)
	if err != nil {
		f.problem("/"+name, err.Error(), "%s", reasons[err])
	}
	return key
}

// canonicalKey returns the key of an identifier. Its errors are those of reasons.
func canonicalKey(kind resolution.Identifier, text string, rules profile.Rules) (string, error) {
	switch kind {
	case resolution.Email:
		a, err := email.Parse([]byte(text))
		if err != nil {
			return "", err
		}
		return string(a.AppendKey(nil)), nil
	case resolution.NetworkURL:
		return rules.ParsePerson(text)
	}
	a, err := ipaddr.Parse(text)
	if err != nil {
		return "", err
	}
	return a.String(), nil
}

// terms are the values of a list in the order given, each once.
type terms struct {
	values []string
	folded []string // each value in the form by which values are compared
}

// terms reads a list of strings. Of values with the same folded form it keeps the
// first.
func (f *form) terms(name string, least, most int, read search.Term) (t terms) {
	known := make(map[string]struct{})
	f.list(name, least, most, func(text string) search.Fault {
		value, folded, wrong := read(search.Trimmed(text))
		if wrong != (search.Fault{}) {
			return wrong
		}
		if _, twice := known[folded]; !twice {
			known[folded] = struct{}{}
			t.values, t.folded = append(t.values, value), append(t.folded, folded)
		}
		return search.Fault{}
	})
	return t
}

// metadata checks the free-form member of a creation: any object that is not
// too large. Its size is that of its JSON without white space.
func (f *form) metadata() {
	const name = "metadata"
	if v := f.optional(name, objectKind); len(v) > f.limits.Metadata {
		f.problem("/"+name, "too_large", "must have at most %d bytes as JSON", f.limits.Metadata)
	}
}
