package directory

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/leadetl/leadetl/resolution/directory/companies"
	"github.com/leadetl/leadetl/resolution/directory/imports"
	"github.com/leadetl/leadetl/resolution/directory/people"
	"github.com/leadetl/leadetl/resolution/directory/ranges"
	"github.com/leadetl/leadetl/resolution/directory/searches"
	"github.com/leadetl/leadetl/resolution/directory/visits"
	"github.com/leadetl/leadetl/transforms/orgtype"
	"github.com/leadetl/leadetl/transforms/profile"
)

// Files names the files to import, by kind, each as sources.Open takes it: a
// path, a glob, s3://, "-". Empty ones are left as they are.
type Files struct {
	People, Companies, IPRanges, Searches, Visits string
}

func (f Files) path(k Kind) string {
	switch k {
	case People:
		return f.People
	case Companies:
		return f.Companies
	case IPRanges:
		return f.IPRanges
	case Searches:
		return f.Searches
	case Visits:
		return f.Visits
	}
	return ""
}

// Options are the settings of an import. Start from DefaultOptions.
type Options struct {
	// MaxBadLines is the share of bad lines, from 0 to 1, up to which a kind is
	// imported without them.
	MaxBadLines float64
	// DefaultRegion is the region (ISO 3166 alpha-2) of phone numbers without a
	// country code.
	DefaultRegion string
	// NetworkHosts are the hosts of profile addresses (profile.Rules).
	NetworkHosts []string
	// Fields are the places of fields in an MMDB.
	Fields ranges.Fields
	// OrgTypes has kinds of words of org_type (orgtype.Kinds). They go before those that are known.
	OrgTypes map[string]string
	// Called has the names of columns in the files that differ from ours.
	Called map[string]string
	// Open opens the files of a URI; nil opens files of this machine.
	Open imports.OpenFiles
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

func (o Options) now() time.Time {
	if o.Now == nil {
		return time.Now()
	}
	return o.Now()
}

// ColumnsOf are the columns that files of a kind may have.
func ColumnsOf(k Kind) []string {
	switch k {
	case People:
		return people.Columns.Names
	case Companies:
		return companies.Columns.Names
	case IPRanges:
		return ranges.Columns.Names
	case Searches:
		return searches.Columns.Names
	case Visits:
		return visits.Columns.Names
	}
	return nil
}

// calledIn returns the names of columns in files of a kind.
func (o Options) calledIn(k Kind) map[string]string {
	called := maps.Clone(o.Called)
	maps.DeleteFunc(called, func(column, _ string) bool { return !slices.Contains(ColumnsOf(k), column) })
	return called
}

// checkCalled refuses names for columns that none of the files can have, and kinds of words
// without a file of ranges.
func (o Options) checkCalled(files Files) error {
	var errs []error
	for _, column := range slices.Sorted(maps.Keys(o.Called)) {
		if !slices.ContainsFunc(Kinds, func(k Kind) bool { return files.path(k) != "" && slices.Contains(ColumnsOf(k), column) }) {
			errs = append(errs, fmt.Errorf("column %s is in none of the kinds that are imported", column))
		}
	}
	if len(o.OrgTypes) > 0 && files.IPRanges == "" {
		errs = append(errs, errors.New("words of org_type are given a kind, but no IP ranges are imported"))
	}
	return errors.Join(errs...)
}

func (o Options) settings() imports.Settings {
	return imports.Settings{MaxBadLines: o.MaxBadLines, Region: o.DefaultRegion, Rules: profile.Rules{Hosts: o.NetworkHosts}, Open: o.Open}
}

// DefaultFields are those of known databases.
func DefaultFields() ranges.Fields {
	return ranges.Fields{
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

// Validate joins all problems of o.
func (o Options) Validate() error {
	var errs []error
	if !(o.MaxBadLines >= 0 && o.MaxBadLines <= 1) {
		errs = append(errs, fmt.Errorf("max bad lines is %v; it is a share from 0 to 1", o.MaxBadLines))
	}
	if len(o.DefaultRegion) != 2 {
		errs = append(errs, fmt.Errorf("default region is %q; it is two letters", o.DefaultRegion))
	}
	if len(o.Fields.Name)+len(o.Fields.Domain) == 0 {
		errs = append(errs, errors.New("no MMDB field for a name or a domain"))
	}
	for _, word := range slices.Sorted(maps.Keys(o.OrgTypes)) {
		if kind := o.OrgTypes[word]; !slices.Contains(orgtype.Kinds, kind) {
			errs = append(errs, fmt.Errorf("%q is no kind of organization; the kinds are %s", kind, strings.Join(orgtype.Kinds, ", ")))
		}
	}
	return errors.Join(errs...)
}
