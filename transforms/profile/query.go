package profile

import (
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/leadetl/leadetl/internal/nullword"
)

// cleanQuery returns the parameters of a query that may say whose page it is, in the order
// of their names and otherwise as typed: their case and encoding may mean something. If all
// are placeholders, it is ErrEmpty: one key would stand for everybody.
func cleanQuery(query string) (string, error) {
	if query == "" {
		return "", nil
	}
	if strings.ContainsFunc(query, isNotInQuery) {
		return "", ErrInvalid
	}
	var kept []string
	named := false
	for parameter := range strings.SplitSeq(query, "&") {
		name, value, hasName := strings.Cut(parameter, "=")
		if parameter == "" || isTracking(name) {
			continue
		}
		if !hasName {
			value = name // read.php?1423
		}
		named = named || value != "" && !nullword.Is(value)
		kept = append(kept, parameter)
	}
	if len(kept) > 0 && !named {
		return "", ErrEmpty
	}
	slices.SortStableFunc(kept, func(a, b string) int {
		a, _, _ = strings.Cut(a, "=")
		b, _, _ = strings.Cut(b, "=")
		return strings.Compare(a, b)
	})
	return strings.Join(kept, "&"), nil
}

// isTracking reports whether a parameter only says where a visitor came from.
func isTracking(name string) bool {
	name = strings.TrimPrefix(name, "amp;") // of &amp; in text copied from HTML
	if decoded, err := url.QueryUnescape(name); err == nil {
		name = decoded
	}
	switch name = strings.ToLower(name); name {
	case "gclid", "fbclid", "msclkid", "trk", "ref":
		return true
	}
	return strings.HasPrefix(name, "utm_") || strings.HasPrefix(name, "mc_")
}

// isNotInQuery reports whether c is in no query: a key could not be read again.
func isNotInQuery(c rune) bool {
	return isSurrounding(c) || c == utf8.RuneError || unicode.IsControl(c) || unicode.In(c, unicode.Z)
}
