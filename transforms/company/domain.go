package company

import (
	"strings"

	"golang.org/x/net/idna"
)

// domains maps and checks names as browsers do, and checks the lengths and letters of
// host names.
// Source: UTS 46, non-transitional; RFC 1123, 2.1; RFC 1035, 2.3.4.
var domains = idna.New(
	idna.MapForLookup(),
	idna.Transitional(false),
	idna.StrictDomainName(true),
	idna.BidiRule(),
	idna.VerifyDNSLength(true),
)

// Domain returns the domain in s, which may be a domain, a host or a URL: lower-case
// A-labels (xn--…) without scheme, user, www., port, path and trailing dot. It is ""
// if s has no domain, such as an IP address or a single label.
func Domain(s string) string {
	if isCanonicalDomain(s) {
		return s
	}
	return domain(s)
}

func domain(s string) string {
	// The dot of the root may be any character that counts as a dot.
	host := strings.TrimRightFunc(authority(trim(s)), func(r rune) bool { return strings.ContainsRune(".。．｡", r) })
	name, err := domains.ToASCII(host)
	if err != nil {
		return ""
	}
	name = withoutWWW(name)
	dot := strings.LastIndexByte(name, '.')
	if dot < 0 {
		return ""
	}
	if last := name[dot+1:]; last == "" || numeric(last) {
		return ""
	}
	return name
}

// NetworkURL returns a page address without scheme, user, www., port, query, fragment
// and trailing slashes. The host is in lower case, the path as it was. It is "" when
// s is empty.
func NetworkURL(s string) string {
	if isCanonicalPage(s) {
		return s
	}
	return networkURL(s)
}

func networkURL(s string) string {
	s = trim(s)
	host := strings.ToLower(authority(s))
	rest := withoutScheme(s)
	path := ""
	if i := strings.IndexAny(rest, `/?#\`); i >= 0 && rest[i] == '/' {
		path = rest[i:]
		if end := strings.IndexAny(path, "?#"); end >= 0 {
			path = path[:end]
		}
	}
	return withoutWWW(host) + strings.TrimRight(path, "/")
}

// authority returns the host of an address, which may lack a scheme.
func authority(s string) string {
	s = withoutScheme(s)
	if i := strings.IndexAny(s, `/?#\`); i >= 0 {
		s = s[:i]
	}
	s = s[strings.LastIndexByte(s, '@')+1:]
	if i := strings.LastIndexByte(s, ':'); i >= 0 && (numeric(s[i+1:]) || s[i+1:] == "") {
		s = s[:i]
	}
	return s
}

// withoutScheme drops a scheme such as https://, and the // of an address without
// one.
func withoutScheme(s string) string {
	if i := strings.Index(s, "//"); i == 0 || i > 0 && s[i-1] == ':' && !strings.ContainsAny(s[:i], "/?#") {
		return s[i+len("//"):]
	}
	return s
}

// withoutWWW drops www. if the rest is still a domain.
func withoutWWW(host string) string {
	for {
		rest, found := strings.CutPrefix(host, "www.")
		if !found || strings.IndexByte(rest, '.') < 0 {
			return host
		}
		host = rest
	}
}

func numeric(s string) bool {
	for i := range len(s) {
		if !digit(s[i]) {
			return false
		}
	}
	return s != ""
}
