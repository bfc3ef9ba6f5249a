package profile

import (
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/leadetl/leadetl/internal/invisible"
	"github.com/leadetl/leadetl/internal/nullword"
)

// pageKinds are the first parts of the paths that belong to somebody. The exception is
// pub, the address of people before 2014, whose slug has to be built.
var pageKinds = map[string]Kind{
	"in": Person, "company": Company, "school": School, "showcase": Showcase,
}

// maxNested bounds the parts of a path in which addresses are read behind each other.
const maxNested = 16

// page returns the key of a page of the network; host is as in Rules, and query is that of
// an address that may have been pasted behind /in/. Pages without a slug (/feed/…) belong
// to nobody, and the ids of /sales/lead/… have no known address: both are ErrInvalid.
func (r Rules) page(host string, path []string, query string) (URL, error) {
	path, err := withoutLayout(path)
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
	kind, ok := pageKinds[first]
	switch {
	case first == "in":
		pasted := r.pasted(slug, path[2:], query)
		isNested := isPage(slug) || isLayout(slug) && len(path) > 2 && isPage(path[2]) // /in/in/jane, /in/pub/jane/1/2/3
		switch {
		case (pasted != "" || isNested) && len(path) > maxNested:
			return URL{}, ErrInvalid
		case pasted != "":
			return r.parse(pasted)
		case isNested:
			return r.page(host, path[1:], query)
		}
		if len(path) > 2 && nullword.Is(slug+"/"+path[2]) {
			return URL{}, ErrEmpty
		}
		slug, err = personSlug(slug)
	case first == "pub":
		first, kind = "in", Person
		if slug, err = personSlug(slug); err == nil {
			slug, err = legacySlug(slug, path[2:])
		}
	case ok:
		slug, err = cleanSlug(slug)
	default:
		err = ErrInvalid
	}
	if err != nil {
		return URL{}, err
	}
	return URL{Key: host + "/" + first + "/" + slug, Kind: kind}, nil
}

// isPage reports whether the part of a path is the kind of a page.
func isPage(part string) bool {
	part = strings.ToLower(part)
	_, ok := pageKinds[part]
	return ok || part == "pub"
}

// pasted returns the address that was pasted behind /in/, as in /in/https://…; "" if a slug
// is there. The rest of the path and the query are its own, unless it was encoded.
func (r Rules) pasted(slug string, rest []string, query string) string {
	scheme, address := "https:", slug
	for _, known := range []string{"https:", "http:"} {
		name := strings.TrimSuffix(known, ":") // the colon gets lost, as in /in/https//…
		if len(slug) >= len(known) && strings.EqualFold(slug[:len(known)], known) || strings.EqualFold(slug, name) && len(rest) > 0 {
			scheme, address = known, strings.TrimLeft(slug[min(len(known), len(slug)):], "/")
			break
		}
	}
	if address == slug { // no scheme, so it may be a slug
		name, _, _ := strings.Cut(slug, "/")
		host, ok := cleanHost(name)
		if !ok || r.network(host) == "" && !strings.HasPrefix(lower(name), "www.") {
			return ""
		}
	}
	if !strings.Contains(address, "/") {
		if address = strings.TrimLeft(address+"/"+strings.Join(rest, "/"), "/"); query != "" {
			address += "?" + query
		}
	}
	return scheme + "//" + address
}

// splitPath returns the parts of a path that are not empty, still encoded.
func splitPath(path string) []string {
	return strings.FieldsFunc(path, func(c rune) bool { return c == '/' })
}

// withoutLayout decodes the first part of a path. It drops parts that only choose a layout
// of the page.
func withoutLayout(path []string) ([]string, error) {
	for len(path) > 0 {
		first, err := decode(path[0])
		if err != nil {
			return nil, err
		}
		if !isLayout(first) {
			return append([]string{first}, path[1:]...), nil
		}
		path = path[1:]
	}
	return nil, nil
}

// isLayout reports whether the part of a path is that of pages for phones, or of links in
// mails.
func isLayout(part string) bool {
	return strings.EqualFold(part, "m") || strings.EqualFold(part, "mwlite") || strings.EqualFold(part, "comm")
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

// personSlug returns the one spelling of the decoded slug of a person: letters, marks and
// digits of any script, hyphens, and signs beyond ASCII that names have. Text around a
// copied address goes: &x=y, a leading @, punctuation.
func personSlug(slug string) (string, error) {
	slug, _, _ = strings.Cut(slug, "&")
	slug = strings.TrimLeftFunc(slug, func(c rune) bool { return isSurrounding(c) || isPunctuation(c, `@('".,*!`) })
	slug = strings.TrimRightFunc(slug, func(c rune) bool { return isSurrounding(c) || isPunctuation(c, `.,;:!?'")]*=+~@`) })
	slug = slugCase(slug)
	switch {
	case slug == "":
		return "", ErrInvalid
	case meansNobody(slug):
		return "", ErrEmpty
	case isPageWord(slug), strings.ContainsFunc(slug, isNotInSlug):
		return "", ErrInvalid
	}
	return slug, nil
}

func isPunctuation(c rune, ascii string) bool {
	if c < utf8.RuneSelf {
		return strings.ContainsRune(ascii, c)
	}
	return unicode.Is(unicode.P, c) || c == brailleBlank
}

// brailleBlank is a sign that shows nothing.
const brailleBlank = '\u2800'

// isNotInSlug reports whether c is in no slug of a person. A dot is that of a host or of a
// file, U+FFFD stands for bytes that were lost.
func isNotInSlug(c rune) bool {
	if c < utf8.RuneSelf {
		return !isPlain[c] && c != '_' && c != '\''
	}
	if c == '\u200C' || c == '\u200D' || unicode.Is(unicode.Variation_Selector, c) {
		return false // names in some scripts need these
	}
	return isReserved(c) || c == utf8.RuneError || c == brailleBlank || invisible.Is(c)
}

// isPageWord reports whether a slug is a word of other addresses of the network: what
// follows it, or its query, would name the person.
func isPageWord(slug string) bool {
	switch slug {
	case "http", "https", "www", "linkedin", "profile", "view", "people", "dir", "feed", "posts", "pulse", "groups", "jobs", "sales",
		"recruiter", "talent", "search", "login", "signup", "authwall", "checkpoint", "uas", "redir", "redirect":
		return true
	}
	return isPage(slug)
}

// meansNobody reports whether a slug is what programs write for a missing one, or what the
// network shows for the reader's own page or one that is gone.
func meansNobody(slug string) bool {
	switch slug {
	case "null", "none", "undefined", "n-a", "na", "nan", "nil", "0", "null-null", "none-none", "nan-nan", "undefined-undefined",
		"me", "unavailable", "true", "false", "username", "yourname", "your-name", "your-profile":
		return true
	}
	return strings.Trim(slug, "-_'") == ""
}

// slugCase returns a slug in lower case, but not a member id: those are base64, and
// their case matters.
func slugCase(slug string) string {
	if isMember(slug) {
		return slug
	}
	return lower(slug)
}

func isMember(slug string) bool {
	return strings.HasPrefix(slug, "ACoAA") || strings.HasPrefix(slug, "ACwAA")
}

// IsMember reports whether the slug of a key is a member id, which stays when the
// address of the page changes.
func IsMember(key string) bool {
	_, path, _ := strings.Cut(key, "/")
	slug, found := strings.CutPrefix(path, "in/")
	return found && isMember(slug)
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
