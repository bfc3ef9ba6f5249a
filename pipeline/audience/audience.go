// Package audience makes people of the rows of a dataset, as the lists of an ad platform have them.
//
// The one thing to know before using it: a digest is never hashed again. The key of a person is, in this
// order, the dataset's digest by the platform's rule, a digest of an address in the row, or a digest of the
// list that was made by that rule. Any other digest is unverified.
package audience

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/leadetl/leadetl/internal/suggest"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/sinks"
	"github.com/leadetl/leadetl/sinks/schema"
	"github.com/leadetl/leadetl/transforms/email"
	"github.com/leadetl/leadetl/transforms/hashed"
	"github.com/leadetl/leadetl/transforms/phone"
	"github.com/leadetl/leadetl/transforms/platform"
)

// Settings say which people a list has.
type Settings struct {
	Platform *platform.Platform
	// From are the columns of the list that have fields, besides the identifier.
	From map[platform.Field]string
	// Country is that of rows without another one.
	Country string
	// Keys are the fields that people are found by; all of the platform if it is empty.
	Keys []platform.Field
	// Mails and Numbers are the rules by which digests in the list were made.
	Mails   []email.Profile
	Numbers []phone.Form
	// Found takes what resolvers and reference data found, too.
	Found bool
	// Unverified takes digests whose rule is not known to be the platform's.
	Unverified bool
}

// source is where a row may have a value. Places are of columns that are read; -1 is none.
type source struct {
	cell, key int
	digests   map[email.Profile]int // of the dataset, by their rules
	numbers   map[phone.Form]int
	mails     []email.Profile // rules by which a digest in cell was made
	forms     []phone.Form
	found     bool
	unlike    *source // the digest is not the one that came with the list
}

// Maker makes people of rows. Its methods are safe from any goroutine.
type Maker struct {
	settings Settings
	columns  []column
	sources  map[platform.Field][]source
	read     []string // columns of the dataset
	// UsesFound says that a field may come from what was found.
	UsesFound bool
}

// column is a column of the file.
type column struct {
	platform.Column
	form int // of a key: which of the forms of the platform
}

// New is a Maker for the rows of a dataset. It fails if its columns have no key that the platform takes.
func New(m *sinks.Manifest, s Settings) (*Maker, error) {
	maker := &Maker{settings: s, sources: map[platform.Field][]source{}}
	d := newDataset(m, maker)
	if err := d.list(); err != nil {
		return nil, err
	}
	if s.Found {
		d.found()
	}
	if s.Country == "" && maker.sources[platform.Country] == nil {
		if err := maker.withoutCountry(); err != nil {
			return nil, err
		}
	}
	return maker, maker.choose()
}

// withoutCountry leaves out what means nobody without a country.
func (m *Maker) withoutCountry() error {
	for _, field := range slices.Sorted(maps.Keys(m.settings.From)) {
		if field.NeedsCountry() {
			return fmt.Errorf("%s means nobody without a country; name a column with --from country=COLUMN, or one for all with --country US", field)
		}
	}
	for _, field := range platform.Fields {
		if field.NeedsCountry() {
			delete(m.sources, field)
		}
	}
	return nil
}

// choose chooses the columns of the file: those that may have a value, or all of a template.
func (m *Maker) choose() error {
	p := m.settings.Platform
	keys := slices.DeleteFunc(p.Takes(), func(f platform.Field) bool { return !f.IsKey() || m.sources[f] == nil })
	if len(m.settings.Keys) > 0 {
		keys = slices.DeleteFunc(keys, func(f platform.Field) bool { return !slices.Contains(m.settings.Keys, f) })
	}
	if p.OneKind && len(keys) > 1 {
		if m.settings.From[platform.Phone] != "" {
			return fmt.Errorf("%s takes one kind of key a file; choose with --keys email or --keys phone", p.Name)
		}
		keys = keys[:1]
	}
	if len(keys) == 0 && !(p.ByAddress && m.has(p.Together)) {
		return fmt.Errorf("the list has no key that %s takes: name a column of it with --from email=COLUMN%s", p.Name, m.hint())
	}
	if !m.has(p.Needs) {
		return fmt.Errorf("%s takes a person with %s only: name the columns with --from, and the country", p.Name, join(p.Needs))
	}
	if !m.has(p.Together) {
		for _, f := range p.Together {
			delete(m.sources, f)
		}
	}
	forms := map[platform.Field]int{}
	for _, c := range p.Columns {
		there := c.Field != "" && m.has([]platform.Field{c.Field}) && (!c.Field.IsKey() || slices.Contains(keys, c.Field))
		if !there && !p.Template {
			continue
		}
		if !there {
			c.Field = ""
		}
		m.columns = append(m.columns, column{c, forms[c.Field]})
		forms[c.Field]++
	}
	for f, sources := range m.sources {
		if forms[f] == 0 && f != platform.Country {
			delete(m.sources, f)
			continue
		}
		m.UsesFound = m.UsesFound || slices.ContainsFunc(sources, func(s source) bool { return s.found })
	}
	return nil
}

func (m *Maker) hint() string {
	if m.settings.Found {
		return ""
	}
	return ", or take what was found with --with-found"
}

// has reports whether there is a source of each field, or a country for all.
func (m *Maker) has(fields []platform.Field) bool {
	return !slices.ContainsFunc(fields, func(f platform.Field) bool {
		return m.sources[f] == nil && (f != platform.Country || m.settings.Country == "")
	})
}

func join(fields []platform.Field) string {
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = string(f)
	}
	return strings.Join(names, ", ")
}

// Columns are the columns of the dataset that the rows for People have, in this order.
func (m *Maker) Columns() []string { return m.read }

// Header are the names of the columns of the file.
func (m *Maker) Header() (names []string) {
	for _, c := range m.columns {
		names = append(names, c.Header)
	}
	return names
}

// dataset is what a Maker knows of a dataset.
type dataset struct {
	*Maker
	manifest *sinks.Manifest
	kept     map[string]string // from names in the dataset to those in the input
	columns  []schema.Column
	isEmail  bool // the identifier is an email
}

func newDataset(m *sinks.Manifest, maker *Maker) *dataset {
	return &dataset{Maker: maker, manifest: m, kept: m.KeptFrom(), columns: m.AllColumns(),
		isEmail: resolution.Operation(m.Operation).Identifier() == resolution.Email}
}

// place is the place of a column among those that are read; -1 of one that the dataset does not have.
func (d *dataset) place(name string, kept bool) int {
	i := slices.IndexFunc(d.columns, func(c schema.Column) bool {
		_, isKept := d.kept[c.Name]
		return c.Name == name && c.Type == "STRING" && isKept == kept
	})
	if i < 0 {
		return -1
	}
	if at := slices.Index(d.read, name); at >= 0 {
		return at
	}
	d.read = append(d.read, name)
	return len(d.read) - 1
}

// named finds a column of the list by its name in the dataset or in the input.
func (d *dataset) named(field platform.Field, name string) (string, error) {
	var list []string
	for _, c := range d.columns {
		input, isKept := d.kept[c.Name]
		if isKept {
			list = append(list, c.Name)
		}
		if isKept && (strings.EqualFold(c.Name, name) || strings.EqualFold(input, name)) {
			return c.Name, nil
		}
	}
	if slices.ContainsFunc(d.columns, func(c schema.Column) bool { return strings.EqualFold(c.Name, name) }) {
		return "", fmt.Errorf("column %q is not from the list but of an answer; --with-found takes what was found, without naming it", name)
	}
	return "", fmt.Errorf("--from %s=%s: no column of the list is called so%s", field, name, suggest.OneOf(name, list))
}

// list finds what came with the list.
func (d *dataset) list() error {
	for _, field := range slices.Sorted(maps.Keys(d.settings.From)) {
		name, err := d.named(field, d.settings.From[field])
		if err != nil {
			return err
		}
		if !slices.Contains(d.settings.Platform.Takes(), field) && field != platform.Country {
			return fmt.Errorf("%s takes no %s", d.settings.Platform.Name, field)
		}
		d.sources[field] = []source{{cell: d.place(name, true), key: -1, mails: d.settings.Mails, forms: d.settings.Numbers}}
	}
	if d.sources[platform.Email] == nil && d.isEmail {
		if s := d.identifier(); s.cell >= 0 || s.key >= 0 || len(s.digests) > 0 {
			d.sources[platform.Email] = []source{s}
		}
	}
	return nil
}

// identifier is the email that rows are resolved by, and the dataset's digests of it.
func (d *dataset) identifier() source {
	s := source{cell: -1, key: d.place("key", false), mails: d.settings.Mails, digests: map[email.Profile]int{}}
	for name, input := range d.kept {
		if input == d.manifest.Identifier() {
			s.cell = d.place(name, true)
		}
	}
	for _, p := range hashed.Of(hashed.Email) {
		profile := p.Email
		if profile == email.Google && d.manifest.RulesVersion < googleRules {
			profile = email.GoogleUntil202608
		}
		if profile == email.Plain && s.cell < 0 && s.key < 0 && d.manifest.Asks() && !d.settings.Found {
			continue // it may be a digest that was found for another one
		}
		if at := d.place(p.Column, false); at >= 0 {
			s.digests[profile] = at
		}
	}
	return s
}

// googleRules is the version of the rules since which Google's digests are by its rule of 2026-08.
const googleRules = 4

// found finds what resolvers and reference data found: behind the list's keys, and in place of a missing name
// and address as a whole, because those of two people must not be mixed.
func (d *dataset) found() {
	isNamed := slices.ContainsFunc(platform.Fields, func(f platform.Field) bool {
		return f.NeedsCountry() && f != platform.Country && d.settings.From[f] != ""
	})
	for _, field := range d.settings.Platform.Takes() {
		s := source{cell: d.place(string(field), false), key: -1, found: true}
		if field == platform.Phone {
			s.numbers = d.numberDigests()
		}
		if (s.cell >= 0 || len(s.numbers) > 0) && !(field.NeedsCountry() && isNamed) {
			d.sources[field] = append(d.sources[field], s)
		}
	}
	// The interface of services says that they hash addresses in lower case, and reference data is hashed so.
	s := source{cell: d.place("hem_sha256", false), key: -1, found: true, mails: []email.Profile{email.Plain}}
	if d.isEmail {
		own := d.identifier()
		s.unlike = &own
	}
	if s.cell >= 0 {
		d.sources[platform.Email] = append(d.sources[platform.Email], s)
	}
}

// numberDigests are the dataset's digests of the number that was found.
func (d *dataset) numberDigests() map[phone.Form]int {
	digests := map[phone.Form]int{}
	for _, p := range hashed.Of(hashed.Phone) {
		if at := d.place(p.Column, false); at >= 0 {
			digests[p.Phone] = at
		}
	}
	return digests
}

// ParseFrom reads FIELD=COLUMN.
func ParseFrom(texts []string) (map[platform.Field]string, error) {
	from := map[platform.Field]string{}
	for _, text := range texts {
		name, column, _ := strings.Cut(text, "=")
		field := platform.Field(strings.TrimSpace(name))
		switch {
		case !slices.Contains(platform.Fields, field):
			return nil, fmt.Errorf("--from %s: there is no field %q%s", text, field, suggest.OneOf(string(field), strings.Split(join(platform.Fields), ", ")))
		case column == "":
			return nil, fmt.Errorf("--from %s: name the column of the list, as in --from %s=COLUMN", text, field)
		case from[field] != "":
			return nil, errors.New("--from names two columns for " + string(field))
		}
		from[field] = column
	}
	return from, nil
}
