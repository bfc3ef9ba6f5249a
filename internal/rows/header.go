package rows

import (
	"net/netip"
	"slices"
	"strings"
)

// AreData reports whether a header is probably a row, because one of its names is
// probably a value. Do not show such names.
func AreData(names []string) bool { return slices.ContainsFunc(names, isData) }

// isData reports whether the name of a column is probably a value: an address, a page or a
// number.
func isData(name string) bool {
	if strings.ContainsRune(name, '@') || strings.Contains(name, "://") || strings.Contains(name, "/in/") {
		return true
	}
	if _, err := netip.ParseAddr(name); err == nil {
		return true
	}
	digits, letters := 0, 0
	for _, r := range name {
		switch {
		case r >= '0' && r <= '9':
			digits++
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z':
			letters++
		}
	}
	hex := digits > 0 && len(name) >= 32 && digits+letters == len(name)
	return hex || digits >= 6 && letters == 0
}
