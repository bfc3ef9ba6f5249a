package sinks

import (
	"errors"
	"io/fs"
	"slices"
)

// WriteReport replaces the report of the last run and its page, each whole or not at all.
// It removes the old page first, so that a page always belongs to its report.
func (d *Dataset) WriteReport(report, page []byte) error {
	if err := d.place.Remove(ReportPageName); err != nil {
		return err
	}
	if err := d.place.Write(ReportName, report); err != nil {
		return err
	}
	return d.place.Write(ReportPageName, page)
}

// HasReport reports whether the report and its page exist.
func (d *Dataset) HasReport() (bool, error) {
	names, _, err := d.place.Files()
	return err == nil && slices.Contains(names, ReportName) && slices.Contains(names, ReportPageName), err
}

// Report reads the report of the last run; nil without one.
func (d *Dataset) Report() ([]byte, error) {
	data, err := d.place.Read(ReportName)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return data, err
}
