package suppression

import (
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/leadetl/leadetl/internal/digestset"
	"github.com/leadetl/leadetl/internal/invisible"
	"github.com/leadetl/leadetl/internal/jsonlist"
	"github.com/leadetl/leadetl/internal/nullword"
	"github.com/leadetl/leadetl/internal/spreadsheet"
	"github.com/leadetl/leadetl/transforms/email"
	"github.com/leadetl/leadetl/transforms/ipaddr"
	"github.com/leadetl/leadetl/transforms/person"
	"github.com/leadetl/leadetl/transforms/phone"
	"github.com/leadetl/leadetl/transforms/profile"
)

// The errors of cells of a list.
var (
	// ErrEmpty: an empty cell, a null word, or the digest of one or of nothing. It
	// means nobody, and is harmless.
	ErrEmpty = errors.New("empty")
	// ErrUnreadable: neither a digest nor an identifier. It may mean somebody who
	// is then not suppressed.
	ErrUnreadable = errors.New("no_identifier")
)

// minDigits is the least number of digits of a phone number.
const minDigits = 7

// Builder collects the entries of lists, in one goroutine.
type Builder struct {
	rules   Rules
	digests [algorithms]digestset.Builder
	given   [algorithms]bool
	domains bool // some entries are domains
	entries int64
	lines   *Lines // nil without AddLine
	line    uint32 // of the cell that is added
}

// NewBuilder returns a Builder without entries.
func NewBuilder(r Rules) *Builder { return &Builder{rules: r} }

// Set returns all that was added, and empties the Builder.
func (b *Builder) Set() *Set {
	s := &Set{rules: b.rules, given: b.given, domains: b.domains, entries: b.entries}
	for i := range b.digests {
		s.digests[i] = b.digests[i].Set()
	}
	s.fingerprint = fingerprintOf(s.digests)
	return s
}

// Add adds a cell of a list. Its form decides on its kind:
//
//	md5, sha1, sha256   32, 40 or 64 hex digits of either case
//	sha256              43 base64 characters, or 44 with =, standard or URL-safe
//	email address       by its @; suppressed by every profile
//	@ and a domain      all email addresses there, but not their digests; also with * before the @
//	profile address     by its /, with or without scheme
//	IP address          IPv4 or IPv6
//	person              name and company, as the JSON of person.Key
//	phone number        anything else with seven digits or more
//
// A digest may be of an email address by any profile, of a phone number (E.164, its
// digits, or the last ten digits), or of the key of a profile or an IP address. A cell may
// have several, and a name or more around each, as cells of rows. The error is ErrEmpty or
// ErrUnreadable; what can be read of the cell is added.
func (b *Builder) Add(cell string) error {
	if !utf8.ValidString(cell) {
		return ErrUnreadable
	}
	var err error
	for _, value := range cellValues(cell) {
		if failed := b.addOne(value); failed != nil && err != ErrUnreadable {
			err = failed
		}
	}
	return err
}

// cellValues are the digests and identifiers in a cell of a list.
func cellValues(cell string) []string {
	text := strings.TrimFunc(spreadsheet.Value(cell), isSurrounding)
	if _, ok := parseDigest(text); ok || person.IsKey(text) { // a digest in base64 may have a /
		return []string{text}
	}
	kind := IP
	if isPage(text) {
		kind = NetworkURL
	} else if strings.Contains(text, "@") {
		kind = Email
	}
	values := slices.Clone(Values(kind, text))
	for i, value := range values {
		values[i] = strings.TrimFunc(spreadsheet.Value(value), isSurrounding)
	}
	return values
}

// Values are the identifiers in a cell, as they are written there: the cell itself unless it has
// several, or is a list in JSON. An empty list has one, which is empty.
func Values(kind Kind, cell string) (all []string) {
	if all, ok := jsonlist.Texts(cell); len(all) > 0 {
		return all
	} else if ok {
		return []string{""}
	}
	switch kind {
	case Email:
		all = email.Split(cell)
	case NetworkURL:
		all = profile.Split(cell)
	case IP:
		all = ipaddr.Split(cell)
	}
	if all == nil {
		return []string{cell}
	}
	return all
}

// isPage reports whether a text is taken for the address of a page.
func isPage(text string) bool {
	return strings.Contains(text, "://") || strings.Contains(text, "/") && !strings.Contains(text, "@")
}

// addOne adds a digest or an identifier.
func (b *Builder) addOne(text string) error {
	if text == "" || nullword.Is(text) {
		return ErrEmpty
	}
	if d, ok := email.ParseDigest([]byte(text)); ok {
		if d.MeansNobody() {
			return ErrEmpty
		}
		e := entryOf(d)
		b.given[e.algorithm] = true
		b.add(e)
	} else if err := b.addIdentifier(text); err != nil {
		return err
	}
	b.entries++
	return nil
}

func (b *Builder) addIdentifier(text string) error {
	switch {
	case person.IsKey(text):
		return b.addPerson(person.Values(text))
	case isPage(text):
		key, err := b.rules.Profiles.ParsePerson(text)
		if errors.Is(err, profile.ErrEmpty) {
			return ErrEmpty
		}
		if err != nil {
			return ErrUnreadable
		}
		b.add(algSHA256.sum([]byte(key)))
		if page, other := profile.WithoutQuery(key); other && strings.Contains(page, "/in/") { // the path names the person
			b.add(algSHA256.sum([]byte(page)))
		}
		return nil
	case text[0] == '@' || strings.HasPrefix(text, "*@"): // no person has the address *@acme.example
		a, err := email.Parse([]byte("x" + strings.TrimPrefix(text, "*"))) // so is the domain of an address
		if err != nil {
			return ErrUnreadable
		}
		b.add(domainOf(a))
		b.domains = true
		return nil
	case strings.Contains(text, "@"):
		a, err := email.Read([]byte(text))
		if err != nil {
			return ErrUnreadable
		}
		// A row may have only a digest of it, so all of them are kept.
		for _, form := range forms(a) {
			for a := range algorithms {
				b.add(a.sum(form))
			}
		}
		return nil
	}
	if addr, err := ipaddr.Read(text); err == nil {
		b.add(algSHA256.sum([]byte(addr.String())))
		return nil
	}
	if countDigits(text) < minDigits {
		return ErrUnreadable
	}
	n, err := phone.Parse(text, b.rules.Region)
	if err != nil {
		return ErrUnreadable
	}
	b.addPhone(n)
	if written := asWritten(text); strings.HasPrefix(text, "+") && written != n {
		b.addPhone(written)
	}
	return nil
}

// addPerson adds somebody by name and company.
func (b *Builder) addPerson(values map[string]string) error {
	for name, value := range values {
		values[name] = person.Canonical(name, value)
	}
	all := person.Forms(values)
	for _, form := range all {
		b.add(algSHA256.sum([]byte(form)))
	}
	if len(all) == 0 {
		return ErrUnreadable
	}
	return nil
}

// addPhone adds a number, and its digits for rows that have their digest instead.
func (b *Builder) addPhone(n phone.Number) {
	b.add(algSHA256.sum([]byte(n.E164)))
	b.add(algSHA256.sum([]byte(n.Form(phone.Digits))).ofRow())
}

func (b *Builder) add(e entry) {
	b.digests[e.algorithm].Add(e.digest)
	if b.lines != nil {
		b.lines.of[e.algorithm] = append(b.lines.of[e.algorithm], lineOf{e.digest, b.line})
	}
}

func countDigits(text string) (n int) {
	for i := range len(text) {
		if c := text[i]; '0' <= c && c <= '9' {
			n++
		}
	}
	return n
}

// isSurrounding reports whether r is trimmed at both ends of a cell.
func isSurrounding(r rune) bool { return unicode.IsSpace(r) || invisible.Is(r) }

// parseDigest reads a digest.
func parseDigest(text string) (e entry, ok bool) {
	d, ok := email.ParseDigest([]byte(spreadsheet.Value(text)))
	if !ok {
		return entry{}, false
	}
	return entryOf(d), true
}

// entryOf returns the entry of a digest.
func entryOf(d email.Digest) entry {
	e := entry{digest: binary.BigEndian.Uint64(d.Sum[:])}
	switch d.Kind {
	case email.SHA1:
		e.algorithm = algSHA1
	case email.SHA256:
		e.algorithm = algSHA256
	}
	return e
}
