package sinks

import (
	"errors"
	"io/fs"
	"slices"
)

// WriteReport replaces the report of the last run and its page, each whole or
// not at all. A page that is there is of the report that is there: the old one
// goes before the report is replaced.
func (d *Dataset) WriteReport(report, page []byte) error {
	if err := d.place.Remove(ReportPageName); err != nil {
		return err
	}
	if err := d.place.Write(ReportName, report); err != nil {
		return err
	}
	return d.place.Write(ReportPageName, page)
}

// HasReport reports whether the report and its page are there.
func (d *Dataset) HasReport() (bool, error) {
	names, _, err := d.place.Files()
	return err == nil && slices.Contains(names, ReportName) && slices.Contains(names, ReportPageName), err
}

// Report reads the report of the last run; nil when there is none.
func (d *Dataset) Report() ([]byte, error) {
	data, err := d.place.Read(ReportName)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return data, err
}
