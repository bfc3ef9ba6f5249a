package runcmd

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/leadetl/leadetl/pipeline/job"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/internal/figures"
	"github.com/leadetl/leadetl/internal/suggest"
	"github.com/leadetl/leadetl/pipeline/columns"
	"github.com/leadetl/leadetl/pipeline/keys"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/sinks"
	"github.com/leadetl/leadetl/sinks/schema"
	"github.com/leadetl/leadetl/sources"
	"github.com/leadetl/leadetl/transforms/email"
)

// JobFlags are the flags that decide what a dataset contains.
type JobFlags struct {
	sample           int
	idColumn         string
	selected         []string
	normalizeNames   string
	rename           []string
	dropIdentifier   bool
	partitionBy      []string
	identifierText   string
	multiple         string
	where            []string
	suppressedID     string
	includeProviders bool
	rowsPerPart      int
	compression      string
	hemProfiles      []string
	hemTypes         []string
	defaultRegion    string
	networkHosts     []string
}

// The values of --normalize-names.
const (
	namesSnake = "snake"
	namesKept  = "none"
)

// The values of --identifier-text.
const (
	textAny    = "any"
	textStrict = "strict"
)

// multipleReject is the default of --multiple.
const multipleReject = "reject"

// multiples are the values of --multiple.
var multiples = []string{multipleReject, string(keys.First), string(keys.Last), string(keys.Each), string(keys.FirstPublic)}

// DefaultJobFlags returns the flags of an empty command line.
func DefaultJobFlags() JobFlags {
	job := job.Default("")
	return JobFlags{
		selected: []string{columns.All}, normalizeNames: namesKept, identifierText: textAny, multiple: multipleReject, rowsPerPart: job.RowsPerPart, compression: string(job.Compression), hemProfiles: []string{"plain"},
		hemTypes: job.HEMTypes, defaultRegion: job.DefaultRegion, networkHosts: job.NetworkHosts,
	}
}

// RegisterColumns registers the flags that decide on columns.
func (f *JobFlags) RegisterColumns(flags *pflag.FlagSet) {
	flags.StringVar(&f.idColumn, "id-column", "", "`name` of the identifier's column (default: the one of the operation)")
	flags.StringSliceVar(&f.selected, "select", f.selected, "`columns` of the output, in this order, of the input and of the answers: names separated by commas, and groups of those not named: all, input, answers, flat (answers without lists); outcome and reason come last if they are not named")
	flags.StringVar(&f.normalizeNames, "normalize-names", f.normalizeNames, "`form` of the names of input columns: none, as in the input, or snake, which every warehouse takes: \"Record ID\" is record_id")
	flags.StringArrayVar(&f.rename, "rename", nil, "`OLD=NEW`, another name for an input column; it applies last; repeatable")
	flags.BoolVar(&f.dropIdentifier, "drop-identifier", false, "leave the identifier out of every file: its column, key, and the raw lines of rejects")
	flags.StringSliceVar(&f.partitionBy, "partition-by", nil, "`NAME=VALUE`, such as dt=2026-11-20: write to a folder below --out that warehouses read as a column; or a kept COLUMN: one folder for each of its values; combine with commas, the column last")
	flags.StringVar(&f.multiple, "multiple", f.multiple, "`choice` among several identifiers of a cell: reject, first, last, each (a row for each, with source_part), or first-public for IP addresses")
	flags.StringSliceVar(&f.hemProfiles, "hem-profiles", f.hemProfiles, "hash `profiles` of email_to_hem: plain (always included), uid2, google")
	flags.StringSliceVar(&f.hemTypes, "hem-types", f.hemTypes, "hash `types` of profile plain")
}

// registerInput registers the flags that decide how input is read.
func (f *JobFlags) registerInput(flags *pflag.FlagSet) {
	flags.StringArrayVar(&f.where, "where", nil, "`COLUMN=VALUE` that a row must have to be in the dataset, compared as text; repeatable: all must hold")
	flags.IntVar(&f.sample, "sample", 0, "read the whole input, and run only this `number` of lines, spread over it (default: all)")
	flags.StringVar(&f.identifierText, "identifier-text", f.identifierText, "`what` cells may have around an identifier: any reads mailto:, Jane <jane@x.example>, for=1.2.3.4 and separators at the end; strict rejects them")
	flags.BoolVar(&f.includeProviders, "include-providers", false, "keep access providers, hosting and VPNs as companies")
	flags.StringVar(&f.defaultRegion, "default-region", f.defaultRegion, "`region` of phone numbers without a country code")
	flags.StringSliceVar(&f.networkHosts, "network-hosts", f.networkHosts, "`hosts` whose profile URLs are recognized")
}

// registerParts registers the flags that decide on files.
func (f *JobFlags) registerParts(flags *pflag.FlagSet) {
	flags.IntVar(&f.rowsPerPart, "rows-per-part", f.rowsPerPart, fmt.Sprintf("input `rows` of each Parquet file (keyword_to_lead: %d)", job.SearchesPerPart))
	flags.StringVar(&f.compression, "compression", f.compression, "Parquet `codec`: snappy, zstd or none")
}

// completeJob lets shells complete the values of the flags.
func completeJob(c *cobra.Command) {
	cli.CompleteList(c, "select", columns.Groups...)
	cli.Complete(c, "multiple", multiples...)
	cli.Complete(c, "normalize-names", namesKept, namesSnake)
	if c.Flags().Lookup("identifier-text") != nil {
		cli.Complete(c, "identifier-text", textAny, textStrict)
	}
	cli.CompleteList(c, "hem-profiles", "plain", "uid2", "google")
	cli.CompleteList(c, "hem-types", columns.HEMTypes...)
	if c.Flags().Lookup("compression") != nil {
		cli.Complete(c, "compression", string(sinks.Snappy), string(sinks.Zstd), "none")
	}
}

// check refuses a --sample that is out of range. 0 is all lines only where the
// flag is not given.
func (f *JobFlags) check(flags *pflag.FlagSet) error {
	if flags.Changed("sample") && (f.sample < 1 || f.sample > sources.MaxSample) {
		return fmt.Errorf("--sample is %d; it is a number of lines from 1 to %s", f.sample, figures.Grouped(sources.MaxSample))
	}
	return nil
}

// Job returns the job with these settings, not validated yet. Its error joins
// all problems.
func (f *JobFlags) Job(operation string) (job.Job, error) {
	var errs []error
	if operation == "" {
		errs = append(errs, errors.New("no operation; say which, as in: leadetl run email_to_hem"))
	} else if _, known := resolution.ParseOperation(operation); !known {
		errs = append(errs, fmt.Errorf("unknown operation %q%s", operation, suggest.OneOf(operation, resolution.OperationNames())))
	}
	job := job.Default(resolution.Operation(operation))
	job.Sample, job.IDColumn, job.DropIdentifier = f.sample, f.idColumn, f.dropIdentifier
	switch {
	case len(f.selected) == 0 || slices.Equal(f.selected, []string{""}):
		errs = append(errs, fmt.Errorf("--select names no column; write %s, or names with commas", strings.Join(columns.Groups, ", ")))
	case !slices.Equal(f.selected, []string{columns.All}):
		for _, name := range f.selected {
			job.Select = append(job.Select, strings.TrimSpace(name))
		}
	}
	var err error
	job.SnakeNames = f.normalizeNames == namesSnake
	if !job.SnakeNames && f.normalizeNames != namesKept {
		errs = append(errs, fmt.Errorf("--normalize-names is %q; it is %s or %s", f.normalizeNames, namesSnake, namesKept))
	}
	if !slices.Contains(multiples, f.multiple) {
		errs = append(errs, fmt.Errorf("--multiple is %q%s", f.multiple, suggest.OneOf(f.multiple, multiples)))
	} else if f.multiple != multipleReject {
		job.Multiple = keys.Multiple(f.multiple)
	}
	job.StrictIdentifiers = f.identifierText == textStrict
	if !job.StrictIdentifiers && f.identifierText != textAny {
		errs = append(errs, fmt.Errorf("--identifier-text is %q; it is %s or %s", f.identifierText, textAny, textStrict))
	}
	job.SuppressedID = f.suppressedID
	job.Where, err = parseWhere(f.where)
	errs = append(errs, err)
	job.Renames, err = parseRenames(f.rename)
	errs = append(errs, err)
	job.Partitions, job.PartitionBy, err = parsePartitions(f.partitionBy)
	errs = append(errs, err)
	for _, name := range f.hemProfiles {
		p, err := email.ParseProfile(name)
		if err != nil {
			errs = append(errs, err)
		} else if p != email.Plain && !slices.Contains(job.HEMProfiles, p) {
			job.HEMProfiles = append(job.HEMProfiles, p)
		}
	}
	job.RowsPerPart, job.Compression, job.HEMTypes = f.rowsPerPart, sinks.Compression(f.compression), f.hemTypes
	job.DefaultRegion, job.NetworkHosts, job.IncludeProviders = f.defaultRegion, f.networkHosts, f.includeProviders
	return job, errors.Join(errs...)
}

// parseWhere parses COLUMN=VALUE. The value may have = too.
func parseWhere(texts []string) (where []job.Condition, err error) {
	for i, text := range texts {
		column, value, found := strings.Cut(text, "=")
		if column = strings.TrimSpace(column); !found || column == "" {
			return nil, fmt.Errorf("--where number %d has no column and value; write COLUMN=VALUE, such as status=active", i+1)
		}
		where = append(where, job.Condition{Column: column, Value: value})
	}
	return where, nil
}

// parsePartitions parses NAME=VALUE, and a column after the last one. The job
// validates names and values.
func parsePartitions(texts []string) (partitions []sinks.Partition, column string, err error) {
	for i, text := range texts {
		name, value, ok := strings.Cut(text, "=")
		switch name, value = strings.TrimSpace(name), strings.TrimSpace(value); {
		case ok:
			partitions = append(partitions, sinks.Partition{Name: name, Value: value})
		case name == "":
			return nil, "", fmt.Errorf("--partition-by %q; write NAME=VALUE, such as dt=2026-11-20, or the name of a column", text)
		case i < len(texts)-1:
			return nil, "", fmt.Errorf("--partition-by %s is a column with more behind it; one column can be named, and it comes last", name)
		default:
			column = name
		}
	}
	return partitions, column, nil
}

// parseRenames parses OLD=NEW. New names have no =, but old ones may.
func parseRenames(texts []string) (renames []columns.Rename, err error) {
	for _, text := range texts {
		at := strings.LastIndexByte(text, '=')
		if at < 0 {
			return nil, fmt.Errorf("--rename %q; write OLD=NEW, such as 'Record ID=record_id'", text)
		}
		renames = append(renames, columns.Rename{Old: strings.TrimSpace(text[:at]), New: strings.TrimSpace(text[at+1:])})
	}
	return renames, nil
}

// partitionFolder returns the location of a partition in the folder or URI of a
// dataset.
func partitionFolder(out string, partitions []sinks.Partition) string {
	if len(partitions) == 0 {
		return out
	}
	return strings.TrimSuffix(out, "/") + "/" + schema.PartitionPath(partitions)
}
