// Package ipaddr reads IP addresses and says what kind they are. The classes
// follow IANA's special-purpose registries, not the predicates of net/netip,
// which take shared, test and reserved ranges for public ones.
package ipaddr

import (
	"errors"
	"net/netip"
	"strings"
	"unsafe"

	"github.com/leadetl/leadetl/internal/nullword"
)

// Why a cell holds no usable address. Each text is the word of the dataset's
// reason column; none ever holds the value.
var (
	ErrEmpty    = errors.New("empty")      // nothing, or a word that means nothing
	ErrMultiple = errors.New("multiple")   // a list, as proxies write them
	ErrInvalid  = errors.New("invalid_ip") // no address
)

// Parse reads the address in s: as net/netip reads it, with surrounding space,
// a port (192.0.2.1:80, [2001:db8::1]:80) and a zone dropped. An IPv4 address
// in IPv6 notation (::ffff:192.0.2.1) is the IPv4 address. Errors are the
// package's, unwrapped.
func Parse(s string) (netip.Addr, error) {
	s = trim(s)
	if s == "" || nullword.Is(s) {
		return netip.Addr{}, ErrEmpty
	}
	if a, ok := parseOne(s); ok {
		return a, nil
	}
	if isList(s) {
		return netip.Addr{}, ErrMultiple
	}
	return netip.Addr{}, ErrInvalid
}

// ParseBytes is Parse of a cell. It keeps nothing of it and, unless it returns
// an error, does not allocate.
func ParseBytes(cell []byte) (netip.Addr, error) {
	// Parse takes substrings only to look at them, and the one thing that
	// net/netip would keep, the zone, is cut off before.
	return Parse(unsafe.String(unsafe.SliceData(cell), len(cell)))
}

func parseOne(s string) (netip.Addr, bool) {
	s, ok := withoutPort(s)
	if !ok {
		return netip.Addr{}, false
	}
	if host, zone, found := strings.Cut(s, "%"); found {
		// Only IPv6 has zones.
		if zone == "" || strings.IndexByte(host, ':') < 0 {
			return netip.Addr{}, false
		}
		s = host
	}
	if !looksLikeAddress(s) {
		return netip.Addr{}, false
	}
	a, err := netip.ParseAddr(s)
	return a.Unmap(), err == nil
}

// looksLikeAddress keeps most cells that are none away from net/netip, whose
// errors are built from the text.
func looksLikeAddress(s string) bool {
	const longest = "ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255"
	return len(s) >= len("::") && len(s) <= len(longest) && strings.ContainsAny(s, ".:")
}

// withoutPort drops the brackets of an IPv6 address and the port behind it or
// behind an IPv4 address. More than one colon outside brackets is IPv6 without
// a port. ok is false when there is a colon but no port behind it.
func withoutPort(s string) (host string, ok bool) {
	if strings.HasPrefix(s, "[") {
		host, rest, found := strings.Cut(s[1:], "]")
		if !found || strings.IndexByte(host, ':') < 0 {
			return "", false
		}
		return host, rest == "" || rest[0] == ':' && isPort(rest[1:])
	}
	host, port, found := strings.Cut(s, ":")
	if !found || strings.IndexByte(port, ':') >= 0 {
		return s, true
	}
	return host, isPort(port)
}

func isPort(s string) bool {
	n := 0
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' || i == len("65535") {
			return false
		}
		n = n*10 + int(s[i]-'0')
	}
	return s != "" && n <= 65535
}
