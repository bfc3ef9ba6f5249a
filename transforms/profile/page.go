package profile

import (
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// pageKinds are the first parts of the paths that belong to somebody. The exception is
// pub, the address of people before 2014, whose slug has to be built.
var pageKinds = map[string]Kind{
	"in": Person, "company": Company, "school": School, "showcase": Showcase,
}

// page returns the key of a page of the network; host is as in Rules. Pages without a
// slug (/feed/…) belong to nobody, and the ids of /sales/lead/… have no known address:
// both are ErrInvalid.
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

// splitPath returns the parts of a path that are not empty, still encoded.
func splitPath(path string) []string {
	return strings.FieldsFunc(path, func(c rune) bool { return c == '/' })
}

// withoutMobile decodes the first part of a path. It drops parts m and mwlite, which
// only choose a layout of the page.
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

// decode removes one layer of percent-encoding and composes the text (NFC).
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

// cleanSlug returns the one spelling of a decoded slug. It refuses a slug with signs
// that mean something else in an address: %253D was encoded twice, %3Ftrk= is a query.
// Names in some scripts need format characters inside.
func cleanSlug(slug string) (string, error) {
	slug = slugCase(strings.TrimFunc(slug, isSurrounding))
	if slug == "" || slug == "." || slug == ".." || strings.ContainsFunc(slug, isReserved) {
		return "", ErrInvalid
	}
	return slug, nil
}

// slugCase returns a slug in lower case, but not a member id: those are base64, and
// their case matters.
func slugCase(slug string) string {
	if strings.HasPrefix(slug, "ACoAA") || strings.HasPrefix(slug, "ACwAA") {
		return slug
	}
	return lower(slug)
}

// legacySlug turns the parts of /pub/name/A/B/C, where A, B and C are hex numbers of up
// to three digits, into the later slug: name-CBA, where B and C have three digits.
// /pub/dir/… is a list of people with the same name.
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

// isReserved reports whether c must be encoded in a key: it ends a part, begins an
// escape or a query, or separates addresses in a cell.
func isReserved(c rune) bool {
	return strings.ContainsRune(`%/?#<>,;|"\`, c) || unicode.IsControl(c) || unicode.In(c, unicode.Z)
}
