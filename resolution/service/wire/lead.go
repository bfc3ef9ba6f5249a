package wire

import (
	"bytes"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/leadetl/leadetl/resolution"
)

// WriteLead writes a lead as encoding/json would, but several times faster. It
// is a large part of the work of a call.
func WriteLead(b *bytes.Buffer, l *resolution.Lead) {
	o := object{b: b.AvailableBuffer()}
	o.open()
	o.contact(&l.Contact)
	o.text("phone", l.Phone)
	if len(l.HashedEmails) > 0 {
		o.name("hashed_emails")
		o.hashedEmails(l.HashedEmails)
	}
	o.text("network_url", l.NetworkURL)
	if l.Company != nil {
		o.name("company")
		o.company(l.Company)
	}
	o.text("match_level", l.MatchLevel)
	if l.Confidence != nil {
		o.name("confidence")
		o.number(*l.Confidence)
	}
	o.close()
	b.Write(o.b)
}

// object writes JSON objects. The last byte tells whether a comma is due.
type object struct{ b []byte }

func (o *object) open()  { o.b = append(o.b, '{') }
func (o *object) close() { o.b = append(o.b, '}') }

// comma separates a member or an item from the one before.
func (o *object) comma() {
	if last := o.b[len(o.b)-1]; last != '{' && last != '[' {
		o.b = append(o.b, ',')
	}
}

// name begins a member; its value has to follow. Names need no escapes.
func (o *object) name(name string) {
	o.comma()
	o.b = append(o.b, '"')
	o.b = append(o.b, name...)
	o.b = append(o.b, '"', ':')
}

// text writes a member, unless it is empty.
func (o *object) text(name, value string) {
	if value != "" {
		o.name(name)
		o.string(value)
	}
}

func (o *object) contact(c *resolution.Contact) {
	o.text("first_name", c.FirstName)
	o.text("last_name", c.LastName)
	o.text("full_name", c.FullName)
	o.text("headline", c.Headline)
	o.text("job_title", c.JobTitle)
	o.text("seniority", c.Seniority)
	o.text("department", c.Department)
	o.text("email", c.Email)
	if len(c.Emails) > 0 {
		o.name("emails")
		o.b = append(o.b, '[')
		for _, e := range c.Emails {
			o.typed("email", e.Email, e.Type)
		}
		o.b = append(o.b, ']')
	}
	if len(c.Phones) > 0 {
		o.name("phones")
		o.b = append(o.b, '[')
		for _, p := range c.Phones {
			o.typed("phone", p.Phone, p.Type)
		}
		o.b = append(o.b, ']')
	}
	o.address(c.Address)
	if c.LastSeenAt != nil {
		o.name("last_seen_at")
		o.b = append(o.b, '"')
		o.b = c.LastSeenAt.AppendFormat(o.b, time.RFC3339Nano)
		o.b = append(o.b, '"')
	}
}

// typed writes an item with a value and its type.
func (o *object) typed(name, value, kind string) {
	o.comma()
	o.open()
	o.name(name)
	o.string(value)
	o.text("type", kind)
	o.close()
}

func (o *object) hashedEmails(all []resolution.HashedEmail) {
	o.b = append(o.b, '[')
	for _, h := range all {
		o.comma()
		o.open()
		o.name("email")
		o.string(h.Email)
		o.name("type")
		o.string(h.Type)
		o.close()
	}
	o.b = append(o.b, ']')
}

func (o *object) address(a resolution.Address) {
	if a == (resolution.Address{}) {
		return
	}
	o.name("address")
	o.open()
	o.text("street", a.Street)
	o.text("zip_code", a.ZipCode)
	o.text("city", a.City)
	o.text("state", a.State)
	o.close()
}

func (o *object) company(c *resolution.Company) {
	o.open()
	o.text("name", c.Name)
	o.text("domain", c.Domain)
	o.text("website_url", c.WebsiteURL)
	o.text("network_url", c.NetworkURL)
	o.name("industry")
	if c.Industry != nil {
		o.string(*c.Industry)
	} else {
		o.null()
	}
	o.text("revenue", c.Revenue)
	o.text("employee_count", c.EmployeeCount)
	o.name("year_founded")
	if c.YearFounded != nil {
		o.b = strconv.AppendInt(o.b, int64(*c.YearFounded), 10)
	} else {
		o.null()
	}
	o.address(c.Address)
	o.text("about", c.About)
	o.close()
}

func (o *object) null() { o.b = append(o.b, "null"...) }

// number writes as encoding/json does. Numbers are rare, so speed does not
// matter.
func (o *object) number(f float64) {
	var b bytes.Buffer
	WriteJSON(&b, f)
	o.b = append(o.b, b.Bytes()...)
}

// string copies a string that needs no escapes, and writes others as
// encoding/json does.
func (o *object) string(s string) {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			var b bytes.Buffer
			WriteJSON(&b, s)
			o.b = append(o.b, b.Bytes()...)
			return
		}
	}
	o.b = append(o.b, '"')
	o.b = append(o.b, s...)
	o.b = append(o.b, '"')
}
