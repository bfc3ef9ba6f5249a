package client

import (
	"cmp"
	"strings"

	"github.com/leadetl/leadetl/internal/jsontree"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/exchange"
)

// first returns the first of the named members that is text.
func first(m jsontree.Value, names ...string) string {
	for _, name := range names {
		if s := jsontree.Text(m.Get(name)); s != "" {
			return s
		}
	}
	return ""
}

// picker reads leads from what services send, each as a match that it adds to into, and
// counts what it left out.
type picker struct {
	into        *resolution.Answers
	quarantined int
	companies   *exchange.Companies
}

// texts are the members of a lead that are texts as they are, in the order of preference.
var texts = []struct {
	field resolution.Field
	names []string
}{
	{resolution.FieldFirstName, []string{"first_name"}}, {resolution.FieldLastName, []string{"last_name"}}, {resolution.FieldFullName, []string{"full_name", "name"}},
	{resolution.FieldHeadline, []string{"headline"}}, {resolution.FieldJobTitle, []string{"job_title", "title"}}, {resolution.FieldSeniority, []string{"seniority"}},
	{resolution.FieldDepartment, []string{"department"}}, {resolution.FieldEmail, []string{"email"}},
}

// lead reads the data of an answer, and returns its row. For a company operation, the
// members of the company may stand in place of the lead.
func (p *picker) lead(op resolution.Operation, m jsontree.Value) (row int) {
	a := p.into
	row = a.AddMatch()
	c := jsontree.Object(m.Get("company"))
	if c == nil && op == resolution.IPToCompany {
		p.company(m)
	} else {
		p.company(c)
		p.person(m)
	}
	for v := range jsontree.List(m.Get("hashed_emails")).All() {
		if hash, kind, is := p.hash(v); is && (c != nil || op != resolution.IPToCompany) {
			a.AddHash(hash, kind)
		}
	}
	if n, ok := exchange.Number(m.Get("confidence")); ok && n >= 0 && n <= 1 {
		a.SetConfidence(n)
	}
	return row
}

// person reads what is known of a person beside hashes and company.
func (p *picker) person(m jsontree.Value) {
	a := p.into
	for _, t := range texts {
		a.SetText(t.field, first(m, t.names...))
	}
	a.SetText(resolution.FieldNetworkURL, exchange.WithoutScheme(first(m, "network_url", "profile_url")))
	a.SetText(resolution.FieldMatchLevel, strings.ToLower(jsontree.Text(m.Get("match_level"))))
	home := address(m.Get("address"))
	a.SetText(resolution.FieldStreet, home.Street)
	a.SetText(resolution.FieldZipCode, home.ZipCode)
	a.SetText(resolution.FieldCity, home.City)
	a.SetText(resolution.FieldState, home.State)
	if at := exchange.Moment(m.Get("last_seen_at")); at != nil {
		a.SetTime(&a.LastSeen, *at)
	}
	for v := range jsontree.List(m.Get("emails")).All() {
		if e := jsontree.Text(v); e != "" {
			a.AddTyped(&a.Emails, e, "")
		} else if m := jsontree.Object(v); first(m, "email", "address", "value") != "" {
			a.AddTyped(&a.Emails, first(m, "email", "address", "value"), jsontree.Text(m.Get("type")))
		}
	}
	number := ""
	for v := range jsontree.List(m.Get("phone")).All() {
		number = cmp.Or(number, phone(v))
	}
	for _, name := range []string{"phones", "phone_numbers"} {
		for v := range jsontree.List(m.Get(name)).All() {
			if n := phone(v); n != "" {
				a.AddTyped(&a.Phones, n, jsontree.Text(jsontree.Object(v).Get("type")))
				number = cmp.Or(number, n)
			}
		}
	}
	a.SetText(resolution.FieldPhone, number)
}

// company reads the company of the last row.
func (p *picker) company(m jsontree.Value) {
	if len(m) == 0 {
		return
	}
	if c := p.companies.Of(m.Written(), func() *resolution.Company { return company(m) }); c != nil {
		p.into.SetCompany(p.into.Companies.Table.AddShared(c))
	}
}

// hash reads a hashed email; is says whether the value is one.
func (p *picker) hash(v jsontree.Value) (hash, kind string, is bool) {
	hash = jsontree.Text(v)
	if m := jsontree.Object(v); m != nil {
		hash, kind = first(m, "email", "hash", "value"), exchange.HashType(first(m, "type", "algorithm"))
	}
	if hash == "" {
		return "", "", false
	}
	if hash, kind, is = exchange.Digest(hash, kind); !is {
		p.quarantined++
	}
	return hash, kind, is
}

func phone(v jsontree.Value) string {
	if s := jsontree.Text(v); s != "" {
		return s
	}
	return first(jsontree.Object(v), "phone", "number", "phone_number", "value")
}

func address(v jsontree.Value) resolution.Address {
	m := jsontree.Object(v)
	return resolution.Address{Street: jsontree.Text(m.Get("street")), ZipCode: first(m, "zip_code", "zip", "postal_code"), City: jsontree.Text(m.Get("city")), State: jsontree.Text(m.Get("state"))}
}

// company is a company's record, nil when nothing is in it.
func company(m jsontree.Value) *resolution.Company {
	c := resolution.Company{
		Name:          jsontree.Text(m.Get("name")),
		Domain:        jsontree.Text(m.Get("domain")),
		WebsiteURL:    first(m, "website_url", "website"),
		NetworkURL:    exchange.WithoutScheme(jsontree.Text(m.Get("network_url"))),
		Revenue:       jsontree.Text(m.Get("revenue")),
		EmployeeCount: jsontree.Text(m.Get("employee_count")),
		YearFounded:   exchange.Year(m.Get("year_founded")),
		Address:       address(m.Get("address")),
		About:         jsontree.Text(m.Get("about")),
	}
	if s := jsontree.Text(m.Get("industry")); s != "" {
		c.Industry = &s
	}
	if c == (resolution.Company{}) {
		return nil
	}
	return c.Clone() // its texts are parts of the body
}
