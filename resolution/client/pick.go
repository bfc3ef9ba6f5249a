package client

import (
	"cmp"
	"strings"

	"github.com/leadetl/leadetl/internal/jsontree"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/exchange"
	"github.com/leadetl/leadetl/resolution/values"
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

// lead reads the data of an answer, and returns its row. For a company operation, the
// members of the company may stand in place of the lead.
func (p *picker) lead(gives resolution.Gives, m jsontree.Value) (row int) {
	a := p.into
	row = a.AddMatch()
	c := jsontree.Object(m.Get("company"))
	if c == nil && gives == resolution.GivesCompany {
		p.company(m)
	} else {
		p.company(c)
		p.person(m)
	}
	for v := range jsontree.List(m.Get("hashed_emails")).All() {
		if hash, kind, is := p.hash(v); is && (c != nil || gives != resolution.GivesCompany) {
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
	a, home := p.into, jsontree.Object(m.Get("address"))
	for _, block := range [...][]values.Value{values.Person[:], values.Visit[:]} {
		for i := range block {
			if v := &block[i]; v.Text > 0 {
				a.SetText(v.Text, textOf(v, m, home))
			}
		}
	}
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

// textOf is the text of a value in a lead or a company, whose address is home.
func textOf(v *values.Value, m, home jsontree.Value) string {
	if v.InAddress {
		m = home
	}
	text := jsontree.Text(m.Get(v.Member))
	if text == "" {
		text = first(m, v.Also...)
	}
	switch v.Kind {
	case values.Word:
		return strings.ToLower(text)
	case values.Profile:
		return exchange.WithoutScheme(text)
	case values.Year:
		return exchange.Year(text)
	}
	return text
}

// company is a company's record, nil when nothing is in it.
func company(m jsontree.Value) *resolution.Company {
	r, home := resolution.CompanyRecord{}, jsontree.Object(m.Get("address"))
	for i := range values.Company {
		if v := &values.Company[i]; !v.IsMade() {
			r.Fields[v.Company].Text = textOf(v, m, home)
		}
	}
	if r.IsEmpty() {
		return nil
	}
	return r.Company() // with texts of its own: these are parts of the body
}
