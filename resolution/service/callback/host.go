package callback

import (
	"net/netip"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

// specialSuffixes are the last labels of names that are not in the public DNS, or
// that mean something else in each network. Names of cloud metadata services have
// them too. Sources: RFC 6761, 6762, 7686, 8375; the reservation of .internal by
// ICANN's board of 29 July 2024; the collision list of ICANN SAC 045.
var specialSuffixes = []string{
	"localhost", "localdomain", "local", "internal", "intranet", "private", "corp", "home", "lan", "onion", "arpa",
}

// setHost reads a host: a domain name, or an IP address in canonical spelling.
func (t *target) setHost(host string) error {
	if inner, found := strings.CutPrefix(host, "["); found {
		return t.setIPv6(strings.TrimSuffix(inner, "]"))
	}
	name, err := asciiName(host)
	if err != nil {
		return err
	}
	labels := strings.Split(name, ".")
	last := labels[len(labels)-1]
	switch {
	case numeric(last):
		t.addr, err = netip.ParseAddr(name) // accepts only four decimal numbers without leading zeros
		if err != nil {
			return ErrOddAddress
		}
	case !domainName(name, labels):
		return ErrBadHost
	case len(labels) == 1 || slices.Contains(specialSuffixes, last):
		if t.fault == "" {
			t.fault = ErrSpecialName
		}
	}
	t.host = name
	return nil
}

// setIPv6 reads the text between the brackets. The canonical spelling is that of
// RFC 5952.
func (t *target) setIPv6(s string) error {
	a, err := netip.ParseAddr(s)
	if err != nil || !a.Is6() || a.Is4In6() || a.Zone() != "" || a.String() != s {
		return ErrOddAddress
	}
	t.addr, t.host = a, s
	return nil
}

// asciiName returns a host in lower-case ASCII. A label in other letters is encoded
// as in DNS, if its letters are canonical. Compatibility forms of ASCII, such as
// full-width digits, are refused, because they can hide an IP address.
func asciiName(host string) (string, error) {
	if numeric(lastLabel(strings.TrimSuffix(host, "."))) && strings.HasSuffix(host, ".") {
		return "", ErrOddAddress
	}
	labels := strings.Split(host, ".")
	for i, label := range labels {
		if ascii(label) {
			labels[i] = strings.ToLower(label)
			continue
		}
		encoded, err := idna.Registration.ToASCII(label) // an error for letters that are not canonical
		if err != nil || !strings.HasPrefix(encoded, "xn--") || strings.ContainsFunc(label, symbol) {
			return "", oddOrBad(host)
		}
		labels[i] = encoded
	}
	return strings.Join(labels, "."), nil
}

// oddOrBad returns the refusal of a host in letters that are not canonical.
func oddOrBad(host string) Refusal {
	mapped, _ := idna.Lookup.ToASCII(host) // use what it returns beside an error
	if numeric(lastLabel(strings.TrimSuffix(mapped, "."))) {
		return ErrOddAddress
	}
	return ErrBadHost
}

// symbol reports whether a character is not part of a word. Some look like a slash.
func symbol(r rune) bool {
	return r != '-' && !unicode.In(r, unicode.Letter, unicode.Mark, unicode.Nd)
}

func ascii(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r >= utf8.RuneSelf })
}

func lastLabel(name string) string { return name[strings.LastIndexByte(name, '.')+1:] }

// numeric reports whether a last label makes some programs read the whole host as
// an IPv4 address: digits, or 0x and hexadecimal digits. Source: WHATWG URL
// Standard, "ends in a number".
func numeric(label string) bool {
	if hex, found := strings.CutPrefix(strings.ToLower(label), "0x"); found {
		return strings.Trim(hex, "0123456789abcdef") == ""
	}
	return label != "" && strings.Trim(label, "0123456789") == ""
}

// domainName reports whether labels are those of the name of a host, without a dot
// at the end. Source: RFC 1123, 2.1.
func domainName(name string, labels []string) bool {
	if len(name) > 253 {
		return false
	}
	for _, label := range labels {
		if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' ||
			strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
			return false
		}
		if _, err := idna.Lookup.ToUnicode(label); err != nil && strings.HasPrefix(label, "xn--") {
			return false
		}
	}
	return true
}
