package audience

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"unicode"
	"unsafe"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"

	"github.com/leadetl/leadetl/sinks/lines"
	"github.com/leadetl/leadetl/transforms/email"
	"github.com/leadetl/leadetl/transforms/platform"
)

// ID tells people apart: the first half of a digest of theirs.
type ID [16]byte

// Counts say what became of rows.
type Counts struct {
	Rows       int64
	NoKey      int64 // have nothing that the platform finds somebody by
	Unverified int64 // have a digest whose rule is not known to be the platform's; it is left out
	Incomplete int64 // lack another field that the platform needs
	Open       int64 // have a name or an address that the platform's pages disagree about; it is left out
	// Of the people that are written:
	Doubtful int64 // have an unverified key alone
	Found    int64 // have something that was found
}

// Add adds counts.
func (c *Counts) Add(o Counts) {
	c.Rows += o.Rows
	c.NoKey += o.NoKey
	c.Unverified += o.Unverified
	c.Incomplete += o.Incomplete
	c.Open += o.Open
	c.Doubtful += o.Doubtful
	c.Found += o.Found
}

// Person is somebody whom a row is about.
type Person struct {
	// IDs are of all keys. Who has the same first one is the same person.
	IDs  []ID
	Line []byte // of the file, with its end
	// Doubtful and Found are as in Counts.
	Doubtful, Found bool
}

// People makes people of rows, which have the columns of Columns. Counts are those of rows that are nobody;
// callers count who is written.
func (m *Maker) People(rows []arrow.Array, n int) (people []Person, counts Counts) {
	r := row{Maker: m, cells: make([]*array.String, len(rows))}
	for i, a := range rows {
		r.cells[i] = a.(*array.String)
	}
	counts.Rows = int64(n)
	people = make([]Person, 0, n)
	for r.i = range n {
		if person, ok := r.person(&counts); ok {
			people = append(people, person)
		}
	}
	return people, counts
}

// row makes a person of one row after another.
type row struct {
	*Maker
	cells []*array.String
	i     int
	form  []byte
}

// cell is a cell of the row; "" at no place and without a value.
func (r *row) cell(at int) string {
	if at < 0 || r.cells[at].IsNull(r.i) {
		return ""
	}
	return r.cells[at].Value(r.i)
}

// key is what a source has: a digest for each form, or none.
type key struct {
	digests    []string
	unverified bool
	found      bool
}

func (r *row) person(counts *Counts) (Person, bool) {
	country := r.country()
	keys := map[platform.Field]key{}
	for _, f := range []platform.Field{platform.Email, platform.Phone} {
		if sources := r.sources[f]; sources != nil {
			keys[f] = r.key(f, sources, country)
		}
	}
	var p Person
	for _, f := range []platform.Field{platform.Email, platform.Phone} {
		k := keys[f]
		if k.unverified && !r.settings.Unverified {
			counts.Unverified++
			k, keys[f] = key{}, key{}
		}
		for _, digest := range k.digests {
			if digest != "" {
				p.IDs = append(p.IDs, idOf(digest))
				p.Found = p.Found || k.found
			}
		}
	}
	p.Doubtful = len(p.IDs) > 0 && !slices.ContainsFunc([]platform.Field{platform.Email, platform.Phone}, func(f platform.Field) bool {
		return len(keys[f].digests) > 0 && !keys[f].unverified
	})
	values, open := r.values(country)
	if open {
		counts.Open++
	}
	for f := range values {
		p.Found = p.Found || len(r.sources[f]) > 0 && r.sources[f][0].found
	}
	if r.settings.Platform.ByAddress && values[platform.ZipCode] != "" {
		p.IDs = append(p.IDs, idOf(strings.Join([]string{values[platform.FirstName], values[platform.LastName], values[platform.ZipCode], country}, "\n")))
	}
	if len(p.IDs) == 0 {
		counts.NoKey++
		return Person{}, false
	}
	for _, f := range r.settings.Platform.Needs {
		if !f.IsKey() && values[f] == "" || f.IsKey() && len(keys[f].digests) == 0 {
			counts.Incomplete++
			return Person{}, false
		}
	}
	p.Line = r.line(keys, values)
	return p, true
}

// country is that of the row; "" if it is not known.
func (r *row) country() string {
	for _, s := range r.sources[platform.Country] {
		if text := r.cell(s.cell); text != "" {
			return platform.CountryOf(text)
		}
	}
	return r.settings.Country
}

// key is the first verified key of some sources, or else the first other one.
func (r *row) key(f platform.Field, sources []source, country string) (best key) {
	for _, s := range sources {
		var k key
		if f == platform.Email {
			k = r.mail(s)
		} else {
			k = r.number(s, country)
		}
		k.found = s.found
		switch {
		case k.digests == nil:
		case !k.unverified:
			return k
		case best.digests == nil:
			best = k
		}
	}
	return best
}

// mail is the key of an address, or of a digest of one.
func (r *row) mail(s source) key {
	address, has := r.address(s)
	switch {
	case !has && (s.cell >= 0 || s.key >= 0):
		return key{}
	case !has:
		return r.datasetAlone(s)
	case address.Kind() == email.SHA256:
		digest := string(address.AppendKey(nil))
		if s.unlike != nil {
			if own, has := r.address(*s.unlike); !has || string(own.AppendKey(nil)) == digest {
				return key{}
			}
		}
		fits := slices.ContainsFunc(s.mails, func(p email.Profile) bool { return slices.Contains(r.settings.Platform.Digests, p) })
		return key{digests: []string{digest}, unverified: !fits}
	case address.Kind() != email.Plaintext:
		return key{} // platforms take SHA-256
	}
	var k key
	for _, mail := range r.settings.Platform.Mails {
		digest := ""
		if at, has := s.digests[email.Profile(mail.Profile)]; has && mail.Profile >= 0 {
			digest = sha256Of(r.cell(at))
		}
		if digest == "" {
			form, ok := mail.Append(r.form[:0], address)
			if r.form = form; !ok {
				continue
			}
			digest = hash(form)
		}
		if !slices.Contains(k.digests, digest) {
			k.digests = append(k.digests, digest)
		}
	}
	return k
}

// address is the identifier of a row, or what a column has. Of several in a cell, it is the one that the row
// was resolved by.
func (r *row) address(s source) (a email.Address, has bool) {
	if s.key >= 0 && r.cell(s.key) == "" {
		return a, false // rejected, or suppressed
	}
	a, err := email.Read(bytesOf(r.cell(s.cell)))
	if s.key >= 0 {
		if key := r.cell(s.key); err != nil || string(a.AppendKey(nil)) != key {
			a, err = email.Parse(bytesOf(key))
		}
	}
	return a, err == nil
}

// datasetAlone is the key where the dataset has neither addresses nor keys. A digest by Google's rule, or by
// that of UID2, is of an address; without one, nobody knows by what rule the other was made.
func (r *row) datasetAlone(s source) (k key) {
	ofAddress := false
	for profile, at := range s.digests {
		ofAddress = ofAddress || profile != email.Plain && r.cell(at) != ""
	}
	for _, mail := range r.settings.Platform.Mails {
		if at, has := s.digests[email.Profile(mail.Profile)]; has && mail.Profile >= 0 && ofAddress {
			if digest := sha256Of(r.cell(at)); digest != "" && !slices.Contains(k.digests, digest) {
				k.digests = append(k.digests, digest)
			}
		}
	}
	if at, has := s.digests[email.Plain]; has && k.digests == nil {
		if digest := sha256Of(r.cell(at)); digest != "" {
			fits := slices.ContainsFunc(s.mails, func(p email.Profile) bool { return slices.Contains(r.settings.Platform.Digests, p) })
			return key{digests: []string{digest}, unverified: !fits}
		}
	}
	return k
}

// number is the key of a phone number, or of a digest of one.
func (r *row) number(s source, country string) key {
	text, forms := r.cell(s.cell), r.settings.Platform.Numbers
	k := key{digests: make([]string, len(forms))}
	missing := false
	for i, n := range forms {
		if at, has := s.numbers[n.Form]; has {
			k.digests[i] = sha256Of(r.cell(at))
		}
		missing = missing || k.digests[i] == ""
	}
	has := slices.ContainsFunc(k.digests, func(digest string) bool { return digest != "" })
	if !missing || text == "" {
		if !has {
			return key{}
		}
		return k
	}
	if d, is := digestIn(text); is {
		return r.numberDigest(d, s)
	}
	number, ok := platform.NumberOf(text, country)
	if !ok {
		return key{}
	}
	for i, n := range forms {
		if k.digests[i] == "" {
			k.digests[i] = hash([]byte(number.Form(n.Form)))
		}
	}
	return k
}

// numberDigest is the key of a digest in a cell, in the columns of the forms that it is of.
func (r *row) numberDigest(digest string, s source) key {
	if digest == "" {
		return key{}
	}
	k := key{digests: make([]string, len(r.settings.Platform.Numbers)), unverified: true}
	for i, n := range r.settings.Platform.Numbers {
		if slices.Contains(s.forms, n.Form) {
			k.digests[i], k.unverified = digest, false
		}
	}
	if k.unverified {
		k.digests[0] = digest
	}
	return k
}

// values are the values of the fields that are no keys, as they are written.
func (r *row) values(country string) (values map[platform.Field]string, open bool) {
	values = map[platform.Field]string{}
	for _, c := range r.columns {
		if c.Write == nil || c.Field == "" || country == "" && c.Field.NeedsCountry() {
			continue
		}
		text := country
		if c.Field != platform.Country {
			s := r.sources[c.Field][0]
			if text = r.cell(s.cell); text == "" {
				continue
			}
			if _, is := digestIn(text); is {
				continue // nobody knows by what rule
			}
		}
		value, isOpen := c.Write(text, country)
		open = open || isOpen
		switch {
		case value == "":
		case c.Hashed:
			values[c.Field] = hash([]byte(value))
		default:
			values[c.Field] = value
		}
	}
	for _, f := range r.settings.Platform.Together {
		if values[f] == "" {
			return without(values, r.settings.Platform.Together), open
		}
	}
	return values, open
}

func without(values map[platform.Field]string, fields []platform.Field) map[platform.Field]string {
	for _, f := range fields {
		delete(values, f)
	}
	return values
}

// line is the line of a person.
func (r *row) line(keys map[platform.Field]key, values map[platform.Field]string) (line []byte) {
	for i, c := range r.columns {
		if i > 0 {
			line = append(line, ',')
		}
		value := c.Always
		switch {
		case c.Field.IsKey():
			if digests := keys[c.Field].digests; c.form < len(digests) {
				value = digests[c.form]
			}
		case c.Field != "":
			value = values[c.Field]
		}
		if value != "" {
			line = lines.AppendCell(line, []byte(value))
		}
	}
	return append(line, '\n')
}

// digestIn returns the SHA-256 of a cell that is a digest, in lower-case hex: "" if it is of another
// algorithm, or means nobody.
func digestIn(text string) (digest string, is bool) {
	a, err := email.Read(bytesOf(text))
	switch {
	case err == email.ErrEmpty:
		_, is = email.ParseDigest(bytes.TrimSpace(bytesOf(text)))
		return "", is
	case err != nil:
		return "", looksHashed(text)
	case a.Kind() == email.Plaintext:
		return "", false
	case a.Kind() != email.SHA256:
		return "", true
	}
	return string(a.AppendKey(nil)), true
}

// looksHashed reports whether a text is likely to be a digest of another algorithm or spelling: a word of the
// length of an MD5 in base64 or more, with something that no name so long and no number has.
func looksHashed(text string) bool {
	for word := range strings.FieldsSeq(text) {
		mixed := strings.ContainsFunc(word[1:], unicode.IsUpper) && strings.ContainsFunc(word, unicode.IsLower)
		if len(word) >= 22 && (mixed || strings.ContainsFunc(word, unicode.IsLetter) && strings.ContainsAny(word, "0123456789+/=_")) {
			return true
		}
	}
	return false
}

// sha256Of is a SHA-256 of the dataset in lower-case hex; "" for another text.
func sha256Of(text string) string {
	digest, _ := digestIn(text)
	return digest
}

func hash(form []byte) string {
	sum := sha256.Sum256(form)
	return hex.EncodeToString(sum[:])
}

func idOf(digest string) (id ID) {
	if n, err := hex.Decode(id[:], bytesOf(digest[:min(len(digest), 2*len(id))])); err != nil || n < len(id) {
		sum := sha256.Sum256([]byte(digest))
		copy(id[:], sum[:])
	}
	return id
}

// bytesOf are the bytes of a text, which nobody changes.
func bytesOf(text string) []byte { return unsafe.Slice(unsafe.StringData(text), len(text)) }

// Seen are the people that a file has: about 40 bytes each.
type Seen map[ID]struct{}

// Has reports whether the person was added.
func (s Seen) Has(p Person) bool {
	_, has := s[p.IDs[0]]
	return has
}

// Add adds a person, and reports whether it was new.
func (s Seen) Add(p Person) bool {
	if _, has := s[p.IDs[0]]; has {
		return false
	}
	for _, id := range p.IDs {
		s[id] = struct{}{}
	}
	return true
}
