package reportpage

import (
	"encoding/json"
	"fmt"
	"time"
)

// format is the version of _report.json that this package reads.
const format = 1

// report is what the page reads of _report.json; docs/report.md explains the
// members. One that an older version did not write is zero.
type report struct {
	Format    int       `json:"format"`
	Program   string    `json:"program"`
	Operation string    `json:"operation"`
	JobID     string    `json:"job_id"`
	StartedAt time.Time `json:"started_at"`
	EndedAt   time.Time `json:"ended_at"`
	Seconds   float64   `json:"seconds"`
	Stop      stop      `json:"stop"`
	Inputs    []input   `json:"inputs"`
	Output    string    `json:"output"`
	Totals    totals    `json:"totals"`
	Fresh     totals    `json:"fresh"`
	Parts     parts     `json:"parts"`
	Files     []file    `json:"files"`
	Service   *service  `json:"service"`
	Series    series    `json:"series"`
}

type stop struct {
	Reason string `json:"reason"`
	Detail string `json:"detail"`
}

type parts struct {
	Made    int `json:"made"`
	Earlier int `json:"earlier"`
}

type input struct {
	URI        string    `json:"uri"`
	Bytes      int64     `json:"bytes"`
	ModifiedAt time.Time `json:"modified_at"`
}

type file struct {
	Name   string `json:"name"`
	Rows   int64  `json:"rows"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

type totals struct {
	Rows       int64                       `json:"rows"`
	Matched    int64                       `json:"matched"`
	NoMatch    int64                       `json:"no_match"`
	Rejected   int64                       `json:"rejected"`
	Failed     int64                       `json:"failed"`
	Suppressed int64                       `json:"suppressed"`
	Skipped    int64                       `json:"skipped"`
	Searches   int64                       `json:"searches"`
	Malformed  int64                       `json:"malformed"`
	Reasons    map[string]map[string]int64 `json:"reasons"`
}

// lines are the rows and what is none.
func (t totals) lines() int64 { return t.Rows + t.Malformed }

// answered are the rows that the resolver decided on.
func (t totals) answered() int64 { return t.Matched + t.NoMatch + t.Failed }

type service struct {
	Name    string             `json:"name"`
	Offline bool               `json:"offline"`
	Calls   calls              `json:"calls"`
	Latency latency            `json:"latency_seconds"`
	Waits   map[string]float64 `json:"waits_seconds"`
	Budget  budget             `json:"budget"`
	Unknown unknown            `json:"unknown_calls"`
	Parked  int64              `json:"parked_calls"`
}

type calls struct {
	Asked          int64            `json:"asked"`
	Closed         int64            `json:"closed"`
	Matched        int64            `json:"matched"`
	Stored         int64            `json:"stored"`
	Twins          int64            `json:"twins"`
	Calls          int64            `json:"calls"`
	ByClass        map[string]int64 `json:"by_class"`
	Retries        map[string]int64 `json:"retries"`
	Credits        int64            `json:"credits"`
	EarlierCalls   int64            `json:"earlier_calls"`
	EarlierCredits int64            `json:"earlier_credits"`
	Unknown        int64            `json:"unknown"`
	Refused        int64            `json:"refused"`
	Quarantined    int64            `json:"quarantined"`
}

type latency struct {
	P50 float64 `json:"p50"`
	P95 float64 `json:"p95"`
	P99 float64 `json:"p99"`
}

type budget struct {
	Calls              int64    `json:"calls"`
	Credits            int64    `json:"credits"`
	MaxCalls           *int64   `json:"max_calls"`
	MaxCredits         *int64   `json:"max_credits"`
	MaxDurationSeconds *float64 `json:"max_duration_seconds"`
}

// unknown leaves out which calls they are: the page is for passing around.
type unknown struct {
	Count int64 `json:"count"`
}

type series struct {
	StepSeconds    float64              `json:"step_seconds"`
	RowsPerSecond  []float64            `json:"rows_per_second"`
	CallsPerSecond []float64            `json:"calls_per_second"`
	Waiting        map[string][]float64 `json:"waiting"`
}

// read reads _report.json.
func read(data []byte) (*report, error) {
	r := new(report)
	if err := json.Unmarshal(data, r); err != nil {
		return nil, err
	}
	switch {
	case r.Format > format:
		return nil, fmt.Errorf("format %d is of a newer version of leadetl; this one reads %d", r.Format, format)
	case r.Format < 1 || r.Operation == "":
		return nil, fmt.Errorf("it is not the report of a run")
	}
	return r, nil
}

// manifest is what the page reads of _manifest.json.
type manifest struct {
	Format      int       `json:"format"`
	Program     string    `json:"program"`
	Operation   string    `json:"operation"`
	JobID       string    `json:"job_id"`
	Inputs      []input   `json:"inputs"`
	Totals      totals    `json:"totals"`
	CompletedAt time.Time `json:"completed_at"`
	Parts       []struct {
		file
		Files   []file `json:"files"` // the part's, where it has several
		Rejects *file  `json:"rejects"`
	} `json:"parts"`
}

// readManifest makes of _manifest.json what there is to report of a dataset
// whose run left no report.
func readManifest(data []byte) (*report, error) {
	var m manifest
	if err := json.Unmarshal(data, &m); err != nil {
		return nil, err
	}
	switch {
	case m.Format > format:
		return nil, fmt.Errorf("format %d is of a newer version of leadetl; this one reads %d", m.Format, format)
	case m.Format < 1 || m.Operation == "":
		return nil, fmt.Errorf("it is not the manifest of a dataset")
	}
	r := &report{
		Format: format, Program: m.Program, Operation: m.Operation, JobID: m.JobID, Inputs: m.Inputs,
		EndedAt: m.CompletedAt, Stop: stop{Reason: finished}, Totals: m.Totals,
	}
	for _, p := range m.Parts {
		if p.Files == nil {
			p.Files = []file{p.file}
		}
		r.Files = append(r.Files, p.Files...)
		if p.Rejects != nil {
			r.Files = append(r.Files, *p.Rejects)
		}
	}
	return r, nil
}
