// Package report defines the report of a run: the content of _report.json, and
// the page made from it. Other packages fill it in.
package report

import (
	"math"
	"time"

	"github.com/leadetl/leadetl/pipeline/stats"
	"github.com/leadetl/leadetl/sinks"
)

// Format is the version of the report format. It increases when a member
// changes its meaning or name, not when a member is added.
const Format = 2

// Report says how the last run on a dataset went. It contains the same numbers
// as the summary and the metrics. It is stored as _report.json in the dataset's
// folder; _report.html is made from it. It contains no data of any row.
// docs/reference/report.md explains each member.
//
// A run that is killed leaves the report of the run before it.
type Report struct {
	Format    int    `json:"format"`
	Program   string `json:"program"`
	Operation string `json:"operation"`
	JobID     string `json:"job_id"`

	StartedAt time.Time `json:"started_at"`
	EndedAt   time.Time `json:"ended_at"`
	Seconds   float64   `json:"seconds"`
	Stop      Stop      `json:"stop"`

	Inputs []sinks.Input `json:"inputs"`
	Output string        `json:"output"` // the dataset's folder as it was given
	Counts
	// Previous is the dataset of this operation and output that was finished before; nil
	// without one.
	Previous *Previous    `json:"previous,omitempty"`
	Progress Progress     `json:"progress"`
	Files    []sinks.File `json:"files"`

	// Service is nil if the run used no service, or several resolvers.
	Service *Service `json:"service,omitempty"`
	// Resolvers are those of a run with several, in their order. Total is what they were asked
	// together: its questions are keys, each of which several may be asked about.
	Resolvers []Resolver `json:"resolvers,omitempty"`
	Total     *Service   `json:"total,omitempty"`
	// Machines are the workers of a run on many machines, in the order in which
	// they began.
	Machines []Machine    `json:"machines,omitempty"`
	Series   stats.Series `json:"series"`
}

// Asked is what the run asked, of one service or of all resolvers; nil if it asked none.
func (r *Report) Asked() *Service {
	if r.Service != nil {
		return r.Service
	}
	return r.Total
}

// SetTotal sets what all resolvers were asked. That of a single one is its own account, and the report
// has no other.
func (r *Report) SetTotal(total *Service) {
	if len(r.Resolvers) > 1 || r.Resolvers[0].Service == nil {
		r.Total = total
		return
	}
	total.Name, total.Unknown, r.Resolvers = r.Resolvers[0].Service.Name, r.Resolvers[0].Service.Unknown, nil
	r.Service = total
}

// Add adds the open calls of a resolver to those of all.
func (s *Service) Add(of *Service) {
	s.Unknown.Count += of.Unknown.Count
	s.Parked += of.Parked
}

// Resolver says what one of several resolvers has done for the rows of the dataset.
type Resolver struct {
	Name string `json:"name"`
	sinks.ResolverTotals
	// CreditsPerAdded is Credits for each of Added; nil where there is none.
	CreditsPerAdded *float64 `json:"credits_per_added,omitempty"`
	// Service says what this run asked it; nil for reference data.
	Service *Service `json:"service,omitempty"`
}

// NewResolver returns the totals of a resolver.
func NewResolver(name string, t sinks.ResolverTotals) Resolver {
	r := Resolver{Name: name, ResolverTotals: t}
	if t.Added > 0 {
		r.CreditsPerAdded = new(math.Round(float64(t.Credits)/float64(t.Added)*1e4) / 1e4)
	}
	return r
}

// CountCalls raises the totals to what the run has asked and paid, where this is more: for rows that
// are in no part. It is not known what these rows get of it.
func (r *Resolver) CountCalls() {
	calls := r.Service.Calls
	asked := calls.Closed - calls.Skipped
	if paid := calls.EarlierCredits + calls.Credits; asked > r.Asked || paid > r.Credits {
		r.CreditsPerAdded = nil
		r.Asked, r.Matched, r.Credits = max(r.Asked, asked), max(r.Matched, calls.Matched), max(r.Credits, paid)
	}
}

// Counts are what a run has counted in its rows and parts.
type Counts struct {
	// Totals covers all existing parts, Fresh the parts that this run made.
	Totals    sinks.Totals `json:"totals"`
	Fresh     sinks.Totals `json:"fresh"`
	MatchRate float64      `json:"match_rate"` // of Totals; 0 in the result of a run with nothing to do
	// Duplicates counts rows of this run with the key of another of its rows;
	// nil if unknown.
	Duplicates *int64 `json:"duplicates,omitempty"`
	// SuppressionEntries is the length of the suppression lists; nil without
	// lists.
	SuppressionEntries *int64 `json:"suppression_entries,omitempty"`
	// Changes counts the rows that differ from an earlier dataset; nil unless the run asked
	// for them.
	Changes *sinks.ChangeCounts `json:"changes,omitempty"`
	// FirstReject is the first invalid row or line; nil without one.
	FirstReject *sinks.FirstReject `json:"first_reject,omitempty"`
	Parts       Parts              `json:"parts"`
}

// Previous is an earlier dataset of a job.
type Previous struct {
	CompletedAt time.Time `json:"completed_at"`
	Rows        int64     `json:"rows"`
	Matched     int64     `json:"matched"`
	Credits     *int64    `json:"credits,omitempty"` // of all its runs; nil without a service
}

// Machine is what one worker has done. It has a number in place of a name.
type Machine struct {
	Number int `json:"number"`
	// Steps counts the steps that it has done, by name. BusySeconds is the time
	// that they took; steps at the same time count each.
	Steps       map[string]int64 `json:"steps"`
	BusySeconds float64          `json:"busy_seconds"`
}

// Stop is why a run ended.
type Stop struct {
	Reason StopReason `json:"reason"`
	// Detail is the error in words; empty when the run finished.
	Detail string `json:"detail,omitempty"`
}

// StopReason says in one word why a run ended.
type StopReason string

// The reasons why a run ended.
const (
	StopFinished    StopReason = "finished"
	StopInterrupted StopReason = "interrupted"
	StopBudget      StopReason = "budget"
	StopNoCredits   StopReason = "no_credits"
	StopRefused     StopReason = "refused"
	StopUnreachable StopReason = "unreachable"
	StopFailed      StopReason = "failed"
)

// Parts counts parts.
type Parts struct {
	Made    int `json:"made"`
	Earlier int `json:"earlier"` // made by earlier runs
}

// All is the number of parts that exist.
func (p Parts) All() int { return p.Made + p.Earlier }

// Progress is how much of the input was done when the run ended, as shown by
// the progress line.
type Progress struct {
	Rows int64 `json:"rows"`
	// Of is the number of rows of the input. It is an estimate unless Exact is
	// set, and 0 if unknown.
	Of    int64 `json:"of"`
	Exact bool  `json:"exact"`
}

// ProgressOf returns the progress of a run that has ended.
func ProgressOf(s stats.Snapshot) Progress {
	return Progress{Rows: s.InputDone(), Of: s.InputRows(), Exact: s.AllRead}
}

// Service says what the run asked a service.
type Service struct {
	Name string `json:"name,omitempty"` // empty for all of several resolvers
	// Run identifies the run in the stored answers. It stays the same over
	// restarts.
	Run     string             `json:"run"`
	Offline bool               `json:"offline"` // stored answers only
	Calls   stats.CallSnapshot `json:"calls"`
	Latency Latency            `json:"latency_seconds"`
	Waits   map[string]float64 `json:"waits_seconds"` // by pace.Reason
	Budget  Budget             `json:"budget"`
	Unknown UnknownCalls       `json:"unknown_calls"`
	// Parked counts the calls for this operation whose answer was promised and
	// has not arrived.
	Parked int64 `json:"parked_calls"`
}

// Latency is the time from request to answer in seconds, for calls that got an
// answer. It is accurate to 2%, and 0 if there are no such calls.
type Latency struct {
	P50 float64 `json:"p50"`
	P95 float64 `json:"p95"`
	P99 float64 `json:"p99"`
}

// Budget is what counts against the budget, over restarts, and the limits; null
// means no limit.
type Budget struct {
	Calls              int64    `json:"calls"`
	Credits            int64    `json:"credits"`
	MaxCalls           *int64   `json:"max_calls"`
	MaxCredits         *int64   `json:"max_credits"`
	MaxDurationSeconds *float64 `json:"max_duration_seconds"`
	// Allowance is that of all jobs of the state; null without one.
	Allowance *Allowance `json:"allowance,omitempty"`
}

// Allowance is what all jobs of the state have spent in some days, and may.
type Allowance struct {
	Days       int   `json:"days"` // until today
	Credits    int64 `json:"credits"`
	MaxCredits int64 `json:"max_credits"`
}

// UnknownCalls lists the calls for this operation that may have been billed and
// have no answer, those of this run first. Others may belong to other lists.
type UnknownCalls struct {
	Count  int64         `json:"count"`
	Listed []UnknownCall `json:"listed"` // at most maxListed
}

// maxListed bounds the unknown calls that a report lists.
const maxListed = 1000

// UnknownCall is one unknown call.
type UnknownCall struct {
	KeyHash        string    `json:"key_hash"`
	IdempotencyKey string    `json:"idempotency_key"`
	RequestID      string    `json:"request_id,omitempty"`
	SentAt         time.Time `json:"sent_at"`
	Attempts       int       `json:"attempts"`
	ThisRun        bool      `json:"this_run"`
	Reason         string    `json:"reason,omitempty"` // empty if the process died
	Status         int       `json:"status,omitempty"`
}

// Seconds returns d in seconds, rounded to a microsecond.
func Seconds(d time.Duration) float64 { return math.Round(d.Seconds()*1e6) / 1e6 }
