package changes

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/apache/arrow/go/v17/arrow"

	"github.com/leadetl/leadetl/internal/suggest"
	"github.com/leadetl/leadetl/pipeline/columns"
	"github.com/leadetl/leadetl/pipeline/keys"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/sinks"
	"github.com/leadetl/leadetl/sinks/schema"
)

// ErrIncomparable says that two datasets cannot be compared, or not in this way.
var ErrIncomparable = errors.New("the datasets cannot be compared")

// Settings say how datasets are compared.
type Settings struct {
	By      string   // the column that rows are found by; empty is key
	Compare []string // columns to compare besides the usual ones
	Was     []string // columns whose earlier values are written too
}

// Shape is what two datasets must have in common to be compared.
type Shape struct {
	operation string
	rules     int
	columns   []schema.Column   // with the one whose values are in the paths
	partition string            // the one in the paths; empty without one
	leavesOut bool              // people on suppression lists: a row that is gone may be of one of them
	inputs    map[string]string // names in the input of the columns that are kept from it
	// identifier is the kept column that rows are resolved by; empty if it is not kept.
	identifier string
}

// NewShape is the shape of the datasets of an operation. partition is one more of their columns,
// whose values are in the paths, empty without one. leavesOut says that the job has suppression
// lists. inputs are the names that columns kept from the input have there, and identifier is the one
// there that rows are resolved by.
func NewShape(op resolution.Operation, all []schema.Column, partition string, leavesOut bool, inputs map[string]string, identifier string) Shape {
	s := Shape{operation: string(op), rules: columns.RulesVersion, columns: slices.Clone(all), partition: partition, leavesOut: leavesOut, inputs: inputs}
	for name, input := range inputs {
		if input == identifier {
			s.identifier = name
		}
	}
	if partition != "" {
		behind := 0
		for behind < len(s.columns) && s.isKept(s.columns[behind].Name) {
			behind++
		}
		s.columns = slices.Insert(s.columns, behind, schema.New(partition, arrow.BinaryTypes.String, true))
	}
	return s
}

// isKept reports whether a column is from the input.
func (s Shape) isKept(column string) bool { _, kept := s.inputs[column]; return kept }

// ShapeOf is the shape of a dataset.
func ShapeOf(m *sinks.Manifest) (Shape, error) {
	op := resolution.Operation(m.Operation)
	inputs := m.KeptFrom()
	every := columns.Every(op, nil, m.Own())
	all := make([]schema.Column, len(m.Schema))
	for i, c := range m.Schema {
		all[i] = schema.New(c.Name, arrow.BinaryTypes.String, true)
		if _, kept := inputs[c.Name]; kept {
			continue
		}
		known := slices.IndexFunc(every, func(e schema.Column) bool { return e.Name == c.Name && e.Type == c.Type })
		if known < 0 {
			return Shape{}, fmt.Errorf("%w: this version does not know the column %s of %s", ErrIncomparable, c.Name, m.Operation)
		}
		all[i] = every[known]
	}
	s := NewShape(op, all, m.PartitionBy, m.LeavesOut(), inputs, m.Identifier())
	s.rules = m.RulesVersion
	return s, nil
}

// Comparable refuses an earlier dataset that cannot be compared with one of a shape, and names
// what differs.
func Comparable(before *sinks.Manifest, after Shape) error {
	if before.Operation != after.operation {
		return fmt.Errorf("%w: one is of %s, the other of %s", ErrIncomparable, before.Operation, after.operation)
	}
	if before.RulesVersion != after.rules {
		return fmt.Errorf("%w: its rules have version %d, those of the new one %d, which give other values for the same answers; make the earlier one again, or begin without it", ErrIncomparable, before.RulesVersion, after.rules)
	}
	was, err := ShapeOf(before)
	if err != nil {
		return err
	}
	var differences []string
	same := "--select, --hem-types, --hem-profiles and phone_profiles"
	for _, c := range []struct {
		word       string
		some, less Shape
	}{{"only the earlier one has", was, after}, {"only the new one has", after, was}} {
		var names []string
		for _, column := range c.some.columns {
			if c.less.place(column.Name) < 0 {
				names = append(names, column.Name)
			}
		}
		if len(names) > 0 {
			differences = append(differences, c.word+" "+strings.Join(names, ", "))
		}
		if slices.ContainsFunc(names, columns.IsOrigin) || slices.Contains(names, columns.SkippedColumn) {
			same += ", and of resolvers the same want, else and min_match"
		}
	}
	if len(differences) > 0 {
		return fmt.Errorf("%w: %s; give both runs the same %s", ErrIncomparable, strings.Join(differences, "; "), same)
	}
	return nil
}

// place is the place of a column by its name; -1 without one.
func (s Shape) place(name string) int {
	return slices.IndexFunc(s.columns, func(c schema.Column) bool { return c.Name == name })
}

// keyColumn is the column that rows are found by, unless another one is named.
const keyColumn = "key"

// Column is the column that rows are found by.
func (s Settings) Column() string {
	if s.By == "" {
		return keyColumn
	}
	return s.By
}

// NotCompared are the columns of every operation that say where a row is from, who answered,
// when, and for how much. They are compared only if they are named, as are those of columns.IsOrigin.
var NotCompared = []string{"source", "source_row", "source_part", "resolution_id", "resolved_at", "answered_by", "credits", columns.SkippedColumn}

// Resolve returns settings with the names that columns have in the datasets: they may be given
// as they are in the input. It refuses settings that a shape contradicts.
func (s Shape) Resolve(with Settings) (Settings, error) {
	if with.By == "" && s.place(keyColumn) < 0 {
		return with, fmt.Errorf("%w: they have no column key; name another column that identifies a row: changes_by, or --by of leadetl changes", ErrIncomparable)
	}
	by, err := s.find(with.Column())
	if err != nil {
		return with, err
	}
	if with.By = by; by == keyColumn {
		with.By = ""
	}
	if c := s.columns[s.place(by)]; c.Type != "STRING" {
		return with, fmt.Errorf("%w: rows are found by a column of text, and %s is %s", ErrIncomparable, by, c.Type)
	}
	for _, list := range []*[]string{&with.Compare, &with.Was} {
		found := slices.Clone(*list)
		for i, name := range found {
			if found[i], err = s.find(name); err != nil {
				return with, err
			}
		}
		*list = found
	}
	return with, s.check(with)
}

// find returns the name of a column that is called name here or in the input, in any case.
func (s Shape) find(name string) (string, error) {
	here, there := make([]string, len(s.columns)), make([]string, len(s.columns))
	for i, c := range s.columns {
		here[i], there[i] = c.Name, cmp.Or(s.inputs[c.Name], c.Name)
	}
	for _, same := range []func(a, b string) bool{func(a, b string) bool { return a == b }, strings.EqualFold} {
		for _, names := range [][]string{here, there} {
			if i := slices.IndexFunc(names, func(n string) bool { return same(n, name) }); i >= 0 {
				return here[i], nil
			}
		}
	}
	return "", fmt.Errorf("%w: they have no column %q%s", ErrIncomparable, name, suggest.Name(name, append(here, there...)))
}

// check refuses columns that would show a suppressed person, and names that the changes need.
func (s Shape) check(with Settings) error {
	if i := slices.IndexFunc(with.Was, identifies); i >= 0 && s.leavesOut {
		return fmt.Errorf("%w: an earlier %s may be that of a person on a suppression list; leave it out of changes_was, or of --was of leadetl changes", ErrIncomparable, with.Was[i])
	}
	for _, c := range s.added(with) {
		taken := slices.IndexFunc(s.columns, func(own schema.Column) bool { return strings.EqualFold(own.Name, c.Name) })
		if taken >= 0 {
			return fmt.Errorf("%w: they have a column %q, and the changes need that name; give it another one with --rename", ErrIncomparable, s.columns[taken].Name)
		}
	}
	return nil
}

// identifies reports whether a column has what suppression lists have, or follows from it.
func identifies(column string) bool {
	_, known := keys.KindOfColumn(column)
	return known || column == keyColumn || keys.KindOfAnswer(column) != ""
}

// compared are the places of the compared columns, in the order of their names: it must not
// depend on the order in the files. more are those that follow from the key: within one dataset
// they tell no rows apart. asks says that one of the jobs had reference data or a service, which
// know the address behind a digest.
func (s Shape) compared(with Settings, asks bool) (places, more []int) {
	hashesKey := resolution.Operation(s.operation).Identifier() == resolution.Email && with.Column() == keyColumn
	for i, c := range s.columns {
		switch {
		case hashesKey && !s.isKept(c.Name) && strings.HasPrefix(c.Name, "hem_"):
			if asks { // else they are the same where the key is: half of the time
				more = append(more, i)
			}
		case s.isKept(c.Name) || c.Name == with.Column() || !slices.Contains(NotCompared, c.Name) && !columns.IsOrigin(c.Name) || slices.Contains(with.Compare, c.Name):
			places = append(places, i)
		}
	}
	byName := func(a, b int) int { return strings.Compare(s.columns[a].Name, s.columns[b].Name) }
	slices.SortFunc(places, byName)
	slices.SortFunc(more, byName)
	return places, more
}

// IsAnswer reports whether a column is of the operation's own block, or names who one of these is
// from. Where it is empty in a row that failed, the value of the earlier row is still the best one known.
func (s Shape) IsAnswer(i int) bool {
	name := s.columns[i].Name
	return !s.isKept(name) && name != keyColumn && name != "outcome" && name != "reason" && !slices.Contains(NotCompared, name)
}

// The values of the column change.
const (
	added   = "added"
	changed = "changed"
	removed = "removed"
	noKey   = "without_key"
)

// added are the columns of changes that follow those of the dataset.
func (s Shape) added(with Settings) []schema.Column {
	text := func(name string, nullable bool) schema.Column {
		return schema.New(name, arrow.BinaryTypes.String, nullable)
	}
	change, since := text("change", false), text("since", true)
	change.Repeats, since.Repeats = true, true
	hash := func(name string) schema.Column { c := text(name, true); c.Random = true; return c }
	all := []schema.Column{
		describe(change, "added, changed or removed; without_key: only one dataset has the row, and nothing tells which row it was", ""),
		describe(schema.New("changed", arrow.ListOfField(arrow.Field{Name: "element", Type: arrow.BinaryTypes.String, Nullable: true}), true), "names of the columns that differ", "only one dataset has the row"),
	}
	for _, name := range with.Was {
		was := s.columns[s.place(name)]
		was.Name, was.Nullable = "was_"+name, true
		all = append(all, describe(was, "value of "+name+" in the earlier dataset", "the row is not changed, or there was none"))
	}
	return append(all,
		describe(since, "job_id of the earlier dataset", "there is none"),
		describe(hash("key_hash"), "hex SHA-256 of since, a colon and the key", "the key is shown, or there is none"),
		describe(hash("row_hash"), "tells rows with one key apart", "the new dataset does not have the row"),
		describe(hash("was_row_hash"), "row_hash of the row in the earlier dataset", "it did not have the row"))
}

func describe(c schema.Column, text, null string) schema.Column {
	c.Meaning = schema.Meaning{Text: text, Null: null, From: "docs/reference/columns.md"}
	return c
}

// Columns are the columns of the changes of datasets of a shape. Check comes first.
func (s Shape) Columns(with Settings) []schema.Column {
	all := slices.Clone(s.columns)
	for i := range all {
		all[i].Nullable = true // a removed row may be without them
	}
	return append(all, s.added(with)...)
}

// Key is the place among Columns of the one that rows are found by.
func (s Shape) Key(with Settings) int { return s.place(with.Column()) }

// Width is the number of the columns of the dataset, which come first among Columns.
func (s Shape) Width() int { return len(s.columns) }
