package provider

import (
	"encoding/hex"
	"slices"
	"strings"
	"sync"

	"github.com/leadetl/leadetl/internal/jsontree"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/exchange"
	"github.com/leadetl/leadetl/resolution/values"
	"github.com/leadetl/leadetl/transforms/email"
	"github.com/leadetl/leadetl/transforms/orgtype"
	"github.com/leadetl/leadetl/transforms/phone"
	"github.com/leadetl/leadetl/transforms/profile"
)

// fields say where in an answer the values of columns and helpers are.
type fields struct {
	one  map[string]alternatives
	many map[string]elements
	// texts are those of one that are texts as they are.
	texts []textField
}

type textField struct {
	field resolution.Field
	at    alternatives
}

// elements are those of a list, each with its value and its type.
type elements struct {
	each, value, kind alternatives // value is nil for the element itself, kind if there is none
}

// text is the value of an element.
func (e elements) text(item jsontree.Value) string {
	if e.value != nil {
		return e.value.text(item)
	}
	return jsontree.Text(item)
}

// kinds are the kinds of organizations by the words of providers.
var kinds = orgtype.NewVocabulary(nil)

// maxElements bounds a list of an answer.
const maxElements = 100

// fillable are the columns that fields may name.
var fillable = sync.OnceValue(func() (all []string) {
	for name, v := range values.ByName {
		if !v.IsMade() {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return all
})

// columns are all columns that the fields may fill, in the order of their names.
func (f *fields) columns() (all []string) {
	for _, name := range fillable() {
		_, one := f.one[name]
		if _, many := f.many[name]; one || many {
			all = append(append(all, name), values.ByName[name].Makes...)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// row is an answer that is read into the last row of columns.
type row struct {
	*resolution.Answers
	of     *fields
	body   jsontree.Value
	hashes map[string]bool // added so far; nil if the operation returns none
}

// read adds an answer as a match, whatever is in it. It returns how many values it left out.
func (f *fields) read(op resolution.Operation, body jsontree.Value, companies *exchange.Companies, into *resolution.Answers) (quarantined int) {
	r := row{Answers: into, of: f, body: body}
	if op.Gives() != resolution.GivesPhone && op.Gives() != resolution.GivesCompany {
		r.hashes = map[string]bool{}
	}
	into.AddMatch()
	for _, t := range f.texts {
		into.SetText(t.field, t.at.text(body))
	}
	into.SetText(resolution.FieldNetworkURL, profileAddress(r.text("network_url")))
	into.SetText(resolution.FieldMatchLevel, strings.ToLower(r.text("match_level")))
	if n, is := exchange.Number(f.one["confidence"].value(body)); is && n >= 0 && n <= 1 {
		into.SetConfidence(n)
	}
	if at := exchange.Moment(f.one["last_seen_at"].value(body)); at != nil {
		into.SetTime(&into.LastSeen, *at)
	}
	if kind := r.text("org_type"); kind != "" && op.Gives() == resolution.GivesCompany {
		into.OrgTypes = append(resolution.Pad(into.OrgTypes, into.Len()-1, ""), kinds.Kind(kind))
	}
	r.phones()
	quarantined = r.hashed()
	r.emails()
	r.company(companies)
	return quarantined
}

// text is the value of a column of one value, "" without one.
func (r *row) text(column string) string { return r.of.one[column].text(r.body) }

// list calls yield with the elements of a column that is a list.
func (r *row) list(column string, yield func(value, kind string)) {
	e, is := r.of.many[column]
	if !is {
		return
	}
	n := 0
	for _, p := range e.each {
		p.in(r.body, func(v jsontree.Value) bool {
			for item := range jsontree.List(v).All() {
				if n++; n > maxElements {
					return false
				}
				if value := e.text(item); value != "" {
					yield(value, e.kind.text(item))
				}
			}
			return true
		})
		if n > 0 {
			return
		}
	}
}

// phones reads the numbers, of which the first is the one if no other is named.
func (r *row) phones() {
	first := r.text("phone")
	r.list("phones", func(number, kind string) {
		if first == "" {
			first = number
		}
		if r.Unread.Phones {
			return
		}
		if n, err := phone.Parse(number, ""); err == nil {
			number = n.E164
		}
		r.AddTyped(&r.Phones, number, kind)
	})
	r.SetText(resolution.FieldPhone, first)
}

// hashed reads the hashes, and counts those that are none.
func (r *row) hashed() (quarantined int) {
	add := func(hash, kind string) {
		if hash, kind, is := exchange.Digest(hash, exchange.HashType(kind)); is {
			r.addHash(hash, kind)
		} else {
			quarantined++
		}
	}
	if r.hashes == nil {
		return 0
	}
	for _, kind := range []string{"md5", "sha1", "sha256"} {
		if hash := r.text("hem_" + kind); hash != "" {
			add(hash, kind)
		}
	}
	r.list("hashed_emails", add)
	return quarantined
}

// emails reads the addresses. What is none is left out.
func (r *row) emails() {
	if address := r.address(r.text("email")); address != "" {
		r.SetText(resolution.FieldEmail, address)
	}
	r.list("emails", func(value, kind string) {
		if address := r.address(value); address != "" {
			r.AddTyped(&r.Emails, address, kind)
		}
	})
}

// address is an address in canonical form, "" for anything else. Its hashes are added.
func (r *row) address(value string) string {
	a, err := email.Read([]byte(value))
	if err != nil || a.Kind() != email.Plaintext {
		return ""
	}
	form := a.AppendKey(nil)
	if r.hashes != nil {
		sums := email.Sum(form)
		r.addHash(hex.EncodeToString(sums.MD5[:]), "md5")
		r.addHash(hex.EncodeToString(sums.SHA1[:]), "sha1")
		r.addHash(hex.EncodeToString(sums.SHA256[:]), "sha256")
	}
	return string(form)
}

func (r *row) addHash(hash, kind string) {
	if !r.hashes[hash] {
		r.hashes[hash] = true
		r.AddHash(hash, kind)
	}
}

// company reads the company. Answers with the same texts share one.
func (r *row) company(companies *exchange.Companies) {
	var record resolution.CompanyRecord
	for i := range values.Company {
		v := &values.Company[i]
		if v.IsMade() {
			continue
		}
		text := r.text(v.Name)
		switch {
		case v.Kind == values.Profile:
			text = exchange.WithoutScheme(text)
		case v.Kind == values.Year && exchange.Year(text) == "":
			text = ""
		}
		record.Fields[v.Company].Text = text
	}
	if record.IsEmpty() {
		return
	}
	var all strings.Builder
	for _, f := range record.Fields {
		all.WriteString(f.Text)
		all.WriteByte(0)
	}
	r.SetCompany(r.Companies.Table.AddShared(companies.Of(all.String(), record.Company)))
}

// profileAddress is the address of a person's page as keys are, or without its scheme alone.
func profileAddress(address string) string {
	if key, err := profile.DefaultRules().ParsePerson(address); err == nil {
		return key
	}
	return exchange.WithoutScheme(address)
}

// helpers are the values of fields that are no columns.
func (f *fields) helpers(names []string, body jsontree.Value) map[string]string {
	values := map[string]string{}
	for _, name := range names {
		if value := f.one[name].spelled(body); value != "" {
			values[name] = value
		}
	}
	return values
}
