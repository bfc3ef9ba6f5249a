package pipeline

import (
	"fmt"
	"slices"
	"strings"

	"github.com/leadetl/leadetl/pipeline/columns"
	"github.com/leadetl/leadetl/sinks"
	"github.com/leadetl/leadetl/transforms/search"
)

// chooseColumns settles which input columns are read and what comes out.
func (s *state) chooseColumns() error {
	files := s.Input.Files()
	kept := s.Job.Keep
	if s.Job.KeepAll && len(files) > 0 {
		kept = files[0].Columns
	}
	identifier := IdentifierColumn(s.Job, kept)
	s.read, s.kept = slices.Clone(kept), len(kept)
	s.identifier = s.readColumn(identifier)
	if s.Job.Operation.IsKeyword() {
		s.chooseSearchColumns()
	}
	if err := s.Input.Check(s.read); err != nil {
		return err
	}
	if s.Job.KeepAll {
		for _, f := range files[min(1, len(files)):] {
			for _, c := range f.Columns {
				if !containsFold(kept, c) {
					return &JobError{fmt.Errorf("%s has a column %q that %s has not; name the columns to keep with --keep", f.URI, c, files[0].URI)}
				}
			}
		}
	}
	partition, err := PartitionColumn(s.Job, kept)
	if err != nil {
		return &JobError{err}
	}
	s.layout, err = columns.NewLayout(columns.Settings{
		Operation: s.Job.Operation, Kept: kept, Identifier: identifier, DropIdentifier: s.Job.DropIdentifier,
		HEMTypes: s.Job.HEMTypes, HEMProfiles: s.Job.HEMProfiles, DefaultRegion: s.Job.DefaultRegion,
		Partitions: partitionNames(s.Job.Partitions), PartitionBy: partition, Remote: s.Remote != nil, Suppress: s.Suppression != nil,
	})
	if err != nil {
		return &JobError{err}
	}
	s.table = s.outputTable()
	s.rejectsTable = s.newRejectsTable()
	return nil
}

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

func (s *state) outputTable() sinks.Table {
	return sinks.Table{
		Columns: s.layout.Columns(), Compression: s.Job.Compression,
		Metadata: map[string]string{
			"leadetl.operation":      string(s.Job.Operation),
			"leadetl.schema_version": fmt.Sprint(columns.SchemaVersion),
			"leadetl.rules_version":  fmt.Sprint(columns.RulesVersion),
		},
	}
}

// keywordsColumn is what keyword operations are asked about unless Job.Column
// names another.
const keywordsColumn = "keywords"

// chooseSearchColumns finds the columns that hold a search's fields, by the
// fields' names, in whichever file has one: a filter must not be lost because
// another file goes without it.
func (s *state) chooseSearchColumns() {
	s.fields = map[string]int{keywordsColumn: s.identifier}
	for _, field := range search.Fields {
		if field == keywordsColumn {
			continue
		}
		for _, f := range s.Input.Files() {
			if name := matchFold(f.Columns, field); containsFold(f.Columns, field) {
				s.fields[field] = s.readColumn(name)
				break
			}
		}
	}
}

// readColumn is the place of a column among those that are read, and has it
// read if it is not.
func (s *state) readColumn(name string) int {
	name = matchFold(s.read, name)
	at := slices.Index(s.read, name)
	if at < 0 {
		at = len(s.read)
		s.read = append(s.read, name)
	}
	return at
}
