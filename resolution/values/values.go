// Package values is the table of what answers say of people and companies: a row for each column.
// Whatever names such a column, or reads or writes all of them, reads the table, so that a column
// is added in one place.
package values

import (
	"maps"
	"strings"

	"github.com/apache/arrow/go/v17/arrow"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/sinks/schema"
)

// Value is a column of answers.
type Value struct {
	schema.Column
	// Text is where answers have the value, if it is a text of theirs; 0 if not.
	Text resolution.Field
	// Company is the field of a company. Only the rows of Company have one.
	Company int
	Kind    Kind
	// Group has the columns that come from the same answer.
	Group resolution.Group
	// Of is the value of an answer as the column has it, "" without one; of a list, it is the first.
	// nil for a column that nobody asks for by name.
	Of func(resolution.AnswerRow) string
	// Member is the member of a lead or a company in JSON, and Also are members in which services
	// send it too. InAddress says that it is in the member address of that.
	Member    string
	Also      []string
	InAddress bool
	// Imported says that files of people have it, in a column of the same name.
	Imported bool
	// Role says that it describes what somebody does and not who they are: a search gives it of
	// people whose names were not asked for.
	Role bool
	// Makes are columns that are made of it.
	Makes []string
}

// Kind is how a value that somebody wrote becomes ours.
type Kind int

// The kinds.
const (
	Plain   Kind = iota // a text as it is
	Word                // one of a few words, lower case
	Email               // an address
	Phone               // a number
	Profile             // a profile address, without scheme
	Domain              // a domain, lower case and ASCII
	Year
	Special   // none of these: each reader has its own way
	Made      // not in answers, but made of another column
	MadeLeast // the lower bound of a range
	MadeMost  // the upper bound
)

// IsMade reports whether the value is made of another column.
func (v *Value) IsMade() bool { return v.Kind >= Made }

// IsList reports whether the value is a list.
func (v *Value) IsList() bool { return arrow.IsNested(v.Arrow.ID()) }

// Element is what a value of a list is called, in columns and in JSON.
func (v *Value) Element() string {
	return v.Arrow.(*arrow.ListType).Elem().(*arrow.StructType).Field(0).Name
}

// ByName finds the rows of the table.
var ByName = func() map[string]*Value {
	all := map[string]*Value{}
	for _, block := range [][]Value{Person[:], Phones[:], Hashes[:], Company[:], Visit[:], Owner[:]} {
		for i := range block {
			v := &block[i]
			all[v.Name] = v
			v.complete()
		}
	}
	for i := range Company {
		Company[i].ofCompany()
	}
	return all
}()

// Wanted are the rows that a job may ask for by name, or accept some values of.
var Wanted = func() map[string]*Value {
	asked := maps.Clone(ByName)
	maps.DeleteFunc(asked, func(_ string, v *Value) bool { return v.Of == nil })
	return asked
}()

// Columns are the columns of some rows.
func Columns(rows []Value) (columns []schema.Column) {
	for i := range rows {
		columns = append(columns, rows[i].Column)
	}
	return columns
}

// complete sets what follows from the rest of a row.
func (v *Value) complete() {
	if v.Member == "" {
		v.Member = v.Name
	}
	if v.Text == 0 {
		return
	}
	v.Group = v.Text.Group()
	if !v.IsMade() {
		v.Of = func(r resolution.AnswerRow) string { return string(r.Of.Texts[v.Text].At(r.I)) }
	}
}

// ofCompany does that for a row of Company.
func (v *Value) ofCompany() {
	v.Member, v.Group = strings.TrimPrefix(v.Name, "company_"), resolution.GroupCompany
	if !v.IsMade() {
		v.Of = func(r resolution.AnswerRow) string {
			c := r.Of.Company(r.I)
			if c == nil {
				return ""
			}
			return c.Record().Fields[v.Company].Text
		}
	}
}
