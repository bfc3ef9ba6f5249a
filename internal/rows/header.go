package rows

import (
	"net/netip"
	"slices"
	"strings"
)

// AreData reports whether what stands in the place of a header is a row: one
// of the names is more likely a value. Such names must not be shown.
func AreData(names []string) bool { return slices.ContainsFunc(names, isData) }

// isData reports whether a column's name is more likely a value: an address,
// a page, a number.
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
