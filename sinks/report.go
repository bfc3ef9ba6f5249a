package sinks

import (
	"errors"
	"io/fs"
	"slices"
)

// The files that tell of the last run: what programs read, and the same as a
// page for people.
const (
	ReportName     = "_report.json"
	ReportPageName = "_report.html"
)

// reportNames are those files. They are of the dataset's folder and no part of
// the dataset: no manifest lists them, and a folder that holds nothing else is
// empty.
var reportNames = []string{ReportPageName, ReportName}

func isReport(name string) bool { return slices.Contains(reportNames, name) }

// ReportPath is where WriteReport puts the report, ReportPagePath the page.
func (d *Dataset) ReportPath() string     { return d.place.path(ReportName) }
func (d *Dataset) ReportPagePath() string { return d.place.path(ReportPageName) }

// WriteReport replaces the report of the last run and its page, each whole or
// not at all. A page that is there is of the report that is there: the old one
// goes before the report is replaced.
func (d *Dataset) WriteReport(report, page []byte) error {
	if err := d.place.remove(ReportPageName); err != nil {
		return err
	}
	if err := d.place.write(ReportName, report); err != nil {
		return err
	}
	return d.place.write(ReportPageName, page)
}

// Report reads the report of the last run; nil when there is none.
func (d *Dataset) Report() ([]byte, error) {
	data, err := d.place.read(ReportName)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return data, err
}
