// Package people keeps the people of a directory, who are found by profile address, email or
// the digest of an email.
package people

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"runtime/debug"
	"strings"
	"time"

	"github.com/leadetl/leadetl/internal/disk"
	"github.com/leadetl/leadetl/internal/keyed"
	"github.com/leadetl/leadetl/resolution"
)

// The fields of a record by their places. Between them are the texts of texts.
const (
	networkURL = 0
	firstName  = 1
	lastName   = 2
	emails     = 7 // a list with ;
	phones     = 8 // a list with ;
	// phoneRaw is the first phone as the source has it, if it is not in E.164 there.
	phoneRaw = 9
	// phoneDetails are those of the first phone.
	phoneDetails  = 10
	companyDomain = 15
	lastSeen      = 16 // microseconds as a varint; empty if unknown
	fields        = 7 + int(resolution.Fields-resolution.FieldFirstName)
)

// texts are the texts of answers that are fields of a record as they are, by their places; 0 for
// other fields.
var texts = func() (of [fields]resolution.Field) {
	place := firstName
	for f := resolution.FieldFirstName; f < resolution.Fields; f++ {
		for place >= emails && place <= phoneDetails || place == companyDomain || place == lastSeen {
			place++
		}
		of[place] = f
		place++
	}
	return of
}()

// Person is a line of people.
type Person struct {
	// Lead has the data, and in NetworkURL the key; Emails has only plain addresses.
	resolution.Lead
	// EmailKeys are the emails in the order of the source: plain addresses, or
	// digests in lower-case hex if the source has no more.
	EmailKeys []string
	// CompanyDomain is the key of the company; "" if unknown.
	CompanyDomain string
}

// Entry is memory for a person and their values.
type Entry struct {
	Person   Person
	emails   []resolution.ContactEmail
	phones   []resolution.ContactPhone
	keys     []string
	lastSeen time.Time
}

// File has the people of an import. It is safe from many goroutines.
type File struct {
	*keyed.File
	digests keyed.Index
	tables  [fields]resolution.TextTable // the dictionaries
}

// None is a file without people.
var None = newFile(keyed.Empty(fields))

func newFile(r *keyed.File) *File {
	f := &File{File: r}
	for field := range f.tables {
		f.tables[field].Texts = resolution.Texts(*r.Dictionary(field))
	}
	return f
}

// Open opens a file of Import.
func Open(in disk.Folder, name string) (*File, error) {
	r, err := keyed.Open(in, name, fields)
	if err != nil {
		return nil, err
	}
	columns := r.Columns()
	f := newFile(r)
	f.digests = keyed.ReadIndex(columns, "digests")
	if columns.Err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", in.Path(name), columns.Err), r.Close())
	}
	return f, nil
}

// emailOf returns the index of the email with the digest, -1 without one. address is the
// address of the digest; "" if it is unknown.
func (p *Person) emailOf(digest, address string) int {
	if address != "" {
		for i, key := range p.EmailKeys {
			if key == address || key == hex.EncodeToString([]byte(digest)) {
				return i
			}
		}
		return -1
	}
	found := -1
	for i, key := range p.EmailKeys {
		for _, d := range lookupDigests(key) {
			if string(d.raw) != digest {
				continue
			}
			if !d.respelled {
				return i
			}
			if found < 0 {
				found = i
			}
		}
	}
	return found
}

// Fill fills an entry with a row, whose texts are in the arena. It uses the memory of its
// lists again. Call it under keyed.Guard.
func (f *File) Fill(row uint32, arena *keyed.Arena, e *Entry) {
	p := &e.Person
	var t [fields]string
	f.Read(row, arena, t[:])
	*p = Person{CompanyDomain: t[companyDomain]}
	p.NetworkURL, p.PhoneRaw = t[networkURL], t[phoneRaw]
	to := p.Texts()
	for place, f := range texts {
		if f > 0 {
			*to[f] = t[place]
		}
	}
	switch {
	case p.LastName == "":
		p.FullName = strings.TrimSpace(p.FirstName)
	case p.FirstName == "":
		p.FullName = strings.TrimSpace(p.LastName)
	default:
		p.FullName = strings.TrimSpace(arena.Join(p.FirstName, " ", p.LastName))
	}
	e.keys, e.emails, e.phones = e.keys[:0], e.emails[:0], e.phones[:0]
	for key := range members(t[emails]) {
		e.keys = append(e.keys, key)
		if strings.Contains(key, "@") {
			e.emails = append(e.emails, resolution.ContactEmail{Email: key})
		}
	}
	for number := range members(t[phones]) {
		e.phones = append(e.phones, resolution.ContactPhone{Phone: number})
	}
	if len(e.keys) > 0 {
		p.EmailKeys = e.keys
	}
	if len(e.emails) > 0 {
		p.Emails, p.Email = e.emails, e.emails[0].Email
	}
	if len(e.phones) > 0 {
		p.Phones = e.phones
	}
	if t[lastSeen] != "" {
		micros, _ := binary.Varint([]byte(t[lastSeen]))
		e.lastSeen = time.UnixMicro(micros).UTC()
		p.LastSeenAt = &e.lastSeen
	}
}

// members yields the members of a list with ;.
func members(list string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for list != "" {
			var member string
			if member, list, _ = strings.Cut(list, ";"); !yield(member) {
				return
			}
		}
	}
}

// Records is the number of people, with replaced ones.
func (f *File) Records() int { return f.Rows() }

// Identify gives use the identifiers of a record.
func (f *File) Identify(record int, use func(resolution.Identifier, string)) (err error) {
	defer keyed.Guard(&err, debug.SetPanicOnFault(true))
	var arena keyed.Arena
	var t [fields]string
	f.Read(uint32(record), &arena, t[:])
	use(resolution.NetworkURL, t[networkURL])
	for email := range strings.SplitSeq(t[emails], ";") {
		use(resolution.Email, email)
	}
	for phone := range strings.SplitSeq(t[phones], ";") {
		use(resolution.Phone, phone)
	}
	use(resolution.Phone, t[phoneRaw])
	return nil
}
