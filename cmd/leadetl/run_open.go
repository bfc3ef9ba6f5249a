package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/internal/objects"
	"github.com/leadetl/leadetl/pipeline"
	"github.com/leadetl/leadetl/pipeline/stats"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/directory"
	"github.com/leadetl/leadetl/resolution/embedded"
	"github.com/leadetl/leadetl/sinks"
	"github.com/leadetl/leadetl/sources"
	"github.com/leadetl/leadetl/transforms/suppression"
)

// open opens everything a job is wired to. closeRun gives it back.
func (f *runFlags) open(ctx context.Context, operation string, std cli.Streams) (run *pipeline.Run, closeRun func() error, err error) {
	var opened closers
	defer func() { opened.closeOn(&err) }()
	if f.quiet && f.logLevel != "error" {
		f.logLevel = "warn"
	}
	log, err := cli.NewLogger(std.Err, f.logFormat, f.logLevel)
	if err != nil {
		return nil, nil, cli.UsageError(err)
	}
	job, err := f.config(operation)
	if err != nil {
		return nil, nil, cli.UsageError(err)
	}
	delimiter, err := parseDelimiter(f.delimiter)
	if err != nil {
		return nil, nil, cli.UsageError(err)
	}
	store, err := f.s3.open(ctx, log)
	if err != nil {
		return nil, nil, cli.UsageError(err)
	}
	run = &pipeline.Run{
		Job: job, StateDir: f.state, Overwrite: f.overwrite, Workers: f.workers, Program: programVersion(),
		Log: log, Progress: &stats.Progress{},
	}
	f.suppress.reading.Objects = store
	if f.dropAnswers != "" {
		if f.drop, err = openDropAnswers(ctx, f.dropAnswers, f.suppress.lists, f.suppress.reading); err != nil {
			return nil, nil, unlessUnavailable(err)
		}
		run.TellFound = func(found suppression.Found) error { return f.drop.write(ctx, found) }
	}
	if run.Suppression, err = f.suppress.open(ctx, job.DefaultRegion, job.NetworkHosts, log); err != nil {
		return nil, nil, err
	}
	if !f.remote.isRemote() {
		resolver, answers, closeDirectory, err := f.openResolver(job, run.Suppression)
		if err != nil {
			return nil, nil, cli.UsageError(err)
		}
		opened.add(closeDirectory)
		run.Resolver, run.Searcher, run.Answers = resolver, resolver, answers
	}
	uris, options := f.in, sources.Options{Delimiter: delimiter, Stdin: std.In, Objects: store}
	if f.search.isGiven() {
		if uris, err = f.search.list(&options); err != nil {
			return nil, nil, err
		}
	}
	input, err := openInput(ctx, uris, options)
	if err != nil {
		return nil, nil, err
	}
	opened.add(input.Close)
	if err := f.checkApart(input.Files()); err != nil {
		return nil, nil, cli.UsageError(err)
	}
	if f.remote.isRemote() && f.remote.offline && !holdsAnswers(f.state) {
		return nil, nil, errNothingStored(f.state)
	}
	if err := os.MkdirAll(f.state, 0o700); err != nil {
		return nil, nil, cli.UsageError(folderError("state", err))
	}
	output, err := sinks.Open(ctx, f.out, sinks.Options{Objects: store, StateDir: f.state, Look: f.planning})
	if err != nil {
		return nil, nil, unlessUnavailable(folderError("out", err))
	}
	opened.add(output.Close)
	if f.remote.isRemote() {
		collect(remoteGarbage)
		remote, closeRemote, err := f.remote.open(ctx, job.Operation, f.state, f.planning, log)
		if err != nil {
			return nil, nil, err
		}
		opened.add(closeRemote)
		run.Remote, run.Answers, run.Progress.Calls = remote, "service "+remote.Name, remote.Meter
	}
	run.Input, run.Output = input, output
	return run, opened.close, nil
}

// checkApart refuses inputs that are files of the dataset at --out: with
// --overwrite they would be removed before they are read.
func (f *runFlags) checkApart(files []sources.File) error {
	if objects.Is(f.out) {
		return objectsApart(f.out, files)
	}
	out, err := os.Stat(f.out)
	if err != nil {
		return nil // not made yet, so nothing is in it
	}
	for _, file := range files {
		path, err := filepath.EvalSymlinks(file.URI)
		if err != nil {
			continue // standard input
		}
		if path, err = filepath.Abs(path); err != nil {
			return err
		}
		folder := filepath.Dir(path)
		for _, in := range []string{folder, filepath.Dir(folder)} { // parts and rejects
			if info, err := os.Stat(in); err == nil && os.SameFile(info, out) {
				return fmt.Errorf("%s is in the output folder; give another --out", file.URI)
			}
		}
	}
	return nil
}

// needs says which kinds of reference data an operation can answer from; one
// of them must be there.
var needs = map[resolution.Operation][]directory.Kind{
	resolution.NetworkToHEM:    {directory.People},
	resolution.NetworkToPhone:  {directory.People},
	resolution.Enrichment:      {directory.People},
	resolution.IPToCompany:     {directory.IPRanges},
	resolution.Deanonymization: {directory.Visits, directory.IPRanges},

	resolution.KeywordToLead:      {directory.Searches},
	resolution.KeywordToLeadCount: {directory.Searches},
}

// openResolver opens the embedded engine on the directory. answers identifies
// the data it answers from, "" when the answers do not depend on any.
func (f *runFlags) openResolver(job pipeline.Job, lists *suppression.Set) (r *embedded.Engine, answers string, closer func() error, err error) {
	options := embedded.Options{IncludeProviders: job.IncludeProviders}
	if job.Operation == resolution.KeywordToLeadCount { // of others the rows are suppressed
		options.Listed = listedIn(lists)
	}
	kinds := needs[job.Operation]
	if f.directory == "" {
		if len(kinds) > 0 {
			return nil, "", nil, fmt.Errorf("%s answers from reference data; name its folder with --directory (leadetl directory import makes one)", job.Operation)
		}
		return embedded.New(nil, options), "", func() error { return nil }, nil
	}
	d, err := openDirectory(f.directory)
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
