package people

import (
	"bytes"
	"encoding/binary"

	"github.com/leadetl/leadetl/internal/keyed"
	"github.com/leadetl/leadetl/resolution"
)

// Start makes a empty for people of the file. details says whether it takes those of phones from the
// file: by the rules of this program they may be others.
func (f *File) Start(a *resolution.Answers, details bool) {
	a.Reset()
	for field, text := range texts {
		if text > 0 {
			a.Texts[text].Reset(&f.tables[field])
		}
	}
	if details {
		a.Texts[resolution.FieldPhoneDetails].Reset(&f.tables[phoneDetails])
	}
}

// AppendAll appends the people of rows to the columns of a that are read. A row that is
// keyed.None is empty, but for the network_url of urls, if there are any. It does not fill
// Reasons, Matched, Hashes, Companies, match levels and Confidences. It ends early when a,
// with the hashes of the emails, has more than limit bytes, and returns the number of rows.
// Call it under keyed.Guard.
func (f *File) AppendAll(rows []uint32, urls []string, a *resolution.Answers, part Fields, limit int) int {
	unread, lines := unreadFields(a), uint64(touchedLines)
	last := fields - 1 // that is read of a whole person
	for last >= 0 && unread[last] {
		last--
	}
	if part != Whole || last <= phones {
		lines = partLines
	}
	reads := part != Whole || last >= 0 // else only the companies of people are read
	for i, row := range rows {
		if reads && i%touched == 0 {
			f.Touch(rows[i:min(i+touched, len(rows))], 2, lines)
		}
		if row == keyed.None {
			url := ""
			if urls != nil {
				url = urls[i]
			}
			appendNobody(a, url, part)
			continue
		}
		if !reads {
			continue
		}
		r := f.Fields(row)
		emails := a.Emails.Texts.Len()
		a.Size += r.Len()
		switch part {
		case Whole:
			f.appendPerson(&r, a, &unread, last)
		case Emails:
			appendEmails(&r, a)
		case Phones:
			f.appendPhone(&r, a, &unread)
		}
		if a.Size += hashesBytes * (a.Emails.Texts.Len() - emails); a.Size > limit {
			return i + 1
		}
	}
	return len(rows)
}

// unreadFields are the fields that no column is made from that is read.
func unreadFields(a *resolution.Answers) (is [fields]bool) {
	u := &a.Unread
	for field, text := range texts {
		is[field] = text > 0 && u.Texts[text]
	}
	is[networkURL] = u.Texts[resolution.FieldNetworkURL]
	is[phoneRaw] = u.Texts[resolution.FieldPhoneRaw]
	is[phoneDetails] = u.Texts[resolution.FieldPhoneDetails] || a.Texts[resolution.FieldPhoneDetails].Table == nil
	full := u.Texts[resolution.FieldFullName]
	is[firstName], is[lastName] = is[firstName] && full, is[lastName] && full
	hashes := !u.Hashes || u.HashTypes != [3]bool{true, true, true}
	is[emails] = u.Texts[resolution.FieldEmail] && u.Emails && !hashes
	is[phones] = u.Texts[resolution.FieldPhone] && u.Phones
	is[companyDomain], is[lastSeen] = true, u.LastSeen
	return is
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

// appendNobody appends an empty row to the columns that the people of a part have.
func appendNobody(a *resolution.Answers, url string, part Fields) {
	switch part {
	case Phones:
		appendNoPhone(a)
		return
	case Emails:
		a.Texts[resolution.FieldNetworkURL].AddText(nil)
		a.Emails.End()
		return
	}
	to := &a.Texts[resolution.FieldNetworkURL].Texts
	to.Data = append(to.Data, url...)
	to.End()
	a.Emails.End()
	appendNoPhone(a)
	for _, text := range texts {
		if text > 0 {
			a.Texts[text].AddText(nil)
		}
	}
	a.Texts[resolution.FieldFullName].AddText(nil)
	a.Texts[resolution.FieldEmail].AddText(nil)
	a.Phones.End()
	a.LastSeen = append(a.LastSeen, resolution.NotSeen)
}

// appendEmails appends a person of whom only emails are wanted. Without any, there is no
// match.
func appendEmails(r *keyed.Fields, a *resolution.Answers) {
	_, url := r.Next()
	r.Skip(emails - 1)
	_, list := r.Next()
	if len(list) == 0 {
		url = nil
	}
	a.Texts[resolution.FieldNetworkURL].AddText(url)
	appendKeys(a, list)
}

func appendNoPhone(a *resolution.Answers) {
	a.Texts[resolution.FieldPhone].AddText(nil)
	a.Texts[resolution.FieldPhoneRaw].AddText(nil)
	a.Texts[resolution.FieldPhoneDetails].AddText(nil)
}

// appendPhone appends a person of whom only a phone is wanted.
func (f *File) appendPhone(r *keyed.Fields, a *resolution.Answers, unread *[fields]bool) {
	r.Skip(phones)
	_, list := r.Next()
	appendFirst(&a.Texts[resolution.FieldPhone], list)
	_, raw := r.Next()
	a.Texts[resolution.FieldPhoneRaw].AddText(raw)
	if !unread[phoneDetails] {
		code, text := r.Next()
		f.appendText(&a.Texts[resolution.FieldPhoneDetails], phoneDetails, code, text)
	}
}

// appendFirst appends the first number of a list.
func appendFirst(to *resolution.CodedTexts, list []byte) {
	number, _, _ := bytes.Cut(list, separator)
	to.AddText(number)
}

var separator = []byte{';'}

// appendKeys appends the keys of emails, and returns the first plain address. What follows
// that address is read for lists alone.
func appendKeys(a *resolution.Answers, list []byte) (address []byte) {
	all := !a.Unread.Emails || !a.Unread.Hashes
	for len(list) > 0 && (all || address == nil) {
		var key []byte
		if key, list, _ = bytes.Cut(list, separator); !IsAddress(key) {
			a.Digests++
		} else if address == nil {
			address = key
		}
		a.Emails.Texts.Add(key)
	}
	a.Emails.End()
	return address
}

// IsAddress tells an address from a digest.
func IsAddress(emailKey []byte) bool { return bytes.IndexByte(emailKey, '@') >= 0 }

func (f *File) appendPerson(r *keyed.Fields, a *resolution.Answers, unread *[fields]bool, last int) {
	for field := networkURL; field <= last; field++ {
		if unread[field] {
			r.Skip(1)
			continue
		}
		code, text := r.Next()
		switch field {
		case networkURL:
			a.Texts[resolution.FieldNetworkURL].AddText(text)
		case emails:
			a.Texts[resolution.FieldEmail].AddText(appendKeys(a, text))
		case phones:
			appendPhones(a, text)
		case phoneRaw:
			a.Texts[resolution.FieldPhoneRaw].AddText(text)
		case phoneDetails:
			f.appendText(&a.Texts[resolution.FieldPhoneDetails], field, code, text)
		case lastSeen:
			seen := int64(resolution.NotSeen)
			if len(text) > 0 {
				seen, _ = binary.Varint(text)
			}
			a.LastSeen = append(a.LastSeen, seen)
		default:
			f.appendText(&a.Texts[texts[field]], field, code, text)
		}
	}
	if !a.Unread.Texts[resolution.FieldFullName] {
		appendFullName(a)
	}
}

// appendPhones appends a list of numbers.
func appendPhones(a *resolution.Answers, list []byte) {
	appendFirst(&a.Texts[resolution.FieldPhone], list)
	if a.Unread.Phones {
		return
	}
	for len(list) > 0 {
		var number []byte
		number, list, _ = bytes.Cut(list, separator)
		a.Phones.Texts.Add(number)
	}
	a.Phones.End()
}

func (f *File) appendText(to *resolution.CodedTexts, field int, code int32, text []byte) {
	if code >= 0 {
		to.AddCode(&f.tables[field], code)
	} else {
		to.AddText(text)
	}
}

// appendFullName joins the names of the last person.
func appendFullName(a *resolution.Answers) {
	to := &a.Texts[resolution.FieldFullName].Texts
	i := to.Len()
	first, last := a.Texts[resolution.FieldFirstName].At(i), a.Texts[resolution.FieldLastName].At(i)
	from := len(to.Data)
	name := append(to.Data, first...)
	if len(first) > 0 && len(last) > 0 {
		name = append(name, ' ')
	}
	name = append(name, last...)
	if trimmed := bytes.TrimSpace(name[from:]); len(trimmed) < len(name)-from {
		name = append(name[:from], trimmed...)
	}
	to.Data = name
	to.End()
}
