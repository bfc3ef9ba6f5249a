package profile

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/leadetl/leadetl/internal/invisible"
)

// cleanHost returns the host of an authority in lower case, without user, port, root
// dot, www. and m. ok is false if the rest is not a name of two or more labels.
func cleanHost(authority string) (host string, ok bool) {
	host = authority[strings.LastIndexByte(authority, '@')+1:]
	if name, port, found := strings.Cut(host, ":"); found {
		if strings.Trim(port, "0123456789") != "" {
			return "", false
		}
		host = name
	}
	host = strings.TrimSuffix(lower(host), ".")
	for {
		rest, found := strings.CutPrefix(host, "www.")
		if !found {
			rest, found = strings.CutPrefix(host, "m.")
		}
		if !found || !strings.Contains(rest, ".") { // www.com is a site
			break
		}
		host = rest
	}

	labels, last := 0, ""
	for label := range strings.SplitSeq(host, ".") {
		if !isLabel(label) {
			return "", false
		}
		labels, last = labels+1, label
	}
	// No top-level domain is a number, so 10.0.0.1/24 is not a host.
	return host, labels > 1 && strings.Trim(last, "0123456789") != ""
}

func isLabel(s string) bool {
	if s == "" || len(s) > 63 || s[0] == '-' || s[len(s)-1] == '-' {
		return false
	}
	for _, c := range s {
		switch {
		case c == '-', '0' <= c && c <= '9', 'a' <= c && c <= 'z':
		case c >= utf8.RuneSelf && unicode.In(c, unicode.L, unicode.Mn, unicode.Mc, unicode.Nd) && !invisible.Is(c):
		default:
			return false
		}
	}
	return true
}

// network returns the longest of the network's hosts that host belongs to, which may
// have labels in front (such as uk.); "" without one.
func (r Rules) network(host string) string {
	found := ""
	for _, known := range r.Hosts {
		before, ok := strings.CutSuffix(host, known)
		if ok && (before == "" || strings.HasSuffix(before, ".")) && len(known) > len(found) {
			found = known
		}
	}
	return found
}

// deepLink returns the host whose app has addresses of this scheme, which is the first
// label of the host.
func (r Rules) deepLink(scheme string) string {
	for _, known := range r.Hosts {
		if name, _, _ := strings.Cut(known, "."); strings.EqualFold(name, scheme) {
			return known
		}
	}
	return ""
}

// lower returns text in one spelling without regard to case: composed (NFC), in lower
// case by the simple mapping, and composed again, because some letters compose in
// lower case only (j and caron).
func lower(s string) string {
	return norm.NFC.String(strings.ToLower(norm.NFC.String(s)))
}
