package resolution

import (
	"time"
	"unsafe"
)

// People are the answers to a batch of keys as columns, which become columns of
// output without a struct or a text of its own for each row: element i of each
// column belongs to key i, and is empty without a match. The memory of a People is
// used again by Reset.
type People struct {
	// Whole says that all columns are filled. Else these are: Reasons, Matched,
	// NetworkURL, Phone, PhoneRaw, EmailKeys and Hashes.
	Whole   bool
	Size    int      // about how many bytes the columns have
	Reasons []string // "" on a match, and for an empty key
	Matched []bool

	NetworkURL Texts
	Phone      CodedTexts // the first of Phones
	// PhoneRaw is the first phone as the source has it, "" if that is Phone.
	PhoneRaw Texts
	// EmailKeys are plain addresses, or digests if the source has no more. Digests is
	// the number of those.
	EmailKeys TextLists
	Digests   int
	Hashes    HashLists

	Texts           [PersonTexts]CodedTexts // by PersonText
	FullName, Email Texts                   // Email is the first plain address
	Phones          TextLists
	LastSeen        []int64 // microseconds, NotSeen if unknown
	CompanyDomains  CodedTexts
	Companies       CompanyCodes // of CompanyDomains; the caller sets the table

	// MatchLevels and Confidences are those of deanonymization; nil without.
	MatchLevels []string
	Confidences []float64

	plain TextLists // Emails, if there are digests among EmailKeys
	lists leadLists
}

// NotSeen stands for an unknown time in LastSeen.
const NotSeen = -1 << 63

// PersonText is a text of a person that others may share.
type PersonText int

// The texts of a person in Texts.
const (
	PersonFirstName PersonText = iota
	PersonLastName
	PersonHeadline
	PersonJobTitle
	PersonSeniority
	PersonDepartment
	PersonStreet
	PersonZipCode
	PersonCity
	PersonState
	PersonTexts
)

// HashTypes are the algorithms of hashed emails, by their code in HashLists.
var HashTypes = []string{"md5", "sha1", "sha256"}

// HashLists are lists of digests in hex with the codes of their types.
type HashLists struct {
	TextLists
	Types []int32
}

// Texts is a list of texts, one behind the other: text i is Data[Offsets[i]:Offsets[i+1]].
type Texts struct {
	Data    []byte
	Offsets []int32
}

// Reset makes the list empty.
func (t *Texts) Reset() { t.Data, t.Offsets = t.Data[:0], append(t.Offsets[:0], 0) }

// Len is the number of texts.
func (t *Texts) Len() int { return max(0, len(t.Offsets)-1) }

// Add adds a copy of a text.
func (t *Texts) Add(text []byte) {
	t.Data = append(t.Data, text...)
	t.End()
}

// End ends the text that was appended to Data.
func (t *Texts) End() { t.Offsets = append(t.Offsets, int32(len(t.Data))) }

// At returns a text, which is valid until the list changes.
func (t *Texts) At(i int) []byte { return t.Data[t.Offsets[i]:t.Offsets[i+1]] }

// text is At as a string.
func (t *Texts) text(i int) string {
	b := t.At(i)
	return unsafe.String(unsafe.SliceData(b), len(b))
}

// TextLists are lists of texts: those of list i are Texts[Ends[i]] to Texts[Ends[i+1]].
type TextLists struct {
	Ends  []int32
	Texts Texts
}

// Reset makes it empty.
func (l *TextLists) Reset() {
	l.Ends = append(l.Ends[:0], 0)
	l.Texts.Reset()
}

// End ends a list.
func (l *TextLists) End() { l.Ends = append(l.Ends, int32(l.Texts.Len())) }

// TextTable is distinct texts that codes stand for. It must not be changed.
type TextTable struct{ Texts }

// CodedTexts is a column of texts by their code in a table, whose length is the code of
// no text. If a text is not in the table, the column is Plain: it has the texts instead.
type CodedTexts struct {
	Table *TextTable
	Plain bool
	Codes []int32
	Texts Texts // if Plain
}

// Reset makes the column empty.
func (c *CodedTexts) Reset(table *TextTable) {
	c.Table, c.Plain, c.Codes = table, table.Len() == 0, c.Codes[:0]
	c.Texts.Reset()
}

// AddCode adds the text of a code.
func (c *CodedTexts) AddCode(code int32) {
	if c.Plain {
		c.Texts.Add(c.Table.At(int(code)))
	} else {
		c.Codes = append(c.Codes, code)
	}
}

// AddText adds a copy of a text.
func (c *CodedTexts) AddText(text []byte) {
	if !c.Plain && len(text) == 0 {
		c.Codes = append(c.Codes, int32(c.Table.Len()))
		return
	}
	if !c.Plain {
		c.Plain = true
		for i := range c.Codes {
			c.Texts.Add(c.ofCode(i))
		}
	}
	c.Texts.Add(text)
}

// Len is the number of texts.
func (c *CodedTexts) Len() int {
	if c.Plain {
		return c.Texts.Len()
	}
	return len(c.Codes)
}

// At returns a text, which is valid until the column changes.
func (c *CodedTexts) At(i int) []byte {
	if c.Plain {
		return c.Texts.At(i)
	}
	return c.ofCode(i)
}

func (c *CodedTexts) ofCode(i int) []byte {
	if code := int(c.Codes[i]); code < c.Table.Len() {
		return c.Table.At(code)
	}
	return nil
}

// Bytes is the length of all texts.
func (c *CodedTexts) Bytes() (n int) {
	if c.Plain {
		return len(c.Texts.Data)
	}
	for i := range c.Codes {
		n += len(c.ofCode(i))
	}
	return n
}

func (c *CodedTexts) text(i int) string {
	b := c.At(i)
	return unsafe.String(unsafe.SliceData(b), len(b))
}

// Reset makes it empty.
func (p *People) Reset(whole bool) {
	p.Whole, p.Size, p.Digests = whole, 0, 0
	p.Reasons, p.Matched, p.LastSeen, p.Companies.Codes = p.Reasons[:0], p.Matched[:0], p.LastSeen[:0], p.Companies.Codes[:0]
	p.MatchLevels, p.Confidences = p.MatchLevels[:0], p.Confidences[:0]
	for _, t := range []*Texts{&p.NetworkURL, &p.PhoneRaw, &p.FullName, &p.Email} {
		t.Reset()
	}
	for _, l := range []*TextLists{&p.EmailKeys, &p.Phones, &p.Hashes.TextLists} {
		l.Reset()
	}
	p.Hashes.Types = p.Hashes.Types[:0]
}

// Emails are the plain addresses among EmailKeys.
func (p *People) Emails() *TextLists {
	if p.Digests == 0 {
		return &p.EmailKeys
	}
	p.plain.Reset()
	for i := 1; i < len(p.EmailKeys.Ends); i++ {
		for n := p.EmailKeys.Ends[i-1]; n < p.EmailKeys.Ends[i]; n++ {
			if key := p.EmailKeys.Texts.At(int(n)); IsAddress(key) {
				p.plain.Texts.Add(key)
			}
		}
		p.plain.End()
	}
	return &p.plain
}

// IsAddress tells an address from a digest.
func IsAddress(emailKey []byte) bool {
	for _, c := range emailKey {
		if c == '@' {
			return true
		}
	}
	return false
}

// leadLists is the memory of the lists of Leads.
type leadLists struct {
	emails []ContactEmail
	phones []ContactPhone
	hashes []HashedEmail
	seen   []time.Time
}

// Leads fills leads with those of the keys with a match, without companies. Their texts are
// those of p.
func (p *People) Leads(leads []Lead) {
	m := &p.lists
	emails := p.Emails()
	m.emails, m.phones, m.hashes, m.seen = m.emails[:0], m.phones[:0], m.hashes[:0], append(m.seen[:0], make([]time.Time, len(p.LastSeen))...)
	for n := range emails.Texts.Len() {
		m.emails = append(m.emails, ContactEmail{Email: emails.Texts.text(n)})
	}
	for n := range p.Phones.Texts.Len() {
		m.phones = append(m.phones, ContactPhone{Phone: p.Phones.Texts.text(n)})
	}
	for n, code := range p.Hashes.Types {
		m.hashes = append(m.hashes, HashedEmail{Email: p.Hashes.Texts.text(n), Type: HashTypes[code]})
	}
	for i, matched := range p.Matched {
		if !matched {
			continue
		}
		l := &leads[i]
		*l = Lead{NetworkURL: p.NetworkURL.text(i), Phone: p.Phone.text(i), PhoneRaw: p.PhoneRaw.text(i), HashedEmails: part(m.hashes, p.Hashes.Ends, i)}
		if p.Whole {
			p.contact(i, &l.Contact, emails)
		}
		if len(p.MatchLevels) > 0 {
			l.MatchLevel, l.Confidence = p.MatchLevels[i], &p.Confidences[i]
		}
	}
}

func (p *People) contact(i int, c *Contact, emails *TextLists) {
	text := func(t PersonText) string { return p.Texts[t].text(i) }
	*c = Contact{
		FirstName: text(PersonFirstName), LastName: text(PersonLastName), FullName: p.FullName.text(i), Headline: text(PersonHeadline),
		JobTitle: text(PersonJobTitle), Seniority: text(PersonSeniority), Department: text(PersonDepartment), Email: p.Email.text(i),
		Address: Address{Street: text(PersonStreet), ZipCode: text(PersonZipCode), City: text(PersonCity), State: text(PersonState)},
		Emails:  part(p.lists.emails, emails.Ends, i), Phones: part(p.lists.phones, p.Phones.Ends, i),
	}
	if p.LastSeen[i] != NotSeen {
		p.lists.seen[i] = time.UnixMicro(p.LastSeen[i]).UTC()
		c.LastSeenAt = &p.lists.seen[i]
	}
}

// part returns list i of lists with these ends; nil for an empty one.
func part[T any](all []T, ends []int32, i int) []T {
	if ends[i] == ends[i+1] {
		return nil
	}
	return all[ends[i]:ends[i+1]:ends[i+1]]
}
