package sinks

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/leadetl/leadetl/internal/atomicfile"
)

const reportName = "_report.json"

// reportNames are the files that tell of the last run. They are of the
// dataset's folder and no part of the dataset: no manifest lists them, and a
// folder that holds nothing else is empty.
var reportNames = []string{reportName, "_report.html"}

func isReport(name string) bool { return slices.Contains(reportNames, name) }

// ReportPath is where WriteReport puts the report.
func (d *Dataset) ReportPath() string { return filepath.Join(d.dir, reportName) }

// WriteReport replaces the report of the last run, whole or not at all.
func (d *Dataset) WriteReport(data []byte) error { return atomicfile.Write(d.ReportPath(), data) }

// Report reads the report of the last run; nil when there is none.
func (d *Dataset) Report() ([]byte, error) {
	data, err := os.ReadFile(d.ReportPath())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return data, err
}
