package job

import (
	"context"
	"log/slog"
	"slices"

	"github.com/leadetl/leadetl/pipeline/journal"
	"github.com/leadetl/leadetl/pipeline/keys"
	"github.com/leadetl/leadetl/pipeline/order"
	"github.com/leadetl/leadetl/pipeline/outcome"
	"github.com/leadetl/leadetl/pipeline/purchase"
	"github.com/leadetl/leadetl/pipeline/stats"
	"github.com/leadetl/leadetl/sinks"
	"github.com/leadetl/leadetl/sources"
	"github.com/leadetl/leadetl/transforms/suppression"
)

// Remotes are those of the resolvers that cost something.
func (r *Run) Remotes() (remotes []*purchase.Remote) {
	for _, s := range r.Order.Paid() {
		remotes = append(remotes, s.Remote)
	}
	return remotes
}

// AsksAny reports whether a resolver that costs something may be asked.
func (r *Run) AsksAny() bool {
	return slices.ContainsFunc(r.Remotes(), func(remote *purchase.Remote) bool { return !remote.Offline })
}

// AsksRows reports whether each row is a question that may cost something.
func (r *Run) AsksRows() bool { return r.Order.Engine() == nil && !r.Job.Operation.IsKeyword() }

// Suppressor makes what suppresses the people of Suppression in rows.
func (r *Run) Suppressor(c *Columns) *keys.Suppressor {
	return c.Suppressor(r.Suppression, r.ReportSuppressed != nil)
}

// SuppressionEntries returns the length of the suppression lists; nil without lists.
func (r *Run) SuppressionEntries() *int64 {
	if r.Suppression == nil {
		return nil
	}
	return new(r.Suppression.Entries())
}

// UnknownWait returns the reasons of rows whose calls are unknown and may not be sent again,
// because none of their resolver may.
func (r *Run) UnknownWait(ctx context.Context) (reasons []string, err error) {
	for _, s := range r.Order.Paid() {
		wait, err := s.Remote.UnknownWait(ctx, r.Job.Operation)
		if err != nil {
			return nil, err
		}
		if wait {
			reasons = append(reasons, r.Order.ReasonOf(outcome.ReasonUnknownCall, s))
		}
	}
	return reasons, nil
}

// RetriesUnknown reports whether resolvers of an order have unknown calls that the user wants sent
// once more. Other datasets may have left them, and rows may have gone on without their answers.
func (r *Run) RetriesUnknown(ctx context.Context) (bool, error) {
	if r.Order.IsOne() { // its rows say so themselves
		return false, nil
	}
	for _, s := range r.Order.Paid() {
		if has, err := s.Remote.RetriesAny(ctx, r.Job.Operation); has || err != nil {
			return has, err
		}
	}
	return false, nil
}

// KnowsPaid reports whether the state has what a run has paid. More is paid since if a callback has come.
func (r *Run) KnowsPaid(run string, paid int64) (bool, error) {
	if run == "" {
		return false, nil
	}
	sum, known := int64(0), false
	for _, s := range r.Order.Paid() {
		if s.Remote.Answers == nil {
			continue
		}
		known = true
		spent, err := s.Remote.Spent(context.Background(), r.Order.PayerOf(run, s), r.Job.Operation)
		if err != nil {
			return false, err
		}
		sum += spent.Paid
	}
	return known && sum >= paid, nil
}

// Source is what the columns depend on beside job and input.
func (r *Run) Source() Source {
	return Source{
		Remote: r.Order.Engine() == nil, Named: r.Order.Names(), Resolver: r.Order.AnsweredBy(), Want: r.Order.Want, NotesSkipped: r.Order.NotesSkipped(),
		Suppress: r.Suppression != nil,
	}
}

// Run is what is asked of a run of a job, and what it needs. Use it once.
type Run struct {
	Job    Job
	Input  *sources.List
	Output *sinks.Dataset
	Order  *order.Order // who is asked; never nil
	// Suppression lists the people who must not be in the dataset. Nil lists no
	// one.
	Suppression *suppression.Set
	// ReportSuppressed receives the entries of Suppression that the whole dataset
	// matched, before the dataset is published. It may be nil.
	ReportSuppressed func(suppression.Found) error
	// SuppressedReported means that a finished run of this job already called ReportSuppressed,
	// and the result still exists.
	SuppressedReported bool
	// StateDir holds the progress of unfinished datasets, and temporary files.
	StateDir string
	// Journal returns where the progress of the dataset at out is stored. Nil
	// means in StateDir.
	Journal func(out string) (journal.Storage, error)
	// StateName is the name of the state in messages.
	StateName string
	// Overwrite removes any dataset in the output folder, except an unfinished
	// one of the same job with the same input.
	Overwrite bool
	// Changes asks for the rows that differ from an earlier dataset. It may be nil.
	Changes *Changes
	// Nights remembers the finished datasets of the job. Nil remembers none.
	Nights *journal.Nights
	// MaxNewKeys is the share of keys, from 0 to 1, that may have no stored answer once a
	// dataset of the job was finished. Nil allows all.
	MaxNewKeys *float64
	// ID names what a run pays for, if several processes are started to do the run, one
	// after another: what one of them has finished, the next does not overwrite. Without it,
	// the name is a new one.
	ID string
	// Workers, at least 1, bounds the questions to the engine at a time, and the parts of
	// searches in progress. It does not affect the dataset.
	Workers  int
	Program  string          // name and version, for the manifest
	Log      *slog.Logger    // never nil
	Progress *stats.Progress // never nil
}
