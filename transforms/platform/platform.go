// Package platform is the table of ad platforms that take lists of people as files: which columns a file has,
// how each value is written in it, how large it may be, and whose data the platform takes. Rows are rules that
// somebody else made, each with its page and date.
//
// The one thing to know before using it: a value has one digest for each rule, and a platform finds nobody by
// a digest of another rule. A digest is never hashed again: callers look for digests before they ask for a form.
package platform

import (
	"slices"

	"github.com/leadetl/leadetl/transforms/email"
	"github.com/leadetl/leadetl/transforms/phone"
)

// Field is what a column of a file is about. Its text is the column of a dataset that has the same.
type Field string

// The fields.
const (
	Email       Field = "email"
	Phone       Field = "phone"
	FirstName   Field = "first_name"
	LastName    Field = "last_name"
	Country     Field = "country"
	ZipCode     Field = "zip_code"
	City        Field = "city"
	State       Field = "state"
	JobTitle    Field = "job_title"
	CompanyName Field = "company_name"
)

// Fields are all fields. Those before FirstName are keys: a person is found by one of them alone.
var Fields = []Field{Email, Phone, FirstName, LastName, Country, ZipCode, City, State, JobTitle, CompanyName}

// IsKey reports whether a person is found by the field alone.
func (f Field) IsKey() bool { return f == Email || f == Phone }

// NeedsCountry reports whether a value of the field means nobody without a country.
func (f Field) NeedsCountry() bool { return slices.Contains(ofPlace, f) }

var ofPlace = []Field{FirstName, LastName, Country, ZipCode, City, State}

// Rule is what a page says, with the page and its date, or the commit of a repository and the month of it.
type Rule struct{ Text, Source, Date string }

// When is the date of a rule: that of its page, or of the day on which a page without date was read.
func (r Rule) When() string {
	if r.Date == "" {
		return "read 2026-11"
	}
	return r.Date
}

// Column is a column of a file.
type Column struct {
	Header string
	Field  Field  // empty if all rows have the same
	Always string // what all rows have
	// Write makes a value as the platform wants it, of a text and a country. The value is empty if the text
	// is none. open says that the platform's pages disagree about it. It is nil for keys, whose forms are
	// those of the platform.
	Write  func(text, country string) (value string, open bool)
	Hashed bool
}

// Mail is a form in which a platform hashes addresses.
type Mail struct {
	Rule
	// Profile is the rule by which datasets have digests of it. -1 if none have them.
	Profile int
	append  func(to []byte, a email.Address) ([]byte, bool)
}

// Append appends the text that is hashed. ok is false for a digest, and if nothing is left of the address.
func (m Mail) Append(to []byte, a email.Address) (form []byte, ok bool) { return m.append(to, a) }

// Number is a form in which a platform hashes phone numbers.
type Number struct {
	Rule
	Form phone.Form
}

// Platform is a platform.
type Platform struct {
	Name, Title string
	Columns     []Column
	// Mails and Numbers are the forms of the columns of these fields, in their order. The first Mail is the
	// platform's newest rule: it tells people apart.
	Mails   []Mail
	Numbers []Number
	// Digests are the rules of addresses whose digests fit as they are. A digest by another rule may be of
	// somebody else, or of nobody.
	Digests []email.Profile
	// Template says that all columns are there, whatever is known.
	Template bool
	NoHeader bool
	// OneKind says that a file has one field. The columns are alternatives.
	OneKind bool
	// Before are the records before the people. audience is the name of the list.
	Before func(audience string) [][]string
	// Together are fields of which a person has all or none. They are a key if ByAddress.
	Together  []Field
	ByAddress bool
	// Needs are fields without which a person is not taken.
	Needs []Field

	MaxRows, MaxBytes int64 // of a file; 0 for any
	Least             int64 // people
	LeastOf           string
	Whose             Rule // whose data it takes; empty if no page was read
	// Reservations are what is not known for sure, and is said beside each file.
	Reservations []string
	// Rules are the other rules that the row follows.
	Rules []Rule
}

// Takes are the fields that a platform takes.
func (p *Platform) Takes() (all []Field) {
	for _, c := range p.Columns {
		if c.Field != "" && !slices.Contains(all, c.Field) {
			all = append(all, c.Field)
		}
	}
	return all
}

// Names are the names of the platforms.
func Names() (names []string) {
	for i := range All {
		names = append(names, All[i].Name)
	}
	return names
}

// ByName finds a platform; nil for another name.
func ByName(name string) *Platform {
	for i := range All {
		if All[i].Name == name {
			return &All[i]
		}
	}
	return nil
}
