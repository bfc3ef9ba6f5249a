package report

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/leadetl/leadetl/sinks"
)

// parse reads _report.json.
func parse(data []byte) (*Report, error) {
	r := new(Report)
	if err := json.Unmarshal(data, r); err != nil {
		return nil, err
	}
	if r.Format < 1 || r.Operation == "" {
		return nil, errors.New("it is not the report of a run")
	}
	return r, checkFormat(r.Format, Format)
}

// parseManifest makes a report from _manifest.json, for a dataset without
// _report.json.
func parseManifest(data []byte) (*Report, error) {
	var m sinks.Manifest
	if err := json.Unmarshal(data, &m); err != nil {
		return nil, err
	}
	if m.Format < 1 || m.Operation == "" {
		return nil, errors.New("it is not the manifest of a dataset")
	}
	if err := checkFormat(m.Format, sinks.ManifestFormat); err != nil {
		return nil, err
	}
	r := &Report{
		Format: Format, Program: m.Program, Operation: m.Operation, JobID: m.JobID, Inputs: m.Inputs,
		EndedAt: m.CompletedAt, Stop: Stop{Reason: StopFinished}, Counts: Counts{Totals: m.Totals},
	}
	for _, p := range m.Parts {
		r.Files = append(r.Files, p.All()...)
	}
	return r, nil
}

func checkFormat(found, known int) error {
	if found != known {
		return fmt.Errorf("format %d is of another version of leadetl; this one reads %d", found, known)
	}
	return nil
}

// lines counts the rows and the malformed lines.
func lines(t sinks.Totals) int64 { return t.Rows + t.Malformed }

// answered counts the rows that the resolver decided.
func answered(t sinks.Totals) int64 { return t.Matched + t.NoMatch + t.Failed }
