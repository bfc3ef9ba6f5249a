package finish

import (
	"context"
	"errors"
	"time"

	"github.com/leadetl/leadetl/internal/objects"
	"github.com/leadetl/leadetl/pipeline/order"
	"github.com/leadetl/leadetl/pipeline/parts"
	"github.com/leadetl/leadetl/pipeline/purchase"
	"github.com/leadetl/leadetl/pipeline/report"
	"github.com/leadetl/leadetl/pipeline/stats"
	"github.com/leadetl/leadetl/sinks"
)

// Reporter watches a run and makes its report.
type Reporter struct {
	work *parts.Work
	// Machines made the parts in windows.
	Machines []report.Machine
	recorder *stats.Recorder
}

// NewReporter starts to watch a run. Publish or Stopped ends it.
func NewReporter(w *parts.Work) *Reporter {
	return &Reporter{work: w, recorder: stats.Record(w.Decision.Run.Progress)}
}

// finished writes the report of a run that is about to publish its dataset. If
// the dataset was already complete, it keeps the report of the run that made
// it.
func (r *Reporter) finished(changes *sinks.ChangeCounts) (*report.Report, error) {
	r.recorder.Stop()
	made, err := r.make(nil)
	made.Changes = changes
	if d := r.work.Decision; err == nil && (d.Finished == nil || !d.HasReport || made.Parts.Made > 0 || !d.HasChanges()) {
		err = made.Write(d.Run.Output)
	}
	return made, err
}

// Stopped writes the report of a run that ended with err, if the run changed
// anything, and adds it to the result. It does nothing if err is nil. If the
// report cannot be written, it only warns: why the run ended matters more.
func (r *Reporter) Stopped(result *Result, err error) {
	r.recorder.Stop()
	if err == nil || result == nil {
		return
	}
	made, failed := r.make(err)
	result.Report = made
	run := r.work.Decision.Run
	if failed == nil && r.work.Log.ChangedDataset() && !isPublished(run.Output) {
		failed = made.Write(run.Output)
	}
	if failed != nil {
		run.Log.Warn("no report of the run", "reason", failed.Error())
	}
}

// isPublished reports whether a dataset is finished although its run failed: what came after _SUCCESS
// did, or _SUCCESS is there and its write failed. The report of the publication stays.
func isPublished(output *sinks.Dataset) bool {
	m, err := output.Manifest()
	return err == nil && m != nil
}

// make makes the report of a run that ended with err. If the stored answers
// cannot be read, the report has no list of unknown calls.
func (r *Reporter) make(stop error) (made *report.Report, err error) {
	began, now := r.recorder.Began(), time.Now()
	d := r.work.Decision
	series := r.recorder.Series(now)
	if d.Windowed { // nothing was recorded over the time of the run
		began, series = d.Header.BegunAt, stats.Series{RowsPerSecond: []float64{}, CallsPerSecond: []float64{}}
	}
	made = &report.Report{
		Format: report.Format, Program: d.Run.Program, Operation: string(d.Run.Job.Operation), JobID: d.JobID,
		StartedAt: began.UTC().Truncate(time.Millisecond), EndedAt: now.UTC().Truncate(time.Millisecond),
		Seconds: report.Seconds(now.Sub(began)), Stop: stopFor(stop),
		Inputs: d.Inputs, Output: d.Run.Output.Dir(), Files: []sinks.File{}, Machines: r.Machines, Counts: ResultOf(r.work).Counts,
		Previous: previousOf(d.Run.Nights.Before()), Progress: report.ProgressOf(d.Run.Progress.Snapshot()),
		Series: series,
	}
	for _, p := range r.work.Log.InOrder() {
		made.Files = append(made.Files, p.All()...)
	}
	if d.Run.Order.Engine() == nil {
		err = r.addAsked(made, stop != nil)
	}
	return made, err
}

// stopFor returns the reason why a run ended, derived from its error.
func stopFor(err error) report.Stop {
	if err == nil {
		return report.Stop{Reason: report.StopFinished}
	}
	reason := report.StopFailed
	for _, known := range []struct {
		err    error
		reason report.StopReason
	}{
		{purchase.ErrRefused, report.StopRefused}, {purchase.ErrBudget, report.StopBudget}, {purchase.ErrNoCredits, report.StopNoCredits}, {purchase.ErrUnreachable, report.StopUnreachable},
		{objects.ErrUnavailable, report.StopUnreachable}, {context.Canceled, report.StopInterrupted},
	} {
		if errors.Is(err, known.err) {
			reason = known.reason
			break
		}
	}
	return report.Stop{Reason: reason, Detail: err.Error()}
}

// accountOf returns the calls to a resolver and those that are open.
func (r *Reporter) accountOf(step *order.Step, buyer *purchase.Buyer) (*report.Service, error) {
	d, remote := r.work.Decision, step.Remote
	s := &report.Service{Name: remote.Name, Run: d.Run.Order.PayerOf(d.Header.Run, step), Offline: remote.Offline}
	s.SetCalls(remote.Counters.Snapshot())
	s.Budget.Calls, s.Budget.Credits = buyer.Spent()
	setLimits(&s.Budget, remote.Budget, buyer.SpentOfAllowance)
	return s, s.SetOpenCalls(context.Background(), remote.Answers, remote.Scope(d.Run.Job.Operation), s.Run)
}

// sum returns what the run has asked all its resolvers.
func (r *Reporter) sum() *report.Service {
	d, chain := r.work.Decision, r.work.Chain
	total := &report.Service{Run: d.Header.Run, Offline: !d.Run.AsksAny(), Unknown: report.UnknownCalls{Listed: []report.UnknownCall{}}}
	total.SetCalls(d.Run.Order.Counted().Snapshot())
	total.Calls.EarlierCredits += d.Header.PaidBefore
	total.Budget.Calls, total.Budget.Credits = chain.Total().Totals()
	setLimits(&total.Budget, d.Run.Order.Limits(), chain.Total().OfAllowance)
	return total
}

func setLimits(b *report.Budget, limits purchase.Budget, ofAllowance func() int64) {
	if most := limits.MaxCalls; most >= 0 {
		b.MaxCalls = &most
	}
	if most := limits.MaxCredits; most >= 0 {
		b.MaxCredits = &most
	}
	if most := limits.MaxDuration.Seconds(); most > 0 {
		b.MaxDurationSeconds = &most
	}
	if a := limits.Allowance; a.Days > 0 {
		b.Allowance = &report.Allowance{Days: a.Days, Credits: ofAllowance(), MaxCredits: a.Credits}
	}
}

// addAsked adds what the resolvers were asked: all together, and each of several. Of a run that stopped,
// what was asked and paid for rows that are in no part counts too.
func (r *Reporter) addAsked(made *report.Report, stopped bool) (err error) {
	o, total := r.work.Decision.Run.Order, r.sum()
	buyers := r.work.Chain.Buyers()
	for _, step := range o.Steps {
		resolver := report.NewResolver(step.Name, made.Totals.Resolvers[step.Name])
		if step.IsPaid() {
			var failed error
			resolver.Service, failed = r.accountOf(step, buyers[0])
			err = errors.Join(err, failed)
			if buyers = buyers[1:]; stopped {
				resolver.CountCalls()
			}
			total.Add(resolver.Service)
		}
		made.Resolvers = append(made.Resolvers, resolver)
	}
	made.SetTotal(total)
	return err
}
