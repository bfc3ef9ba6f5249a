package people

import (
	"bytes"
	"encoding/binary"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/directory/records"
)

// sharedTexts are the fields that are in People.Texts.
var sharedTexts = [fields]resolution.PersonText{
	firstName: resolution.PersonFirstName, lastName: resolution.PersonLastName, headline: resolution.PersonHeadline,
	jobTitle: resolution.PersonJobTitle, seniority: resolution.PersonSeniority, department: resolution.PersonDepartment,
	street: resolution.PersonStreet, zipCode: resolution.PersonZipCode, city: resolution.PersonCity, state: resolution.PersonState,
}

// Start makes p empty for people of the file.
func (f *File) Start(p *resolution.People, part Part) {
	p.Reset(part == Whole)
	for field, text := range sharedTexts {
		if field == firstName || text > 0 {
			p.Texts[text].Reset(f.Dictionary(field))
		}
	}
	p.CompanyDomains.Reset(f.Dictionary(companyDomain))
	p.Phone.Reset(f.firstPhones().table)
}

// AppendAll appends the people of rows to the columns of p. A row that is records.None is
// one without a match, whose network_url is that of urls, if there are any. It does not fill
// Reasons, Matched, Hashes, Companies, MatchLevels and Confidences. It ends early when p,
// with the hashes of the emails, has more than limit bytes, and returns the number of rows.
// Call it under columnfile.Guard.
func (f *File) AppendAll(rows []uint32, urls []string, p *resolution.People, part Part, limit int) int {
	first, lines := f.firstPhones(), uint64(touchedLines)
	if part != Whole {
		lines = partLines
	}
	for i, row := range rows {
		if i%touched == 0 {
			f.Touch(rows[i:min(i+touched, len(rows))], 2, lines)
		}
		if row == records.None {
			url := ""
			if urls != nil {
				url = urls[i]
			}
			appendNobody(p, url)
			continue
		}
		r := f.Fields(row)
		emails := p.EmailKeys.Texts.Len()
		p.Size += r.Len()
		switch part {
		case Whole:
			f.appendPerson(&r, p, &first)
		case Emails:
			appendEmails(&r, p)
		case Phones:
			appendPhone(&r, p, &first)
		}
		if p.Size += hashesBytes * (p.EmailKeys.Texts.Len() - emails); p.Size > limit {
			return i + 1
		}
	}
	return len(rows)
}

// How many rows have their memory loaded at once, and how many lines of cache of each: about
// the length of a person.
const (
	touched      = 32
	touchedLines = 4
	partLines    = 3 // to the emails and phones
)

// hashesBytes is the length of the hashes of an email.
const hashesBytes = 32 + 40 + 64

func appendNobody(p *resolution.People, url string) {
	p.NetworkURL.Data = append(p.NetworkURL.Data, url...)
	p.NetworkURL.End()
	appendNoPhone(p)
	p.EmailKeys.End()
	if !p.Whole {
		return
	}
	for i := range p.Texts {
		p.Texts[i].AddText(nil)
	}
	p.FullName.End()
	p.Email.End()
	p.Phones.End()
	p.CompanyDomains.AddText(nil)
	p.LastSeen = append(p.LastSeen, resolution.NotSeen)
}

// appendEmails appends a person of whom only emails are wanted. Without any, there is no
// match.
func appendEmails(r *records.Fields, p *resolution.People) {
	_, url := r.Next()
	r.Skip(emails - firstName)
	_, list := r.Next()
	if len(list) > 0 {
		p.NetworkURL.Data = append(p.NetworkURL.Data, url...)
	}
	p.NetworkURL.End()
	appendKeys(p, list)
	appendNoPhone(p)
}

func appendNoPhone(p *resolution.People) {
	p.Phone.AddText(nil)
	p.PhoneRaw.End()
}

// appendPhone appends a person of whom only a phone is wanted.
func appendPhone(r *records.Fields, p *resolution.People, first *firstPhones) {
	r.Skip(phones)
	code, list := r.Next()
	first.append(p, code, list)
	_, raw := r.Next()
	p.PhoneRaw.Add(raw)
	p.NetworkURL.End()
	p.EmailKeys.End()
}

// append appends the first number of a list, which is that of a code unless the code is -1.
func (f *firstPhones) append(p *resolution.People, code int32, list []byte) {
	if code >= 0 {
		p.Phone.AddCode(f.codes[code])
		return
	}
	number, _, _ := bytes.Cut(list, separator)
	p.Phone.AddText(number)
}

var separator = []byte{';'}

// appendKeys appends the keys of emails, and returns the first plain address.
func appendKeys(p *resolution.People, list []byte) (address []byte) {
	for len(list) > 0 {
		var key []byte
		if key, list, _ = bytes.Cut(list, separator); !resolution.IsAddress(key) {
			p.Digests++
		} else if address == nil {
			address = key
		}
		p.EmailKeys.Texts.Add(key)
	}
	p.EmailKeys.End()
	return address
}

func (f *File) appendPerson(r *records.Fields, p *resolution.People, first *firstPhones) {
	_, url := r.Next()
	p.NetworkURL.Add(url)
	for field := firstName; field < fields; field++ {
		code, text := r.Next()
		switch field {
		case emails:
			p.Email.Add(appendKeys(p, text))
		case phones:
			if first.append(p, code, text); code >= 0 {
				text = f.Dictionary(phones).At(int(code))
			}
			for len(text) > 0 {
				var number []byte
				number, text, _ = bytes.Cut(text, separator)
				p.Phones.Texts.Add(number)
			}
			p.Phones.End()
		case phoneRaw:
			p.PhoneRaw.Add(text)
		case companyDomain:
			appendText(&p.CompanyDomains, code, text)
		case lastSeen:
			seen := int64(resolution.NotSeen)
			if len(text) > 0 {
				seen, _ = binary.Varint(text)
			}
			p.LastSeen = append(p.LastSeen, seen)
		default:
			appendText(&p.Texts[sharedTexts[field]], code, text)
		}
	}
	appendFullName(p)
}

func appendText(c *resolution.CodedTexts, code int32, text []byte) {
	if code >= 0 {
		c.AddCode(code)
	} else {
		c.AddText(text)
	}
}

// appendFullName joins the names of the last person.
func appendFullName(p *resolution.People) {
	i := p.FullName.Len()
	first, last := p.Texts[resolution.PersonFirstName].At(i), p.Texts[resolution.PersonLastName].At(i)
	from := len(p.FullName.Data)
	name := append(p.FullName.Data, first...)
	if len(first) > 0 && len(last) > 0 {
		name = append(name, ' ')
	}
	name = append(name, last...)
	if trimmed := bytes.TrimSpace(name[from:]); len(trimmed) < len(name)-from {
		name = append(name[:from], trimmed...)
	}
	p.FullName.Data = name
	p.FullName.End()
}
