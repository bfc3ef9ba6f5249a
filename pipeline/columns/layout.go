// Package columns turns answers into Arrow columns. It defines the output schema of
// every operation, and how a lead fills it.
//
// A run has one Layout. Each goroutine that builds records has its own Builder.
package columns

import (
	"fmt"
	"slices"
	"strings"

	"github.com/apache/arrow/go/v17/arrow"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/values"
	"github.com/leadetl/leadetl/sinks/schema"
	"github.com/leadetl/leadetl/transforms/email"
	"github.com/leadetl/leadetl/transforms/phone"
)

const (
	// SchemaVersion is that of the columns of all operations.
	SchemaVersion = values.SchemaVersion
	// RulesVersion grows when a changed rule gives other values for the same input
	// and answer, or the same values in other bytes. 2: phone numbers, full names and
	// streets may have a dictionary. 3: a row group ends by the bytes it takes encoded, and
	// dictionaries may be larger. 4: google drops plus tags, more addresses are taken
	// and fewer damaged ones, profile addresses keep their query outside the network, phone
	// numbers lose what is dialled inside their country, revenue has bounds in US dollars alone,
	// and values of services that are none are left out. 5: a row group ends by its rows.
	// 6: a cell may have a name, mailto:, for= or separators around its identifier.
	// 7: a list with one value is that value, the mark of a spreadsheet is no part of one, and
	// phone numbers lose what was once dialled inside their country. 8: all phones of a service's
	// answer are brought into E.164.
	RulesVersion = 8
)

// HEMTypes are the digest types of profile plain, in column order.
var HEMTypes = []string{"md5", "sha1", "sha256"}

// Settings decide on the columns.
type Settings struct {
	Operation resolution.Operation
	// Kept names the input columns carried to the output, in their order.
	Kept []string
	// Identifier is the input column that rows are resolved by.
	Identifier string
	// Snake writes the names of kept columns in lower case with underscores, and Renames
	// gives some of them other names.
	Snake   bool
	Renames []Rename
	// Parts says that a row of the input may have several rows, with a source_part each.
	Parts bool
	// DropIdentifier leaves out the identifier: its column in any spelling, key,
	// and network_url or matched_keywords if rows are resolved by them.
	DropIdentifier bool
	// Suppress says that people are suppressed. Identifiers that cannot be read, and
	// so cannot be compared with the lists, are left out too.
	Suppress bool
	// Select names the columns to write, in their order, of Kept and others alike, and
	// schema.Groups of them; nil is schema.All. outcome and reason come last if they are not named.
	Select []string
	// HEMTypes are the digests of profile plain to write; nil means all.
	HEMTypes []string
	// HEMProfiles are the profiles written beside plain; email_to_hem only.
	HEMProfiles []email.Profile
	// PhoneProfiles are the forms of the first number whose hashes are written.
	PhoneProfiles []phone.Form
	// DefaultRegion is the region (ISO 3166, "US") of national phone numbers.
	DefaultRegion string
	// Partitions names the columns that are in the dataset's path.
	Partitions []string
	// PartitionBy is the column of Kept that is in the path of each file and not in
	// the files; "" without one.
	PartitionBy string
	// Want are the columns for whose sake several resolvers are asked. Each has another column with
	// the resolver that its value is from.
	Want []string
	// NotesSkipped adds the column that says which resolvers were passed over.
	NotesSkipped bool
	// Remote says that a service answers. Its answer to email_to_hem lists all
	// hashes that it knows.
	Remote bool
	// Named says that rows name their resolvers. Else these are all Resolver; "" is a service.
	Named    bool
	Resolver string
}

// Layout is the output schema of a run.
type Layout struct {
	settings Settings
	columns  []schema.Column
	schema   *arrow.Schema
	places   []int    // of the columns: in Settings.Kept, and behind these in the blocks
	names    []string // of all in Settings.Kept; "" for one that is left out
	usual    []string // the same without Snake and Renames
	wanted   []bool   // which columns of the blocks are written
	unusual  bool     // they are others, or in another order, than all
	unread   resolution.Unread

	companies     companyTables
	texts         textTables // of people
	partition     int        // position in Settings.Kept of the one that is in paths
	partitionName string     // its name there; empty without one
}

// NewLayout decides on the columns. A kept column with the name of a fixed column or a
// partition gets the prefix in_, in any case. Two columns that still have one name are an
// error, as is a partition with a fixed name.
func NewLayout(s Settings) (*Layout, error) {
	if s.HEMTypes == nil {
		s.HEMTypes = HEMTypes
	}
	l, all := &Layout{settings: s}, s.ownColumns()
	taken := map[string]bool{}
	for _, c := range all { // also those that are not written, so that names do not depend on them
		taken[strings.ToLower(c.Name)] = true
	}
	for _, name := range s.Partitions {
		folded := strings.ToLower(name)
		if taken[folded] {
			return nil, fmt.Errorf("partition %q has the name of a column; choose another", name)
		}
		taken[folded] = true
	}
	var err error
	if l.names, l.usual, err = s.names(taken); err != nil {
		return nil, err
	}
	if l.partition = -1; s.PartitionBy != "" {
		l.partition = slices.Index(s.Kept, s.PartitionBy)
	}
	if l.partition >= 0 {
		l.partitionName = l.names[l.partition]
	}
	if s.PartitionBy != "" && l.partitionName == "" {
		return nil, fmt.Errorf("cannot partition rows by %q: it is not among the kept input columns", s.PartitionBy)
	}
	if l.places, err = s.selected(all, l.names); err != nil {
		return nil, err
	}
	s.Select = nil
	usual, _ := s.selected(all, l.names)
	l.unusual = !slices.Equal(l.places, usual)
	l.places = slices.DeleteFunc(l.places, func(i int) bool { return i == l.partition })
	l.wanted = make([]bool, len(all))
	for _, i := range l.places {
		if i < len(s.Kept) {
			l.columns = append(l.columns, schema.Text(l.names[i]))
			continue
		}
		l.wanted[i-len(s.Kept)] = true
		l.columns = append(l.columns, all[i-len(s.Kept)])
	}
	l.companies.wanted = l.Writes
	l.unread = unread(func(column string) bool {
		return l.Writes(column) || s.Suppress && slices.Contains(identifying, column)
	})
	l.columns = Describe(s.Operation, l.columns, l.Inputs())
	l.schema = schema.Arrow(l.columns)
	return l, nil
}

// Schema is the Arrow schema of the records of a Builder.
func (l *Layout) Schema() *arrow.Schema { return l.schema }

// Columns are the columns of the output, in order.
func (l *Layout) Columns() []schema.Column { return l.columns }

// Own are the columns that are not kept from the input.
func (l *Layout) Own() (own []schema.Column) {
	for i, c := range l.columns {
		if l.places[i] >= len(l.names) {
			own = append(own, c)
		}
	}
	return own
}

// Writes reports whether a column of Own has the name.
func (l *Layout) Writes(name string) bool {
	return slices.ContainsFunc(l.Own(), func(c schema.Column) bool { return c.Name == name })
}

// Selected are the names of the columns if they are others, or in another order, than all; else nil.
func (l *Layout) Selected() []string {
	if !l.unusual {
		return nil
	}
	return namesOf(l.columns)
}

// Unread are the columns of answers that no written column is made from, and that nobody is
// suppressed by.
func (l *Layout) Unread() resolution.Unread { return l.unread }

// Partition is the name of the column that is in the path of each file; "" without one.
func (l *Layout) Partition() string { return l.partitionName }

// Kept are the input columns that are carried over, in order.
func (l *Layout) Kept() (kept []string) {
	for i, name := range l.names {
		if name != "" {
			kept = append(kept, l.settings.Kept[i])
		}
	}
	return kept
}

// Inputs are the input columns that are carried over, by their names in the output. That
// of Partition is among them.
func (l *Layout) Inputs() map[string]string {
	inputs := map[string]string{}
	for i, name := range l.names {
		if name != "" {
			inputs[name] = l.settings.Kept[i]
		}
	}
	return inputs
}

// Renamed are those of Inputs whose names Settings.Snake or Renames has changed; nil
// without any.
func (l *Layout) Renamed() map[string]string {
	var renamed map[string]string
	for i, name := range l.names {
		if name != l.usual[i] {
			if renamed == nil {
				renamed = map[string]string{}
			}
			renamed[name] = l.settings.Kept[i]
		}
	}
	return renamed
}
