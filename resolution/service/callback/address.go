package callback

import (
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxURLBytes bounds a callback address.
const maxURLBytes = 2048

// target is a callback address taken apart. What was judged is what is called:
// a Sender uses url, not the text it was read from.
type target struct {
	url   *url.URL   // with the canonical host
	host  string     // a lower-case ASCII name, or an address without brackets
	addr  netip.Addr // when the host is an address
	port  string
	plain bool    // http, not https
	fault Refusal // a fault that is overlooked where every address is opened; "" without one
}

// receiver returns host and port: whom the deliveries go to.
func (t target) receiver() string { return net.JoinHostPort(t.host, t.port) }

// parse takes a callback address apart. It is stricter than the standards
// where programs read one text in two ways, and asks nobody.
func parse(raw string) (target, error) {
	var t target
	if len(raw) > maxURLBytes {
		return t, ErrTooLong
	}
	scheme, rest, found := strings.Cut(raw, "://")
	if !found || scheme == "" || !utf8.ValidString(raw) || strings.ContainsFunc(raw, unfit) {
		return t, ErrInvalidURL
	}
	authority, rest := cutAuthority(rest)
	switch {
	case strings.EqualFold(scheme, "https"):
		scheme, t.port = "https", "443"
	case strings.EqualFold(scheme, "http"):
		scheme, t.port, t.plain, t.fault = "http", "80", true, ErrNotHTTPS
	default:
		return t, ErrNotHTTPS
	}
	switch {
	case strings.ContainsFunc(rest, func(r rune) bool { return r >= utf8.RuneSelf }):
		return t, ErrInvalidURL
	case strings.Contains(authority, "@"):
		return t, ErrUserInfo
	case strings.Contains(rest, "#"):
		return t, ErrFragment
	}
	host, port, err := cutPort(authority)
	if err != nil {
		return t, err
	}
	if port != "" {
		t.port = port
		if t.fault == "" && !openPort(port) {
			t.fault = ErrPort
		}
	}
	if err := t.setHost(host); err != nil {
		return t, err
	}
	return t, t.setURL(scheme, port, rest)
}

// unfit holds for what no address has in it unescaped, and for the backslash,
// which some programs read as a slash.
func unfit(r rune) bool { return r <= ' ' || r == 0x7f || r == '\\' }

// openPort holds for the ports anybody's callbacks may go to.
func openPort(port string) bool { return port == "443" || port == "8443" }

// cutAuthority cuts what is behind the scheme into the authority and the rest,
// which is empty or begins with / ? or #.
func cutAuthority(s string) (authority, rest string) {
	if i := strings.IndexAny(s, "/?#"); i >= 0 {
		return s[:i], s[i:]
	}
	return s, ""
}

// cutPort cuts an authority without user information into the host, brackets
// included, and the port, empty when there is none.
func cutPort(authority string) (host, port string, err error) {
	host = authority
	if end := strings.LastIndexByte(authority, ']'); strings.HasPrefix(authority, "[") && end > 0 {
		host, port = authority[:end+1], authority[end+1:]
	} else if i := strings.IndexByte(authority, ':'); i >= 0 {
		host, port = authority[:i], authority[i:]
	}
	if port == "" {
		return host, "", nil
	}
	number, found := strings.CutPrefix(port, ":")
	if strings.Contains(number, ":") {
		return "", "", ErrOddAddress // IPv6 without brackets
	}
	n, err := strconv.ParseUint(number, 10, 16)
	if !found || err != nil || n == 0 || strconv.FormatUint(n, 10) != number {
		return "", "", ErrPort
	}
	return host, number, nil
}

// setURL puts the address together again, its host canonical, and sees that
// net/url, which everything behind uses, reads it as it was read here.
func (t *target) setURL(scheme, port, rest string) error {
	authority := t.host
	if t.addr.Is6() {
		authority = "[" + authority + "]"
	}
	if port != "" {
		authority += ":" + port
	}
	u, err := url.Parse(scheme + "://" + authority + rest)
	if err != nil || u.Scheme != scheme || u.Host != authority || u.Hostname() != t.host || u.Port() != port || u.User != nil || u.Fragment != "" || u.Opaque != "" {
		return ErrInvalidURL
	}
	t.url = u
	return nil
}
