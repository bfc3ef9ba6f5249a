package imports

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/leadetl/leadetl/sources"
	"github.com/leadetl/leadetl/transforms/orgtype"
	"github.com/leadetl/leadetl/transforms/phone"
	"github.com/leadetl/leadetl/transforms/profile"
)

// Options are the settings of an import.
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
	Fields Fields
	// OrgTypes has kinds of words of org_type (orgtype.Kinds). They go before those that are known.
	OrgTypes map[string]string
	// Called has the names of columns in the files that differ from ours.
	Called map[string]string
	// DropReplaced drops replaced searches at once, which are kept for a day otherwise.
	DropReplaced bool
	// Open opens the files of a URI; nil opens files of this machine.
	Open OpenFiles
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// OpenFiles opens the files of a URI.
type OpenFiles func(ctx context.Context, uri string) (*sources.List, error)

// Fields are the dotted paths of name, domain and type in the records of an MMDB. The first
// value that is not empty counts.
type Fields struct {
	Name   []string `json:"name"`
	Domain []string `json:"domain"`
	Type   []string `json:"type"`
}

// Time is the present time.
func (o Options) Time() time.Time {
	if o.Now == nil {
		return time.Now()
	}
	return o.Now()
}

// Rules are the rules for profile addresses.
func (o Options) Rules() profile.Rules { return profile.Rules{Hosts: o.NetworkHosts} }

// Validate joins all problems of o.
func (o Options) Validate() error {
	var errs []error
	if !(o.MaxBadLines >= 0 && o.MaxBadLines <= 1) {
		errs = append(errs, fmt.Errorf("max bad lines is %v; it is a share from 0 to 1", o.MaxBadLines))
	}
	if err := phone.CheckRegion(o.DefaultRegion); err != nil {
		errs = append(errs, fmt.Errorf("default region %q: %w", o.DefaultRegion, err))
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
