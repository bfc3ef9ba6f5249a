package request

import (
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/transforms/email"
	"github.com/leadetl/leadetl/transforms/ipaddr"
	"github.com/leadetl/leadetl/transforms/profile"
)

// reasons says what the transforms' words mean to whoever sent the value. The
// words themselves are the problems' codes.
var reasons = map[error]string{
	email.ErrEmpty:            "must hold an email address, or a digest of one that is not the digest of nothing",
	email.ErrInvalidUTF8:      "must be UTF-8",
	email.ErrInvalidCharacter: "must not have a control, format or space character inside the address",
	email.ErrMultiple:         "must hold one address, not several",
	email.ErrInvalid:          "must be an email address, or the md5, sha1 or sha256 digest of one",

	profile.ErrEmpty:       "must hold the address of a profile page",
	profile.ErrInvalidUTF8: "must be UTF-8, also after percent-decoding",
	profile.ErrMultiple:    "must hold one address, not several",
	profile.ErrInvalid:     "must be the address of a profile page, such as https://www.network.example/in/name",
	profile.ErrNotProfile:  "must be the page of a person, not of a company, a school or a showcase",

	ipaddr.ErrEmpty:    "must hold an IP address",
	ipaddr.ErrMultiple: "must hold one address, not several",
	ipaddr.ErrInvalid:  "must be an IPv4 or IPv6 address, such as 192.0.2.1 or 2001:db8::1",
}

// identifier reads what a single-record operation is asked about and returns
// its key.
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

// canonicalKey is the key of an identifier. Errors are those of reasons.
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
