package request

import (
	"net/url"
	"strings"
	"unicode"
)

// addressKind is what a URI is for.
type addressKind uint8

const (
	// anyAddress is where a visitor was or came from: any absolute URI, such
	// as android-app:// or about:blank, or nothing, as browsers put it for a
	// page nobody led to.
	anyAddress addressKind = iota
	// withHost is somewhere to call.
	withHost
)

// address is an absolute URI of at most Limits.URL characters; empty when there
// is none. Source: RFC 3986 4.3.
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
		return false // net/url takes some
	}
	u, err := url.Parse(s)
	return err == nil && u.Scheme != "" && (!host || u.Hostname() != "")
}
