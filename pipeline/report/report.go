// Package report is the report of a run: what _report.json holds, and the
// page made of it. Other packages fill it in.
package report

import (
	"math"
	"time"

	"github.com/leadetl/leadetl/pipeline/stats"
	"github.com/leadetl/leadetl/sinks"
)

// Format is the version of the report's own layout. It grows when a
// member changes its meaning, not when one is added.
const Format = 1

// Report says how the last run on a dataset went: the same numbers that the
// closing table and the metrics show. It is _report.json of the dataset's
// folder, and _report.html beside it is made of it. It holds no value of any
// row. docs/report.md explains each member.
//
// A run that was killed leaves the report of the run before it.
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
	// Totals are of the parts that are there, Fresh of those this run made.
	Totals    sinks.Totals `json:"totals"`
	Fresh     sinks.Totals `json:"fresh"`
	MatchRate float64      `json:"match_rate"`
	// Duplicates counts rows of this run whose key another of its rows had;
	// nil where that is not known.
	Duplicates *int64 `json:"duplicates,omitempty"`
	// SuppressionEntries is how long the suppression lists are; nil without any.
	SuppressionEntries *int64 `json:"suppression_entries,omitempty"`
	// FirstReject is where the list is wrong first; nil if it is not.
	FirstReject *sinks.FirstReject `json:"first_reject,omitempty"`
	Parts       Parts              `json:"parts"`
	Progress    Progress           `json:"progress"`
	Files       []sinks.File       `json:"files"`

	// Service is nil where none was asked.
	Service *Service     `json:"service,omitempty"`
	Series  stats.Series `json:"series"`
}

// Stop is why a run ended.
type Stop struct {
	Reason StopReason `json:"reason"`
	// Detail is the error in words; empty when the run finished.
	Detail string `json:"detail,omitempty"`
}

// StopReason is why a run ended, in a word.
type StopReason string

// The reasons.
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
	Earlier int `json:"earlier"` // that earlier runs made
}

// Progress is how much of the input was done when the run ended, as the
// progress line counts it.
type Progress struct {
	Rows int64 `json:"rows"`
	// Of is an estimate of all rows of the input, unless Exact; 0 where nothing is
	// known.
	Of    int64 `json:"of"`
	Exact bool  `json:"exact"`
}

// ProgressOf is that of a run that ended.
func ProgressOf(s stats.Snapshot) Progress {
	return Progress{Rows: s.InputDone(), Of: s.InputRows(), Exact: s.AllRead}
}

// Service is what was asked of a service.
type Service struct {
	Name string `json:"name"`
	// Run names the work on the dataset, over restarts, in the stored answers.
	Run     string             `json:"run"`
	Offline bool               `json:"offline"` // stored answers alone
	Calls   stats.CallSnapshot `json:"calls"`
	Latency Latency            `json:"latency_seconds"`
	Waits   map[string]float64 `json:"waits_seconds"` // by pace.Reason
	Budget  Budget             `json:"budget"`
	Unknown UnknownCalls       `json:"unknown_calls"`
	// Parked counts the calls to the service about the operation whose answer
	// was promised and is not there.
	Parked int64 `json:"parked_calls"`
}

// Latency is the time from a request to its answer, in seconds, of calls
// that got one; right to 2%, 0 without any.
type Latency struct {
	P50 float64 `json:"p50"`
	P95 float64 `json:"p95"`
	P99 float64 `json:"p99"`
}

// Budget is what was counted against the budget, over restarts, and the
// bounds; null is none.
type Budget struct {
	Calls              int64    `json:"calls"`
	Credits            int64    `json:"credits"`
	MaxCalls           *int64   `json:"max_calls"`
	MaxCredits         *int64   `json:"max_credits"`
	MaxDurationSeconds *float64 `json:"max_duration_seconds"`
}

// UnknownCalls lists the calls to the service about the operation that may
// have been billed and have no answer, those of this run first. They may be of
// other lists.
type UnknownCalls struct {
	Count  int64         `json:"count"`
	Listed []UnknownCall `json:"listed"` // maxListed at most
}

// maxListed bounds the unknown calls that a report lists.
const maxListed = 1000

// UnknownCall is one of them.
type UnknownCall struct {
	KeyHash        string    `json:"key_hash"`
	IdempotencyKey string    `json:"idempotency_key"`
	RequestID      string    `json:"request_id,omitempty"`
	SentAt         time.Time `json:"sent_at"`
	Attempts       int       `json:"attempts"`
	ThisRun        bool      `json:"this_run"`
	Reason         string    `json:"reason,omitempty"` // empty where the process died
	Status         int       `json:"status,omitempty"`
}

// Seconds is d in seconds, rounded to a microsecond.
func Seconds(d time.Duration) float64 { return math.Round(d.Seconds()*1e6) / 1e6 }
