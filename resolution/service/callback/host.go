package callback

import (
	"net/netip"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

// specialSuffixes are the ends of names that each network, or each machine,
// gives its own meaning, and of those that are in no public DNS. Sources: RFC
// 6761, 6762, 7686, 8375; the reservation of .internal by ICANN's board of 29
// July 2024; the collision list of ICANN SAC 045. The names of cloud metadata
// services end so as well.
var specialSuffixes = []string{
	"localhost", "localdomain", "local", "internal", "intranet", "private", "corp", "home", "lan", "onion", "arpa",
}

// setHost reads a host: an address in its one canonical spelling, or a domain
// name.
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
		t.addr, err = netip.ParseAddr(name) // takes four decimal numbers without leading zeros only
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

// setIPv6 reads what is between the brackets. Source of the canonical
// spelling: RFC 5952.
func (t *target) setIPv6(s string) error {
	a, err := netip.ParseAddr(s)
	if err != nil || !a.Is6() || a.Is4In6() || a.Zone() != "" || a.String() != s {
		return ErrOddAddress
	}
	t.addr, t.host = a, s
	return nil
}

// asciiName returns a host in lower-case ASCII. A label in other letters
// becomes the one that DNS knows, but only if those letters are the canonical
// ones: compatibility forms (full-width, circled) of ASCII are how an address
// is smuggled past a reader.
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
		encoded, err := idna.Registration.ToASCII(label) // maps nothing: what is not canonical is an error
		if err != nil || !strings.HasPrefix(encoded, "xn--") || strings.ContainsFunc(label, symbol) {
			return "", oddOrBad(host)
		}
		labels[i] = encoded
	}
	return strings.Join(labels, "."), nil
}

// oddOrBad tells an address in foreign letters from a name in them.
func oddOrBad(host string) Refusal {
	mapped, _ := idna.Lookup.ToASCII(host) // as good as it gets, whatever the error
	if numeric(lastLabel(strings.TrimSuffix(mapped, "."))) {
		return ErrOddAddress
	}
	return ErrBadHost
}

// symbol holds for what is no part of a word, a slash that is none among them.
func symbol(r rune) bool {
	return r != '-' && !unicode.In(r, unicode.Letter, unicode.Mark, unicode.Nd)
}

func ascii(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r >= utf8.RuneSelf })
}

func lastLabel(name string) string { return name[strings.LastIndexByte(name, '.')+1:] }

// numeric holds for a last label that makes some programs read the whole host
// as an IPv4 address: digits, or 0x and hexadecimal digits. Source: WHATWG URL
// Standard, "ends in a number".
func numeric(label string) bool {
	if hex, found := strings.CutPrefix(strings.ToLower(label), "0x"); found {
		return strings.Trim(hex, "0123456789abcdef") == ""
	}
	return label != "" && strings.Trim(label, "0123456789") == ""
}

// domainName reports whether labels are those of a host's name, without the
// dot at the end that few expect. Source: RFC 1123, 2.1.
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
