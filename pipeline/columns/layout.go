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
)

const (
	// SchemaVersion grows when a column is added.
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
	// phone numbers lose what was once dialled inside their country.
	RulesVersion = 7
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
	// Columns are the columns to write behind the kept ones, in their order; nil is all,
	// and Flat alone all but lists. outcome and reason come last if they are not named.
	Columns []string
	// HEMTypes are the digests of profile plain to write; nil means all.
	HEMTypes []string
	// HEMProfiles are the profiles written beside plain; email_to_hem only.
	HEMProfiles []email.Profile
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
	kept     []int    // positions in Settings.Kept that are written
	names    []string // of all in Settings.Kept; "" for one that is left out
	usual    []string // the same without Snake and Renames
	own      []int    // the columns after the kept ones, by their positions in the blocks
	wanted   []bool   // which columns of the blocks are written
	unusual  bool     // they are others, or in another order, than without Settings.Columns
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
	l, all := &Layout{settings: s}, slices.Concat(fixedColumns(s.Parts), blockColumns(s), originColumns(s))
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
	for i, name := range s.Kept {
		switch {
		case l.names[i] == "":
		case s.PartitionBy != "" && name == s.PartitionBy:
			l.partition, l.partitionName = i, l.names[i]
		default:
			l.kept = append(l.kept, i)
			l.columns = append(l.columns, schema.Text(l.names[i]))
		}
	}
	if s.PartitionBy != "" && l.partitionName == "" {
		return nil, fmt.Errorf("cannot partition rows by %q: it is not among the kept input columns", s.PartitionBy)
	}
	if l.own, err = s.chosen(all); err != nil {
		return nil, err
	}
	l.unusual = !slices.Equal(l.own, s.usual(all))
	l.wanted = make([]bool, len(all))
	for _, i := range l.own {
		l.wanted[i] = true
		l.columns = append(l.columns, all[i])
	}
	l.companies.wanted = l.writes
	l.unread = unread(func(column string) bool {
		return l.writes(column) || s.Suppress && slices.Contains(identifying, column)
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
func (l *Layout) Own() []schema.Column { return l.columns[len(l.kept):] }

// writes reports whether a column of Own has the name.
func (l *Layout) writes(name string) bool {
	return slices.ContainsFunc(l.Own(), func(c schema.Column) bool { return c.Name == name })
}

// Chosen are the names of Own if Settings.Columns decides on them; nil if it changes nothing.
func (l *Layout) Chosen() (names []string) {
	if l.unusual {
		for _, c := range l.Own() {
			names = append(names, c.Name)
		}
	}
	return names
}

// Unread are the columns of answers that no written column is made from, and that nobody is
// suppressed by.
func (l *Layout) Unread() resolution.Unread { return l.unread }

// Partition is the name of the column that is in the path of each file; "" without one.
func (l *Layout) Partition() string { return l.partitionName }

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
