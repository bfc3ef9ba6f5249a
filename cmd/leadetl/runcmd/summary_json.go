package runcmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/internal/atomicfile"
	"github.com/leadetl/leadetl/pipeline/finish"
	"github.com/leadetl/leadetl/pipeline/job"
	"github.com/leadetl/leadetl/pipeline/report"
	"github.com/leadetl/leadetl/pipeline/stats"
	"github.com/leadetl/leadetl/sinks"
)

// standardOutput is the value of --summary-json for standard output.
const standardOutput = "-"

// summaryJSON is the result of a run in JSON: the members of _report.json and
// the exit code.
type summaryJSON struct {
	*report.Report
	Exit exitJSON `json:"exit"`
}

type exitJSON struct {
	Code   int    `json:"code"`
	Reason string `json:"reason"` // the error in words; empty for code 0
}

// checkSummary checks before a run whether its summary and metrics can be written.
func (f *runFlags) checkSummary() error {
	return errors.Join(f.checkSummaryFile(), f.checkMetricsFile())
}

func (f *runFlags) checkSummaryFile() error {
	if f.summaryJSON == "" || f.summaryJSON == standardOutput {
		return nil
	}
	if info, err := os.Stat(f.summaryJSON); err == nil && info.IsDir() {
		return fmt.Errorf("--summary-json: %s is a folder; name a file in it", f.summaryJSON)
	}
	folder := filepath.Dir(f.summaryJSON)
	if info, err := os.Stat(folder); err != nil || !info.IsDir() {
		return fmt.Errorf("--summary-json: there is no folder %s; create it", folder)
	}
	return nil
}

// end writes --summary-json for a run that ended with err, tells notify, and
// returns err. made is nil when the run ended before it had a report.
func (f *runFlags) end(ctx context.Context, made *report.Report, operation string, started time.Time, err error, std cli.Streams) error {
	if made == nil {
		made = unmade(operation, f.out, started, err)
	}
	if f.summaryJSON != "" && f.checkSummaryFile() == nil {
		err = errors.Join(err, f.writeSummary(summaryOf(made, err), std.Out))
	}
	if log, failed := f.log.Open(std.Err); failed == nil {
		f.notice.Tell(ctx, made, summaryOf(made, err), err, log)
	}
	return err
}

func summaryOf(made *report.Report, err error) summaryJSON {
	summary := summaryJSON{made, exitJSON{Code: cli.ExitCode(err)}}
	if err != nil {
		summary.Exit.Reason = cli.Reason(err)
	}
	return summary
}

// writeSummary writes --summary-json.
func (f *runFlags) writeSummary(summary summaryJSON, out io.Writer) error {
	data, failed := json.MarshalIndent(summary, "", "  ")
	if failed != nil {
		return failed
	}
	data = append(data, '\n')
	if f.summaryJSON == standardOutput {
		_, failed = out.Write(data)
	} else {
		failed = writeFile(f.summaryJSON, data)
	}
	if failed != nil {
		failed = fmt.Errorf("--summary-json: %w", failed)
	}
	return failed
}

// unmade returns the report of a run that ended before it read a row.
func unmade(operation, out string, started time.Time, err error) *report.Report {
	now := time.Now()
	r := &report.Report{
		Format: report.Format, Program: cli.ProgramVersion(), Operation: operation, Output: out,
		StartedAt: started.UTC().Truncate(time.Millisecond), EndedAt: now.UTC().Truncate(time.Millisecond), Seconds: report.Seconds(now.Sub(started)),
		Stop: report.Stop{Reason: report.StopFinished}, Inputs: []sinks.Input{}, Files: []sinks.File{},
		Series: stats.Series{RowsPerSecond: []float64{}, CallsPerSecond: []float64{}},
	}
	switch {
	case cli.ExitCode(err) == cli.ExitInterrupted:
		r.Stop.Reason = report.StopInterrupted
	case err != nil:
		r.Stop = report.Stop{Reason: report.StopFailed, Detail: cli.Reason(err)}
	}
	return r
}

// reportOf returns the report of a run that ended with result. If there was
// nothing to do, it returns the report in the dataset's folder.
func reportOf(result *finish.Result, run *job.Run) *report.Report {
	switch {
	case result == nil:
		return nil
	case result.Report != nil:
		return result.Report
	}
	var last report.Report
	data, err := run.Output.Report()
	if err != nil || json.Unmarshal(data, &last) != nil {
		last = *unmade(string(run.Job.Operation), run.Output.Dir(), time.Now(), nil)
		last.Counts = result.Counts
	}
	return &last
}

// writeFile replaces a file atomically. It writes directly to a device or a
// pipe, and follows links.
func writeFile(path string, data []byte) (err error) {
	if there, err := os.Lstat(path); err == nil && !there.Mode().IsRegular() {
		return os.WriteFile(path, data, 0o666)
	}
	file, err := atomicfile.Create(path, 0o644)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Abort()) }()
	if _, err := file.Write(data); err != nil {
		return err
	}
	return file.Commit()
}
