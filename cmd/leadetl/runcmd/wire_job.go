package runcmd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/leadetl/leadetl/pipeline/job"

	"github.com/spf13/pflag"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/wire"
	"github.com/leadetl/leadetl/internal/figures"
	"github.com/leadetl/leadetl/internal/objects"
	"github.com/leadetl/leadetl/internal/suggest"
	"github.com/leadetl/leadetl/pipeline/columns"
	"github.com/leadetl/leadetl/pipeline/keys"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/sinks"
	"github.com/leadetl/leadetl/sinks/schema"
	"github.com/leadetl/leadetl/sources"
	"github.com/leadetl/leadetl/transforms/email"
	"github.com/leadetl/leadetl/transforms/hashed"
)

// JobFlags are the flags that decide what a dataset contains.
type JobFlags struct {
	job            job.Job // what flags set as it is
	selected       []string
	normalizeNames string
	rename         []string
	partitionBy    []string
	identifierText string
	multiple       string
	where          []string
	compression    string
	hemProfiles    []string
	phoneProfiles  []string
}

// The values of --normalize-names.
const (
	namesSnake = "snake"
	namesKept  = "none"
)

// The values of identifier_text.
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
		job: job, selected: []string{schema.All}, normalizeNames: namesKept, identifierText: textAny, multiple: multipleReject, compression: string(job.Compression), hemProfiles: []string{"plain"},
	}
}

// ColumnSettings are the settings that decide on columns.
func (f *JobFlags) ColumnSettings() []cli.Setting {
	return []cli.Setting{
		{Name: "id-column", To: &f.job.IDColumn, Use: cli.Everyday | ofList, Text: "`name` of the identifier's column (default: the one of the operation)"},
		{Name: "select", To: &f.selected, Use: cli.Everyday, Text: "`columns` of the output, in this order, of the input and of the answers: names separated by commas, and groups of those not named: all, input, answers, flat (answers without lists); outcome and reason come last if they are not named", Words: schema.Groups},
		{Name: "normalize-names", To: &f.normalizeNames, Text: "`form` of the names of input columns: none, as in the input, or snake, which every warehouse takes: \"Record ID\" is record_id", Words: []string{namesKept, namesSnake}},
		{Name: "rename", To: &f.rename, Use: cli.Whole, Text: "`OLD=NEW`, another name for an input column; it applies last; repeatable"},
		{Name: "drop-identifier", To: &f.job.DropIdentifier, Text: "leave the identifier out of every file: its column, key, and the raw lines of rejects"},
		{Name: "partition-by", To: &f.partitionBy, Use: cli.Everyday, Text: "`NAME=VALUE`, such as dt=2026-11-20: write to a folder below --out that warehouses read as a column; or a kept COLUMN: one folder for each of its values; combine with commas, the column last"},
		{Name: "multiple", To: &f.multiple, Text: "`choice` among several identifiers of a cell: reject, first, last, each (a row for each, with source_part), or first-public for IP addresses", Words: multiples},
		{Name: "hem-profiles", To: &f.hemProfiles, Text: "hash `profiles` of email_to_hem: plain (always included), uid2, google", Words: hashed.Names(hashed.Email)},
		{Name: "phone-profiles", To: &f.phoneProfiles, Use: cli.Key, Text: "hash `profiles` of phone to write: " + strings.Join(hashed.Names(hashed.Phone), ", "), Words: hashed.Names(hashed.Phone)},
		{Name: "hem-types", To: &f.job.HEMTypes, Text: "hash `types` of profile plain", Words: columns.HEMTypes},
	}
}

// check refuses a --sample that is out of range. 0 is all lines only where the
// flag is not given.
func (f *JobFlags) check(flags *pflag.FlagSet) error {
	if flags.Changed("sample") && (f.job.Sample < 1 || f.job.Sample > sources.MaxSample) {
		return fmt.Errorf("--sample is %d; it is a number of lines from 1 to %s", f.job.Sample, figures.Grouped(sources.MaxSample))
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
	where, err := job.ParseConditions(f.where)
	errs = append(errs, err)
	job := f.job
	job.Operation = resolution.Operation(operation)
	switch {
	case len(f.selected) == 0 || slices.Equal(f.selected, []string{""}):
		errs = append(errs, fmt.Errorf("--select names no column; write %s, or names with commas", strings.Join(schema.Groups, ", ")))
	case !slices.Equal(f.selected, []string{schema.All}):
		for _, name := range f.selected {
			job.Select = append(job.Select, strings.TrimSpace(name))
		}
	}
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
		errs = append(errs, fmt.Errorf("identifier_text is %q; it is %s or %s", f.identifierText, textAny, textStrict))
	}
	job.Where = where
	job.Renames, err = parseRenames(f.rename)
	errs = append(errs, err)
	job.Partitions, job.PartitionBy, err = parsePartitions(f.partitionBy)
	errs = append(errs, err)
	for _, name := range f.hemProfiles {
		p, err := hashed.Parse(hashed.Email, name)
		if errs = append(errs, err); err == nil && p.Email != email.Plain && !slices.Contains(job.HEMProfiles, p.Email) {
			job.HEMProfiles = append(job.HEMProfiles, p.Email)
		}
	}
	for _, name := range f.phoneProfiles {
		p, err := hashed.Parse(hashed.Phone, name)
		if errs = append(errs, err); err == nil && !slices.Contains(job.PhoneProfiles, p.Phone) {
			job.PhoneProfiles = append(job.PhoneProfiles, p.Phone)
		}
	}
	job.Compression = sinks.Compression(f.compression)
	return job, errors.Join(errs...)
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
	if len(partitions) == 0 || out == "" {
		return out
	}
	return strings.TrimSuffix(out, "/") + "/" + schema.PartitionPath(partitions)
}

// checkArrival refuses inputs that cannot be waited for.
func (f *runFlags) checkArrival() error {
	a := f.arrival
	switch {
	case a.Within < 0:
		return fmt.Errorf("wait_for_input is %s; it is a time such as 2h", a.Within)
	case a.Within == 0 && a.Marker != "":
		return errors.New("wait_for_marker needs wait_for_input")
	case strings.ContainsAny(a.Marker, `/\`):
		return errors.New("wait_for_marker is the name of a file without a folder, such as _SUCCESS")
	case a.Within > 0 && len(f.in) == 0:
		return errors.New("wait_for_input needs --in")
	case a.Within > 0 && slices.Contains(f.in, "-"):
		return errors.New("wait_for_input is for files; standard input is read as it comes")
	}
	return nil
}

// await waits for the input, if it is to be waited for. A plan does not wait, nor does a run of a finished night: its
// parts are of the input that was there.
func (f *runFlags) await(ctx context.Context, store *objects.Store, log *slog.Logger) error {
	if f.arrival.Within == 0 {
		return nil
	}
	f.arrival.Objects, f.arrival.Log = store, log
	await := f.arrival.Await
	if f.planning || f.isFinished(ctx, log) {
		await = f.arrival.There
	}
	err := await(ctx, f.in)
	switch {
	case ctx.Err() != nil:
		return wire.ErrInterruptedEarly
	case errors.Is(err, sources.ErrNotThere):
		return cli.WithCode(cli.ExitTryAgain, fmt.Errorf("wait_for_input: %w", err))
	}
	return wire.UnlessUnavailable(err)
}

// isFinished reports whether the dataset is finished, and not to be made anew. What cannot be read is not.
func (f *runFlags) isFinished(ctx context.Context, log *slog.Logger) bool {
	if f.overwrite {
		return false
	}
	dataset, err := wire.OpenDataset(ctx, f.out, &f.s3, log)
	return err == nil && sinks.CheckFinished(dataset) == nil
}
