// Package openlineage sends OpenLineage events about what a job reads and writes
// to a collector.
//
// The one thing to know before using it: if the collector does not answer, the
// caller gets only a warning and a short wait at the end.
// Source: OpenLineage 2-0-2, https://openlineage.io/spec/2-0-2/OpenLineage.json.
package openlineage

import "time"

// The states of a run in events.
const (
	Start    = "START"
	Running  = "RUNNING"
	Complete = "COMPLETE"
	Fail     = "FAIL"
	Abort    = "ABORT" // stopped by its user
)

const (
	producer = "https://github.com/leadetl/leadetl"
	spec     = "https://openlineage.io/spec/"
)

// Event is one event about a run.
type Event struct {
	Type      string    `json:"eventType"`
	Time      time.Time `json:"eventTime"`
	Run       Run       `json:"run"`
	Job       Job       `json:"job"`
	Inputs    []Dataset `json:"inputs"`
	Outputs   []Dataset `json:"outputs"`
	Producer  string    `json:"producer"`
	SchemaURL string    `json:"schemaURL"`
}

// Run is one run of a job. ID is a UUID.
type Run struct {
	ID     string         `json:"runId"`
	Facets map[string]any `json:"facets,omitempty"`
}

// Job is the work that runs repeat.
type Job struct {
	Namespace string         `json:"namespace"`
	Name      string         `json:"name"`
	Facets    map[string]any `json:"facets,omitempty"`
}

// Dataset is an input or an output.
// Source of namespaces and names: OpenLineage, Naming.
type Dataset struct {
	Namespace    string         `json:"namespace"`
	Name         string         `json:"name"`
	Facets       map[string]any `json:"facets,omitempty"`
	OutputFacets map[string]any `json:"outputFacets,omitempty"`
}

// Field is a column of a dataset.
type Field struct {
	Name        string `json:"name"`
	Type        string `json:"type,omitempty"`
	Description string `json:"description,omitempty"`
}

// New makes an event of a run and its job, with the current time.
func New(state string, run Run, job Job, inputs, outputs []Dataset) Event {
	return Event{
		Type: state, Time: time.Now().UTC().Truncate(time.Millisecond), Run: run, Job: job, Inputs: inputs, Outputs: outputs,
		Producer: producer, SchemaURL: spec + "2-0-2/OpenLineage.json#/$defs/RunEvent",
	}
}

// base has the members of every facet.
type base struct {
	Producer  string `json:"_producer"`
	SchemaURL string `json:"_schemaURL"`
}

func facet(version, name string) base {
	return base{producer, spec + "facets/" + version + "/" + name + ".json#/$defs/" + name}
}

// Schema is the facet schema of a dataset.
func Schema(fields []Field) any {
	return struct {
		base
		Fields []Field `json:"fields"`
	}{facet("1-1-1", "SchemaDatasetFacet"), fields}
}

// InputField is a column of an input that a column of an output has its values from.
type InputField struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Field     string `json:"field"`
}

// ColumnLineage is the facet columnLineage of an output: where each column is from.
func ColumnLineage(from map[string][]InputField) any {
	type inputs struct {
		Fields []InputField `json:"inputFields"`
	}
	fields := map[string]inputs{}
	for name, all := range from {
		fields[name] = inputs{all}
	}
	return struct {
		base
		Fields map[string]inputs `json:"fields"`
	}{facet("1-2-0", "ColumnLineageDatasetFacet"), fields}
}

// OutputStatistics is the facet outputStatistics of an output. Bytes and files
// that are 0 are not known yet.
func OutputStatistics(rows, bytes, files int64) any {
	return struct {
		base
		Rows  int64 `json:"rowCount"`
		Bytes int64 `json:"size,omitempty"`
		Files int64 `json:"fileCount,omitempty"`
	}{facet("1-0-2", "OutputStatisticsOutputDatasetFacet"), rows, bytes, files}
}

// JobType is the facet jobType of a job.
func JobType(integration, kind string) any {
	return struct {
		base
		Processing  string `json:"processingType"`
		Integration string `json:"integration"`
		Kind        string `json:"jobType"`
	}{facet("2-0-3", "JobTypeJobFacet"), "BATCH", integration, kind}
}

// ProcessingEngine is the facet processing_engine of a run.
func ProcessingEngine(name, version string) any {
	return struct {
		base
		Name    string `json:"name"`
		Version string `json:"version"`
	}{facet("1-1-1", "ProcessingEngineRunFacet"), name, version}
}

// ErrorMessage is the facet errorMessage of a run that failed.
func ErrorMessage(message string) any {
	return struct {
		base
		Message  string `json:"message"`
		Language string `json:"programmingLanguage"`
	}{facet("1-0-1", "ErrorMessageRunFacet"), message, "GO"}
}
