package cluster

import (
	"strconv"
	"time"

	"github.com/leadetl/leadetl/sinks"
)

// protocol is the version of the workflows and of what they send. Code of a
// workflow that was changed cannot go on with a run that an older release began:
// such a change takes the next number here. Old workers then finish old runs.
const protocol = 2

// stepQueue is the task queue of the workflows and of the steps without calls.
var stepQueue = "leadetl-" + strconv.Itoa(protocol)

// callQueue is the task queue of the calls of a service. Only workers with the
// key of the service listen on it.
func callQueue(service string) string { return stepQueue + "-call-" + service }

// The names of the workflow and of its query.
const (
	runWorkflow = "Run"
	statusQuery = "status"
)

// workflowID is the workflow of a run. One output has one run at a time.
func workflowID(run string) string { return "leadetl/" + run }

// Job names a run. With the number of a file or window it is
// all that a worker needs.
type Job struct {
	ID       string `json:"id"`       // of the run: hex digits
	State    string `json:"state"`    // URI of the state on S3
	Settings string `json:"settings"` // tells the settings from others; SettingsObject has them
	// Service is empty without paid calls, otherwise hex digits that tell the
	// service from others.
	Service string `json:"service,omitempty"`
	// Submission is different each time a client submits the run, so that workers
	// do not take it for one before.
	Submission string `json:"submission"`
	// LostAfter is how long a worker may be silent until its steps are given to
	// another one.
	LostAfter time.Duration `json:"lost_after"`
}

// SettingsObject is the name of the object with the settings, below the run in the
// state. Each submission has its own, so that the end of one takes nothing from the
// next one.
func (j Job) SettingsObject() string { return j.Settings + "-" + j.Submission + ".json" }

// Range is a number of consecutive files or windows.
type Range struct {
	First int `json:"first"`
	Count int `json:"count"`
}

// Division is how the rows of a run are divided.
type Division struct {
	Rows    int64 `json:"rows"`
	Parts   int   `json:"parts"`
	Windows int   `json:"windows"`
}

// Counts are the rows of parts, without reasons.
type Counts struct {
	Parts int64 `json:"parts,omitempty"`
	sinks.Totals
}

// Add adds the rows of other parts.
func (c *Counts) Add(other Counts) {
	c.Parts += other.Parts
	c.Totals.Add(other.Totals)
}

// Calls are what the calls of a run have come to.
type Calls struct {
	// Asked are the questions of the rows so far, Closed those of them that are
	// through, and Matched those with a match. Each attempt counts them anew.
	Asked   int64 `json:"asked,omitempty"`
	Closed  int64 `json:"closed,omitempty"`
	Matched int64 `json:"matched,omitempty"`
	// These are of the whole run so far. Unknown calls may have been billed.
	Calls   int64 `json:"calls,omitempty"`
	Credits int64 `json:"credits,omitempty"`
	Unknown int64 `json:"unknown,omitempty"`
}

// Status is how far a run is.
type Status struct {
	Stage string `json:"stage"` // the step at work
	Done  int    `json:"done"`  // of Of files or windows
	Of    int    `json:"of"`
	Rows  int64  `json:"rows,omitempty"` // of the input; 0 before it is divided
	Read  Read   `json:"read,omitzero"`
	Made  Counts `json:"made"`
	Calls Calls  `json:"calls"`
}

// Read is how far the input is read.
type Read struct {
	Bytes int64 `json:"bytes"`
	Total int64 `json:"total"` // -1 if unknown
	All   bool  `json:"all,omitempty"`
}
