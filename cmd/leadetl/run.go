package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/leadetl/leadetl/pipeline"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/directory"
	"github.com/leadetl/leadetl/resolution/embedded"
	"github.com/leadetl/leadetl/sinks"
	"github.com/leadetl/leadetl/sources"
	"github.com/leadetl/leadetl/transforms/email"
)

// runFlags are the flags of run, as they are on the command line.
type runFlags struct {
	job              string
	in               []string
	out              string
	column           string
	keep             string
	dropIdentifier   bool
	delimiter        string
	directory        string
	includeProviders bool
	rowsPerPart      int
	compression      string
	hemProfiles      []string
	hemTypes         []string
	defaultRegion    string
	networkHosts     []string
	state            string
	overwrite        bool
	workers          int
	maxRejects       rejectLimit
	quiet            bool
	logFormat        string
	logLevel         string
}

func newRunCommand(io streams) *cobra.Command {
	var f runFlags
	defaults := pipeline.DefaultJob("")
	c := &cobra.Command{
		Use:   "run OPERATION --in URI… --out DIR",
		Short: "Resolve a list and write a Parquet dataset",
		Long: `Resolve every row of a list and write a Parquet dataset.

Operations, and the column each is asked about:
  email_to_hem       email         hashed emails (HEMs) of an address
  network_to_hem     network_url   hashed emails of a profile
  network_to_phone   network_url   phone number of a profile
  ip_to_company      ip            company behind an IP address
  enrichment         network_url   contact, phone, HEMs and company of a profile
  deanonymization    ip            the same of the visitor seen behind an address

All but email_to_hem answer from a directory (see leadetl directory --help).
A run that was stopped or killed goes on with the same command; the same
command on a finished dataset does nothing. Every flag is also a key of the
job file; flags win.
` + exitHelp,
		Example: `  leadetl run email_to_hem --in emails.csv --out hems
  leadetl run ip_to_company --in 'visits/2026-11-*.csv.gz' --column client_ip --directory dir --out companies
  zcat big.csv.gz | leadetl run email_to_hem --in - --out hems
  leadetl run --job nightly.yaml`,
		Args: usageArgs(cobra.MaximumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			operation := ""
			if f.job != "" {
				fromFile, err := applyJobFile(f.job, c.Flags())
				if err != nil {
					return usageError(err)
				}
				operation = fromFile
			}
			if len(args) == 1 {
				operation = args[0]
			}
			return f.run(c.Context(), operation, io)
		},
	}
	flags := c.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.job, "job", "", "read the settings from this YAML `file`")
	flags.StringArrayVar(&f.in, "in", nil, "input `URI`: a path, a glob in quotes, or - (repeatable; CSV or Parquet, .gz and .zst too)")
	flags.StringVar(&f.out, "out", "", "output `folder`, made if missing")
	flags.StringVar(&f.column, "column", "", "`name` of the identifier's column (default: the operation's request field)")
	flags.StringVar(&f.keep, "keep", "all", "input columns carried to the output: all, none, or `names` with commas")
	flags.BoolVar(&f.dropIdentifier, "drop-identifier", false, "leave the identifier column, key and raw lines of rejects out of every file")
	flags.StringVar(&f.delimiter, "delimiter", "", "CSV delimiter, one `character` or \"tab\" (default: detected)")
	flags.StringVar(&f.directory, "directory", "", "`folder` with the reference data (leadetl directory import)")
	flags.BoolVar(&f.includeProviders, "include-providers", false, "keep access providers, hosting and VPNs as companies")
	flags.IntVar(&f.rowsPerPart, "rows-per-part", defaults.RowsPerPart, "input `rows` of each Parquet file")
	flags.StringVar(&f.compression, "compression", string(defaults.Compression), "Parquet `codec`: snappy, zstd or none")
	flags.StringSliceVar(&f.hemProfiles, "hem-profiles", []string{"plain"}, "hash `profiles` of email_to_hem: plain (always there), uid2, google")
	flags.StringSliceVar(&f.hemTypes, "hem-types", defaults.HEMTypes, "`digests` of profile plain")
	flags.StringVar(&f.defaultRegion, "default-region", defaults.DefaultRegion, "`region` of phone numbers without a country code")
	flags.StringSliceVar(&f.networkHosts, "network-hosts", defaults.NetworkHosts, "`hosts` whose profile addresses are known by their form")
	flags.StringVar(&f.state, "state", defaultStateDir(), "`folder` for the progress of unfinished runs")
	flags.BoolVar(&f.overwrite, "overwrite", false, "replace the dataset that --out holds")
	flags.IntVar(&f.workers, "workers", runtime.GOMAXPROCS(0), "parts in work at a `time`; no influence on the dataset")
	flags.Var(&f.maxRejects, "max-rejects", "exit with 3 when more lines than this are rejected or malformed, such as 100 or 1% (default: no limit)")
	flags.BoolVar(&f.quiet, "quiet", false, "print errors and warnings only")
	flags.StringVar(&f.logFormat, "log-format", "text", "text or json")
	flags.StringVar(&f.logLevel, "log-level", "info", "debug, info, warn or error")
	return c
}

// defaultStateDir is leadetl's folder under the user's state folder.
// Source: XDG Base Directory Specification 0.8.
func defaultStateDir() string {
	if dir := os.Getenv("XDG_STATE_HOME"); dir != "" {
		return filepath.Join(dir, "leadetl")
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return filepath.Join(os.TempDir(), "leadetl")
	}
	return filepath.Join(home, ".local", "state", "leadetl")
}

// config is a job with its checked settings.
func (f *runFlags) config(operation string) (pipeline.Job, error) {
	var errs []error
	if operation == "" {
		errs = append(errs, errors.New("no operation; say which, as in: leadetl run email_to_hem"))
	} else if _, err := resolution.ParseOperation(operation); err != nil {
		errs = append(errs, err)
	}
	if len(f.in) == 0 {
		errs = append(errs, errors.New("no --in; name the input"))
	}
	if f.out == "" {
		errs = append(errs, errors.New("no --out; name the output folder"))
	}
	if f.workers < 1 {
		errs = append(errs, fmt.Errorf("--workers is %d; it must be at least 1", f.workers))
	}
	job := pipeline.DefaultJob(resolution.Operation(operation))
	job.Column = f.column
	job.KeepAll = f.keep == "all"
	if f.keep != "all" && f.keep != "none" {
		for _, name := range strings.Split(f.keep, ",") {
			job.Keep = append(job.Keep, strings.TrimSpace(name))
		}
	}
	job.DropIdentifier = f.dropIdentifier
	job.RowsPerPart = f.rowsPerPart
	job.Compression = sinks.Compression(f.compression)
	job.HEMTypes = f.hemTypes
	for _, name := range f.hemProfiles {
		p, err := email.ParseProfile(name)
		if err != nil {
			errs = append(errs, err)
		} else if p != email.Plain && !slices.Contains(job.HEMProfiles, p) {
			job.HEMProfiles = append(job.HEMProfiles, p)
		}
	}
	job.DefaultRegion = f.defaultRegion
	job.NetworkHosts = f.networkHosts
	job.IncludeProviders = f.includeProviders
	if len(errs) == 0 {
		errs = append(errs, job.Validate())
	}
	return job, errors.Join(errs...)
}

// run wires a job together and runs it.
func (f *runFlags) run(ctx context.Context, operation string, io streams) (err error) {
	if f.quiet {
		f.logLevel = "warn"
	}
	log, err := newLogger(io.err, f.logFormat, f.logLevel)
	if err != nil {
		return usageError(err)
	}
	job, err := f.config(operation)
	if err != nil {
		return usageError(err)
	}
	delimiter, err := parseDelimiter(f.delimiter)
	if err != nil {
		return usageError(err)
	}
	resolver, answers, closeDirectory, err := f.openResolver(job)
	if err != nil {
		return usageError(err)
	}
	defer func() { err = errors.Join(err, closeDirectory()) }()
	input, err := sources.Open(f.in, sources.Options{Delimiter: delimiter, Stdin: io.in})
	if err != nil {
		return usageError(err)
	}
	defer func() { err = errors.Join(err, input.Close()) }()
	output, err := sinks.Open(f.out)
	if err != nil {
		return usageError(err)
	}
	defer func() { err = errors.Join(err, output.Close()) }()

	run := &pipeline.Run{
		Job: job, Input: input, Output: output, Resolver: resolver, Answers: answers,
		StateDir: f.state, Overwrite: f.overwrite, Workers: f.workers, Program: programVersion(),
		Log: log, Progress: &pipeline.Progress{},
	}
	started := time.Now()
	stop := f.watch(run.Progress, log, io)
	result, err := run.Do(ctx)
	stop()
	return f.close(result, err, closing{job: job, files: input.Files(), out: f.out, took: time.Since(started)}, log, io)
}

// close prints what the run came to and decides on its exit code.
func (f *runFlags) close(result *pipeline.Result, err error, c closing, log *slog.Logger, io streams) error {
	if errors.Is(err, context.Canceled) {
		return codedError{fmt.Errorf("interrupted; %d parts are done, the same command goes on from there", result.Made+result.Skipped), exitInterrupted}
	}
	if err != nil {
		return err
	}
	c.result = result
	if !f.quiet {
		if err := c.print(io.out); err != nil {
			return err
		}
	}
	t := result.Totals
	log.Debug("run finished", "rows", t.Rows, "matched", t.Matched, "rejected", t.Rejected, "malformed", t.Malformed)
	if t.Failed > 0 {
		return codedError{fmt.Errorf("%d rows failed", t.Failed), exitRejects}
	}
	if rejects := t.Rejected + t.Malformed; f.maxRejects.passed(rejects, t.Rows+t.Malformed) {
		return codedError{fmt.Errorf("%d of %d lines were rejected, more than --max-rejects %s", rejects, t.Rows+t.Malformed, f.maxRejects.text), exitRejects}
	}
	return nil
}

func parseDelimiter(s string) (byte, error) {
	switch {
	case s == "":
		return 0, nil
	case s == "tab" || s == `\t`:
		return '\t', nil
	case len(s) == 1 && s != `"` && s != "\n" && s != "\r":
		return s[0], nil
	}
	return 0, fmt.Errorf("--delimiter %q; give one ASCII character or \"tab\"", s)
}

// needs says which kinds of reference data an operation can answer from; one
// of them must be there.
var needs = map[resolution.Operation][]directory.Kind{
	resolution.NetworkToHEM:    {directory.People},
	resolution.NetworkToPhone:  {directory.People},
	resolution.Enrichment:      {directory.People},
	resolution.IPToCompany:     {directory.IPRanges},
	resolution.Deanonymization: {directory.Visits, directory.IPRanges},
}

// openResolver opens the embedded engine on the directory. answers identifies
// the data it answers from, "" when the answers do not depend on any.
func (f *runFlags) openResolver(job pipeline.Job) (r *embedded.Engine, answers string, closer func() error, err error) {
	options := embedded.Options{IncludeProviders: job.IncludeProviders}
	kinds := needs[job.Operation]
	if f.directory == "" {
		if len(kinds) > 0 {
			return nil, "", nil, fmt.Errorf("%s answers from reference data; name its folder with --directory (leadetl directory import makes one)", job.Operation)
		}
		return embedded.New(nil, options), "", func() error { return nil }, nil
	}
	d, err := directory.Open(f.directory)
	if err != nil {
		return nil, "", nil, err
	}
	if len(kinds) > 0 && !slices.ContainsFunc(kinds, d.Has) {
		missing := string(cmp.Or(kinds...))
		return nil, "", nil, errors.Join(fmt.Errorf("directory %s has no %s, which %s answers from; import them with: leadetl directory import --directory %s --%s FILE",
			f.directory, missing, job.Operation, f.directory, missing), d.Close())
	}
	r = embedded.New(d, options)
	if !r.Pure(job.Operation) {
		answers = d.Fingerprint()
	}
	return r, answers, d.Close, nil
}
