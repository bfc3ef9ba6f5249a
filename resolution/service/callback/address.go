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

// target is a parsed callback address. A Sender calls url and never the original
// text, so it calls what was checked.
type target struct {
	url   *url.URL   // with the canonical host
	host  string     // a lower-case ASCII name, or an address without brackets
	addr  netip.Addr // when the host is an address
	port  string
	plain bool    // http, not https
	fault Refusal // a fault that Policy.Allow may excuse; "" without one
}

// receiver returns host and port, which identify a receiver.
func (t target) receiver() string { return net.JoinHostPort(t.host, t.port) }

// parse parses a callback address without any look-up. It is stricter than the
// standards where programs read one text in two ways.
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

// unfit reports whether a character cannot be in an address without an escape. The
// backslash cannot, because some programs read it as a slash.
func unfit(r rune) bool { return r <= ' ' || r == 0x7f || r == '\\' }

// openPort reports whether callbacks may go to a port of any address.
func openPort(port string) bool { return port == "443" || port == "8443" }

// cutAuthority cuts the text after the scheme into the authority and the rest. The
// rest is empty or begins with / ? or #.
func cutAuthority(s string) (authority, rest string) {
	if i := strings.IndexAny(s, "/?#"); i >= 0 {
		return s[:i], s[i:]
	}
	return s, ""
}

// cutPort cuts an authority without user information into the host, with its
// brackets, and the port, which may be empty.
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

// setURL sets the URL, with the canonical host. It checks that net/url, which the
// transport uses, parses the URL as it was parsed here.
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
