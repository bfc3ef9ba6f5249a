package pipeline

import (
	"fmt"
	"slices"
	"strings"

	"github.com/leadetl/leadetl/pipeline/columns"
	"github.com/leadetl/leadetl/sinks"
	"github.com/leadetl/leadetl/sources"
	"github.com/leadetl/leadetl/transforms/search"
)

// inputColumns says which input columns are read and what comes out.
type inputColumns struct {
	read       []string // columns to read, the kept ones first
	kept       int      // how many of them are kept
	identifier int      // which of them is resolved
	// fields are those that hold the fields of searches, by field.
	fields  map[string]int
	layout  *columns.Layout
	table   sinks.Table // of the parts
	rejects sinks.Table
}

func chooseColumns(r *Run) (c inputColumns, err error) {
	files, job := r.Input.Files(), r.Job
	kept := job.Keep
	if job.KeepAll && len(files) > 0 {
		kept = files[0].Columns
	}
	identifier := IdentifierColumn(job, kept)
	c.read, c.kept = slices.Clone(kept), len(kept)
	c.identifier = c.place(identifier)
	if job.Operation.IsKeyword() {
		c.addSearchFields(files)
	}
	if err := r.Input.Check(c.read); err != nil {
		return c, err
	}
	if job.KeepAll {
		if err := checkSameColumns(files, kept); err != nil {
			return c, err
		}
	}
	partition, err := PartitionColumn(job, kept)
	if err != nil {
		return c, &JobError{err}
	}
	c.layout, err = columns.NewLayout(columns.Settings{
		Operation: job.Operation, Kept: kept, Identifier: identifier, DropIdentifier: job.DropIdentifier,
		HEMTypes: job.HEMTypes, HEMProfiles: job.HEMProfiles, DefaultRegion: job.DefaultRegion,
		Partitions: partitionNames(job.Partitions), PartitionBy: partition, Remote: r.Remote != nil, Suppress: r.Suppression != nil,
	})
	if err != nil {
		return c, &JobError{err}
	}
	c.table = partTable(job, c.layout)
	c.rejects = rejectsTable(job, r.Suppression != nil)
	return c, nil
}

// checkSameColumns refuses files with columns that the first one, whose columns
// are kept, lacks.
func checkSameColumns(files []sources.File, kept []string) error {
	for _, f := range files[min(1, len(files)):] {
		for _, c := range f.Columns {
			if !containsFold(kept, c) {
				return &JobError{fmt.Errorf("%s has a column %q that %s has not; name the columns to keep with --keep", f.URI, c, files[0].URI)}
			}
		}
	}
	return nil
}

// place is the place of a column among those that are read. It is added if it
// is not among them.
func (c *inputColumns) place(name string) int {
	name = matchFold(c.read, name)
	at := slices.Index(c.read, name)
	if at < 0 {
		at = len(c.read)
		c.read = append(c.read, name)
	}
	return at
}

// addSearchFields finds the columns that hold the fields of searches, by the
// fields' names, in whichever file has one: a filter must not be lost because
// another file goes without it.
func (c *inputColumns) addSearchFields(files []sources.File) {
	c.fields = map[string]int{keywordsColumn: c.identifier}
	for _, field := range search.Fields {
		if field == keywordsColumn {
			continue
		}
		for _, f := range files {
			if containsFold(f.Columns, field) {
				c.fields[field] = c.place(matchFold(f.Columns, field))
				break
			}
		}
	}
}

// keywordsColumn is what keyword operations are asked about unless Job.Column
// names another.
const keywordsColumn = "keywords"

// IdentifierColumn is the input column that a job's rows are resolved by, as it
// is spelled among those that are kept.
func IdentifierColumn(j Job, kept []string) string {
	identifier := j.Column
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

func partTable(j Job, layout *columns.Layout) sinks.Table {
	return sinks.Table{
		Columns: layout.Columns(), Compression: j.Compression,
		Metadata: map[string]string{
			"leadetl.operation":      string(j.Operation),
			"leadetl.schema_version": fmt.Sprint(columns.SchemaVersion),
			"leadetl.rules_version":  fmt.Sprint(columns.RulesVersion),
		},
	}
}
