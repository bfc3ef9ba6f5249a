// Package ipaddr reads IP addresses and classifies them. The classes follow IANA's
// special-purpose registries. The predicates of net/netip would count shared, test and
// reserved ranges as public.
package ipaddr

import (
	"errors"
	"net/netip"
	"strings"
	"unsafe"

	"github.com/leadetl/leadetl/internal/nullword"
)

// The reasons why a cell has no usable address. Their texts are the words in the
// reason column of a dataset.
var (
	ErrEmpty    = errors.New("empty")      // an empty cell, or a null word
	ErrMultiple = errors.New("multiple")   // a list, as proxies write them
	ErrInvalid  = errors.New("invalid_ip") // not an address
)

// Parse reads the address in s with net/netip, after it drops surrounding space, a
// port (192.0.2.1:80, [2001:db8::1]:80) and a zone. An IPv4 address in IPv6 notation
// (::ffff:192.0.2.1) is the IPv4 address. Errors are those of this package, unwrapped.
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

// ParseBytes is Parse of a cell. It does not keep the cell, and does not allocate
// without an error.
func ParseBytes(cell []byte) (netip.Addr, error) {
	// Parse keeps no substring. net/netip would keep the zone, which is cut off
	// before.
	return Parse(unsafe.String(unsafe.SliceData(cell), len(cell)))
}

// ParseCanonical4 reads a cell that is an IPv4 address as netip prints it. ok is false for
// any other, which Parse may read. It is the short way for most cells.
func ParseCanonical4(cell []byte) (a netip.Addr, ok bool) {
	var raw [4]byte
	field, part, digits := 0, 0, 0
	for _, c := range cell {
		switch {
		case '0' <= c && c <= '9':
			if digits > 0 && part == 0 {
				return netip.Addr{}, false // a leading zero
			}
			if part = part*10 + int(c-'0'); part > 255 {
				return netip.Addr{}, false
			}
			digits++
		case c == '.' && digits > 0 && field < 3:
			raw[field] = byte(part)
			field, part, digits = field+1, 0, 0
		default:
			return netip.Addr{}, false
		}
	}
	if field < 3 || digits == 0 {
		return netip.Addr{}, false
	}
	raw[3] = byte(part)
	return netip.AddrFrom4(raw), true
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

// looksLikeAddress refuses most cells that are not addresses, because net/netip is
// slow for them: it builds errors of the text.
func looksLikeAddress(s string) bool {
	const longest = "ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255"
	return len(s) >= len("::") && len(s) <= len(longest) && strings.ContainsAny(s, ".:")
}

// withoutPort drops the brackets of an IPv6 address and the port of an address. Text
// with several colons outside brackets is IPv6 without a port. ok is false for a colon
// without a port.
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
