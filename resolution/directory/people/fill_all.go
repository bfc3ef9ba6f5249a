package people

import (
	"unsafe"

	"github.com/leadetl/leadetl/internal/keyed"
)

// Fields is what a look-up needs of a person.
type Fields int

// The parts of a person, each with NetworkURL.
const (
	Whole  Fields = iota
	Emails        // EmailKeys
	Phones        // the first phone; AppendAll only
)

// together is how many keys are looked up at a time.
const together = 256

// FillAllByDigest fills the entries of the raw digests of people's emails, and sets emails
// to those emails: md5, sha1 or sha256 of the plain form, sha256 of the uid2 and google forms.
// addresses are those of the digests, "" if unknown. An address is found only in its plain form,
// or by its sha256: the uid2 form of an address may be the address of another person. It skips
// empty digests. part is Whole or Emails. Call it under keyed.Guard.
func (f *File) FillAllByDigest(digests, addresses []string, arena *keyed.Arena, entries []Entry, emails []string, part Fields) {
	var hashes [together]keyed.Hash
	var rows [together]uint32
	for len(digests) > 0 {
		n := min(together, len(digests))
		for i, digest := range digests[:n] {
			hashes[i] = keyed.HashOf(digest)
		}
		f.digests.FirstRows(hashes[:n], rows[:n])
		f.Touch(rows[:n], 0, partLines)
		for i, row := range rows[:n] {
			if row != keyed.None && digests[i] != "" {
				emails[i] = f.fillByDigest(digests[i], addresses[i], hashes[i], arena, &entries[i], part)
			}
		}
		digests, addresses, entries, emails = digests[n:], addresses[n:], entries[n:], emails[n:]
	}
}

// fillByDigest fills an entry with the person who has an email with the digest, and returns
// that email; "" without one. See FillAllByDigest for part.
func (f *File) fillByDigest(digest, address string, h keyed.Hash, arena *keyed.Arena, e *Entry, part Fields) (email string) {
	for row := range f.digests.Rows(h) {
		f.fillEmails(row, arena, e)
		at := e.Person.emailOf(digest, address)
		if at < 0 {
			continue
		}
		email = e.Person.EmailKeys[at]
		if part == Whole {
			f.Fill(row, arena, e)
		}
		return email
	}
	return ""
}

// Employers sets domains to those of the companies of the people from a row on, until the file is
// closed. Call it under keyed.Guard.
func (f *File) Employers(from uint32, domains []string) {
	for i := range domains {
		r := f.Fields(from + uint32(i))
		r.Skip(companyDomain)
		code, text := r.Next()
		if code >= 0 {
			text = f.tables[companyDomain].At(int(code))
		}
		domains[i] = unsafe.String(unsafe.SliceData(text), len(text))
	}
}

// fillEmails fills an entry with NetworkURL and EmailKeys alone.
func (f *File) fillEmails(row uint32, arena *keyed.Arena, e *Entry) {
	r := f.Fields(row)
	_, url := r.Next()
	r.Skip(emails - 1)
	_, list := r.Next()
	e.keys, e.phones = e.keys[:0], e.phones[:0]
	e.Person = Person{}
	e.Person.NetworkURL = arena.Text(url)
	for key := range members(arena.Text(list)) {
		e.keys = append(e.keys, key)
	}
	e.Person.EmailKeys = e.keys
}
