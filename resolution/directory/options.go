package directory

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/leadetl/leadetl/resolution/directory/imports"
	"github.com/leadetl/leadetl/transforms/profile"
)

// Options are the settings of an import. Start from DefaultOptions.
type Options = imports.Options

// calledIn returns the names of columns in files of a kind.
func calledIn(k Kind, called map[string]string) map[string]string {
	of := maps.Clone(called)
	maps.DeleteFunc(of, func(column, _ string) bool { return !slices.Contains(ColumnsOf(k), column) })
	return of
}

// checkCalled refuses names for columns that none of the files can have, and kinds of words
// without a file of ranges.
func checkCalled(o Options, files Files) error {
	var errs []error
	for _, column := range slices.Sorted(maps.Keys(o.Called)) {
		if !slices.ContainsFunc(Kinds, func(k Kind) bool { return *files.Of(k) != "" && slices.Contains(ColumnsOf(k), column) }) {
			errs = append(errs, fmt.Errorf("column %s is in none of the kinds that are imported", column))
		}
	}
	if len(o.OrgTypes) > 0 && files.IPRanges == "" {
		errs = append(errs, errors.New("words of org_type are given a kind, but no IP ranges are imported"))
	}
	return errors.Join(errs...)
}

// DefaultFields are those of known databases.
func DefaultFields() imports.Fields {
	return imports.Fields{
		Name:   []string{"name", "traits.organization", "organization"},
		Domain: []string{"domain", "traits.domain"},
		Type:   []string{"type", "traits.user_type", "as_type", "user_type", "usage_type", "org_type", "company.type", "connection_type"},
	}
}

// DefaultOptions are the settings of the command line.
func DefaultOptions() Options {
	return Options{
		MaxBadLines:   0.01,
		DefaultRegion: "US",
		NetworkHosts:  profile.DefaultRules().Hosts,
		Fields:        DefaultFields(),
	}
}
