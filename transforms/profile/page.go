package profile

import (
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// pageKinds are the first parts of the network's paths that somebody owns.
// pub, the address of people before 2014, is apart: its slug has to be built.
var pageKinds = map[string]Kind{
	"in": Person, "company": Company, "school": School, "showcase": Showcase,
}

// page is the key of a page of the network; host is as in Rules. What has no
// slug belongs to nobody (/feed/…), and the ids of /sales/lead/… name people but
// cannot be turned into their addresses offline: both are ErrInvalid.
func page(host string, path []string) (URL, error) {
	path, err := withoutMobile(path)
	if err != nil {
		return URL{}, err
	}
	if len(path) < 2 {
		return URL{}, ErrInvalid
	}
	first := strings.ToLower(path[0])
	slug, err := decode(path[1])
	if err != nil {
		return URL{}, err
	}
	if slug, err = cleanSlug(slug); err != nil {
		return URL{}, err
	}
	if first == "pub" {
		if slug, err = legacySlug(slug, path[2:]); err != nil {
			return URL{}, err
		}
		first = "in"
	}
	kind, ok := pageKinds[first]
	if !ok {
		return URL{}, ErrInvalid
	}
	return URL{Key: host + "/" + first + "/" + slug, Kind: kind}, nil
}

// splitPath returns the parts of a path, empty ones dropped, still encoded.
func splitPath(path string) []string {
	return strings.FieldsFunc(path, func(c rune) bool { return c == '/' })
}

// withoutMobile decodes the first part of a path, and drops it as long as it is
// m or mwlite, which only say how the page is drawn.
func withoutMobile(path []string) ([]string, error) {
	for len(path) > 0 {
		first, err := decode(path[0])
		if err != nil {
			return nil, err
		}
		if !strings.EqualFold(first, "m") && !strings.EqualFold(first, "mwlite") {
			return append([]string{first}, path[1:]...), nil
		}
		path = path[1:]
	}
	return nil, nil
}

// decode takes off one layer of percent-encoding and composes the text (NFC).
func decode(part string) (string, error) {
	part, err := url.PathUnescape(part)
	if err != nil {
		return "", ErrInvalid
	}
	if !utf8.ValidString(part) {
		return "", ErrInvalidUTF8
	}
	return norm.NFC.String(part), nil
}

// cleanSlug gives a decoded slug its one spelling. A slug holds no sign that
// would mean something else in an address; after one decoding that is refused
// rather than guessed at: %253D was encoded twice, %3Ftrk= is a query. Format
// characters may stand inside, names in some scripts need them.
func cleanSlug(slug string) (string, error) {
	slug = slugCase(strings.TrimFunc(slug, isSurrounding))
	if slug == "" || slug == "." || slug == ".." || strings.ContainsFunc(slug, isReserved) {
		return "", ErrInvalid
	}
	return slug, nil
}

// slugCase lowers a slug, unless it is an opaque member id: those are base64
// and two that differ in case are two people.
func slugCase(slug string) string {
	if strings.HasPrefix(slug, "ACoAA") || strings.HasPrefix(slug, "ACwAA") {
		return slug
	}
	return lower(slug)
}

// legacySlug turns the parts of /pub/name/A/B/C, hex numbers of up to three
// digits, into the slug that replaced it: name-CBA, where B and C have three
// digits. /pub/dir/… is a list of people of one name.
func legacySlug(name string, rest []string) (string, error) {
	if len(rest) < 3 || name == "dir" {
		return "", ErrInvalid
	}
	var number [3]string
	for i := range number {
		digits, err := decode(rest[i])
		if err != nil {
			return "", err
		}
		if digits == "" || len(digits) > 3 || strings.Trim(digits, "0123456789abcdefABCDEF") != "" {
			return "", ErrInvalid
		}
		number[i] = strings.ToLower(digits)
	}
	pad := func(s string) string { return "000"[len(s):] + s }
	return lower(name) + "-" + pad(number[2]) + pad(number[1]) + number[0], nil
}

// isReserved reports whether c cannot stand for itself in a key: it ends a
// part, begins an escape or a query, or separates addresses in a cell.
func isReserved(c rune) bool {
	return strings.ContainsRune(`%/?#<>,;|"\`, c) || unicode.IsControl(c) || unicode.In(c, unicode.Z)
}
