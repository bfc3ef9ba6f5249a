package job

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/leadetl/leadetl/pipeline/columns"
	"github.com/leadetl/leadetl/pipeline/keys"
	"github.com/leadetl/leadetl/sinks"
	"github.com/leadetl/leadetl/sources"
	"github.com/leadetl/leadetl/transforms/search"
)

// Columns says which input columns are read, how rows are made of them, and what comes out.
type Columns struct {
	Read       []string // columns to read, the kept ones first
	Kept       int      // how many of them are kept
	Identifier int      // which of them is resolved
	// Where are the columns of Job.Where, in its order.
	Where []int
	// From are the columns of Job.From, by its names. Nameless says that the input has no column with identifiers,
	// and Identifier is one of these.
	From     map[string]int
	Nameless bool
	// SuppressedID is the column of Job.SuppressedID; -1 without one.
	SuppressedID int
	// Fields are those that hold the fields of searches, by field.
	Fields map[string]int
	Layout *columns.Layout
	// Table is that of the parts, Rejects that of the malformed lines, Suppressed that of the ids of
	// suppressed rows, Asked that of what each of several resolvers says.
	Table, Rejects, Suppressed, Asked sinks.Table

	job Job
}

// Source is what the columns of a dataset depend on beside job and input.
type Source struct {
	// Remote, Named, Resolver, Want and NotesSkipped are those of columns.Settings.
	Remote       bool
	Named        bool
	Resolver     string
	Want         []string
	NotesSkipped bool
	Suppress     bool // people on lists are left out
}

// maxKept bounds the columns of the input that are kept: each takes memory in every part. JSON
// whose keys are data has a column for each of them.
const maxKept = 10_000

// ChooseColumns decides on the columns of a job with this input.
func ChooseColumns(j Job, input *sources.List, from Source) (c Columns, err error) {
	c.job = j
	files := input.Files()
	settings := j.settings(from)
	kept := settings.KeptOf(columnsOf(files, columns.SelectsInput(j.Select)))
	if len(kept) > maxKept {
		return c, &Error{fmt.Errorf("%s has %d columns, and a dataset keeps at most %d; name the columns that you want with --select", files[0].URI, len(kept), maxKept)}
	}
	c.Read, c.Kept = slices.Clone(kept), len(kept)
	for _, name := range slices.Sorted(maps.Keys(j.From)) {
		if c.From == nil {
			c.From = map[string]int{}
		}
		c.From[name] = c.place(j.From[name])
	}
	if identifier := identifierColumn(j, kept); c.From == nil || j.IDColumn != "" || slices.ContainsFunc(files, func(f sources.File) bool { return containsFold(f.Columns, identifier) }) {
		c.Identifier = c.place(identifier)
	} else {
		c.Identifier, c.Nameless = slices.Min(slices.Collect(maps.Values(c.From))), true
	}
	if j.Operation.IsKeyword() {
		c.addSearchFields(files)
	}
	if c.SuppressedID = -1; j.SuppressedID != "" {
		c.SuppressedID = c.place(j.SuppressedID)
		c.Suppressed = sinks.Table{Columns: columns.SuppressedColumns(), Compression: j.Compression}
	}
	for _, condition := range j.Where {
		c.Where = append(c.Where, c.place(condition.Column))
	}
	identifierFirst := slices.Concat(c.Read[c.Identifier:c.Identifier+1], c.Read) // for what an error names
	if err := input.Check(identifierFirst); err != nil {
		return c, err
	}
	if columns.SelectsInput(j.Select) {
		if err := checkSameColumns(files, kept); err != nil {
			return c, err
		}
	}
	if c.Layout, err = j.layout(settings, kept); err != nil {
		return c, err
	}
	c.Table = sinks.Table{
		Columns: c.Layout.Columns(), Compression: j.Compression,
		Metadata: map[string]string{
			"leadetl.operation":      string(j.Operation),
			"leadetl.schema_version": fmt.Sprint(columns.SchemaVersion),
			"leadetl.rules_version":  fmt.Sprint(columns.RulesVersion),
		},
	}
	c.Rejects = rejectsTable(j, from.Suppress)
	c.Asked = sinks.Table{Columns: columns.AskedColumns(), Compression: j.Compression}
	if j.DropIdentifier {
		c.Asked.Columns = c.Asked.Columns[1:]
	}
	return c, nil
}

// columnsOf are the columns of input files: of the first, or of any. They are not known if they may
// be data.
func columnsOf(files []sources.File, first bool) (all []string) {
	for i, f := range files {
		switch {
		case first:
			return f.Columns
		case f.NamesMayBeData():
			return nil
		case i == 0:
			all = slices.Clone(f.Columns)
		default:
			all = append(all, slices.DeleteFunc(slices.Clone(f.Columns), func(c string) bool { return containsFold(all, c) })...)
		}
	}
	return all
}

// Layout is how the answers of a job become columns. The columns of its input are nil if they are not
// known. Settings that contradict each other are an Error.
func (j Job) Layout(input []string, from Source) (*columns.Layout, error) {
	settings := j.settings(from)
	return j.layout(settings, settings.KeptOf(input))
}

func (j Job) settings(from Source) columns.Settings {
	return columns.Settings{
		Operation: j.Operation, DropIdentifier: j.DropIdentifier, Parts: j.Multiple == keys.Each, Snake: j.SnakeNames, Renames: j.Renames, Select: j.Select,
		HEMTypes: j.HEMTypes, HEMProfiles: j.HEMProfiles, PhoneProfiles: j.PhoneProfiles, DefaultRegion: j.DefaultRegion,
		Want: from.Want, NotesSkipped: from.NotesSkipped, Remote: from.Remote, Named: from.Named, Resolver: from.Resolver, Suppress: from.Suppress,
	}
}

func (j Job) layout(settings columns.Settings, kept []string) (*columns.Layout, error) {
	partition, err := partitionColumn(j, kept)
	if err != nil {
		return nil, &Error{err}
	}
	settings.Kept, settings.Identifier, settings.PartitionBy = kept, identifierColumn(j, kept), partition
	for _, p := range j.Partitions {
		settings.Partitions = append(settings.Partitions, p.Name)
	}
	layout, err := columns.NewLayout(settings)
	if err == nil && partition != "" {
		err = checkPartitionName(partition, layout.Partition())
	}
	if err != nil {
		return nil, &Error{err}
	}
	return layout, nil
}

// rejectsTable is the schema of _rejects: where a line is, why it is malformed,
// and the line itself. The line is left out when identifiers are dropped, and
// when people are suppressed: it is unknown whether it holds one of them.
func rejectsTable(j Job, suppress bool) sinks.Table {
	all := columns.RejectsColumns()
	if j.DropIdentifier || suppress {
		all = all[:len(all)-1]
	}
	return sinks.Table{Columns: all, Compression: j.Compression}
}

// checkSameColumns refuses files with columns that the first one, whose columns
// are kept, lacks.
func checkSameColumns(files []sources.File, kept []string) error {
	for _, f := range files[min(1, len(files)):] {
		for _, c := range f.Columns {
			if !containsFold(kept, c) {
				column := strconv.Quote(c)
				if f.NamesMayBeData() {
					column = "(its name may be data)"
				}
				return &Error{fmt.Errorf("%s has a column %s that %s has not; name the columns that you want with --select", f.URI, column, files[0].URI)}
			}
		}
	}
	return nil
}

// place is the place of a column among those that are read. It is added if it
// is not among them.
func (c *Columns) place(name string) int {
	name = matchFold(c.Read, name)
	at := slices.Index(c.Read, name)
	if at < 0 {
		at = len(c.Read)
		c.Read = append(c.Read, name)
	}
	return at
}

// addSearchFields finds the columns that hold the fields of searches, by the
// fields' names, in whichever file has one: a filter must not be lost because
// another file goes without it.
func (c *Columns) addSearchFields(files []sources.File) {
	c.Fields = map[string]int{keywordsColumn: c.Identifier}
	for _, field := range search.Fields {
		if field == keywordsColumn {
			continue
		}
		for _, f := range files {
			if containsFold(f.Columns, field) {
				c.Fields[field] = c.place(matchFold(f.Columns, field))
				break
			}
		}
	}
}

// keywordsColumn is what keyword operations are asked about unless Job.IDColumn
// names another.
const keywordsColumn = "keywords"

// IdentifierColumn is the name of the column with the identifiers, or the keywords of searches.
func (j Job) IdentifierColumn() string { return identifierColumn(j, nil) }

// identifierColumn is the input column that a job's rows are resolved by, as it
// is spelled among those that are kept.
func identifierColumn(j Job, kept []string) string {
	identifier := j.IDColumn
	switch {
	case identifier != "":
	case j.Operation.IsKeyword():
		identifier = keywordsColumn
	default:
		identifier = string(j.Operation.Identifier())
	}
	return matchFold(kept, identifier)
}

func containsFold(names []string, name string) bool {
	return slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, name) })
}

// matchFold is name as it is spelled in names: exactly, else in any case.
func matchFold(names []string, name string) string {
	if slices.Contains(names, name) {
		return name
	}
	if i := slices.IndexFunc(names, func(n string) bool { return strings.EqualFold(n, name) }); i >= 0 {
		return names[i]
	}
	return name
}
