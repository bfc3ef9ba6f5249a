package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/leadetl/leadetl/internal/objects"
	"github.com/leadetl/leadetl/internal/reportpage"
	"github.com/leadetl/leadetl/pipeline/answers"
	"github.com/leadetl/leadetl/pipeline/stats"
	"github.com/leadetl/leadetl/sinks"
)

// reporter watches a run and makes its report.
type reporter struct {
	*state
	recorder *stats.Recorder
}

// beginReport starts to watch a run. finished or stopped ends it.
func (s *state) beginReport() *reporter { return &reporter{s, stats.Record(s.Progress)} }

// finished writes the report of a run that is about to publish its dataset. A
// run that found the whole dataset there leaves the report of the one that
// made it.
func (r *reporter) finished() (*Report, error) {
	r.recorder.Stop()
	report, err := r.make(nil)
	if err != nil || r.before != nil && r.made == 0 {
		return report, err
	}
	return report, r.write(report)
}

// stopped writes the report of a run that ended with err, if it changed
// anything, and adds it to the result. It does nothing for a run without an
// error. A report that cannot be written is no more than a warning: why the
// run ended matters more.
func (r *reporter) stopped(result *Result, err error) {
	r.recorder.Stop()
	if err == nil || result == nil {
		return
	}
	report, failed := r.make(err)
	result.Report = report
	if untouched := r.before != nil && !r.withdrew; failed == nil && r.journal.file != nil && !untouched {
		failed = r.write(report)
	}
	if failed != nil {
		r.Log.Warn("no report of the run", "reason", failed.Error())
	}
}

func (r *reporter) write(report *Report) error {
	data, err := json.MarshalIndent(report, "", "  ")
	if err != nil {
		return err
	}
	data = append(data, '\n')
	page, err := reportpage.Render(data)
	if err != nil {
		return err
	}
	if err := r.Output.WriteReport(data, page); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}

// make makes the report of a run that ended with err. Of one whose stored
// answers cannot be read it lacks the list of unknown calls.
func (r *reporter) make(stop error) (*Report, error) {
	began, now := r.recorder.Began(), time.Now()
	result := r.result()
	report := &Report{
		Format: ReportFormat, Program: r.Program, Operation: string(r.Job.Operation), JobID: r.jobID,
		StartedAt: began.UTC().Truncate(time.Millisecond), EndedAt: now.UTC().Truncate(time.Millisecond),
		Seconds: seconds(now.Sub(began)), Stop: stopFor(stop),
		Inputs: r.inputs(), Output: r.Output.Dir(), Files: []sinks.File{}, Totals: result.Totals, Fresh: result.Fresh,
		Parts:  ReportParts{Made: result.Made, Earlier: result.Skipped},
		Series: r.recorder.Series(now),
	}
	if t := result.Totals; t.Rows > 0 {
		report.MatchRate = math.Round(float64(t.Matched)/float64(t.Rows)*1e4) / 1e4
	}
	r.mu.Lock()
	for _, number := range slices.Sorted(maps.Keys(r.parts)) {
		p := r.parts[number]
		report.Files = append(report.Files, p.All()...)
	}
	r.mu.Unlock()
	if r.asker == nil {
		return report, nil
	}
	var err error
	report.Service = r.asker.report()
	if report.Service.Unknown, err = r.asker.unknownCalls(); err == nil {
		report.Service.Parked, err = r.asker.parkedCalls()
	}
	return report, err
}

// stopFor says why a run ended, going by its error.
func stopFor(err error) Stop {
	if err == nil {
		return Stop{Reason: StopFinished}
	}
	reason := StopFailed
	for _, known := range []struct {
		err    error
		reason StopReason
	}{
		{ErrBudget, StopBudget}, {ErrNoCredits, StopNoCredits}, {ErrRefused, StopRefused}, {ErrUnreachable, StopUnreachable},
		{objects.ErrUnavailable, StopUnreachable}, {context.Canceled, StopInterrupted},
	} {
		if errors.Is(err, known.err) {
			reason = known.reason
			break
		}
	}
	return Stop{reason, err.Error()}
}

// report is what was asked, but for the unknown calls.
func (a *asker) report() *ServiceReport {
	calls := a.Meter.Snapshot()
	s := &ServiceReport{
		Name: a.Name, Run: a.run, Offline: a.Offline, Calls: calls,
		Latency: LatencyReport{seconds(calls.P50), seconds(calls.P95), seconds(calls.P99)},
		Waits:   map[string]float64{},
	}
	for reason, waited := range calls.Waits {
		s.Waits[reason] = seconds(waited)
	}
	s.Budget.Calls, s.Budget.Credits = a.purse.totals()
	if most := a.Budget.MaxCalls; most >= 0 {
		s.Budget.MaxCalls = &most
	}
	if most := a.Budget.MaxCredits; most >= 0 {
		s.Budget.MaxCredits = &most
	}
	if most := a.Budget.MaxDuration.Seconds(); most > 0 {
		s.Budget.MaxDurationSeconds = &most
	}
	return s
}

// unknownCalls lists what is unknown of the operation at the service.
func (a *asker) unknownCalls() (UnknownReport, error) {
	var ours, others []UnknownCall
	var count int64
	for c, err := range a.Answers.Unknown(context.WithoutCancel(a.ctx)) {
		if err != nil {
			return UnknownReport{count, []UnknownCall{}}, err
		}
		if c.Service != a.Name || c.Operation != a.operation {
			continue
		}
		count++
		list := &others
		if c.Run == a.run {
			list = &ours
		}
		if len(*list) < mostUnknown {
			*list = append(*list, unknownCall(c, c.Run == a.run))
		}
	}
	listed := append(append([]UnknownCall{}, ours...), others...)
	return UnknownReport{count, listed[:min(len(listed), mostUnknown)]}, nil
}

// parkedCalls counts what is promised of the operation at the service.
func (a *asker) parkedCalls() (n int64, err error) {
	for c, err := range a.Answers.Parked(context.WithoutCancel(a.ctx)) {
		if err != nil {
			return n, err
		}
		if c.Service == a.Name && c.Operation == a.operation {
			n++
		}
	}
	return n, nil
}

func unknownCall(c answers.OpenCall, thisRun bool) UnknownCall {
	return UnknownCall{
		KeyHash: c.Hash.String(), IdempotencyKey: c.IdempotencyKey, RequestID: c.Request, SentAt: c.Sent.UTC(),
		Attempts: c.Attempts, ThisRun: thisRun, Reason: c.Reason, Status: c.Status,
	}
}
