package sinks

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"slices"
	"time"

	"github.com/leadetl/leadetl/sinks/place"
)

// Comparison says what the files of leadetl changes are, beside them. It is written before the
// first file, and again with counts and files before _SUCCESS. So a folder of a killed process is
// known as such, and holds nothing else.
type Comparison struct {
	Of   string    `json:"of"` // job_id of the new dataset
	OfAt time.Time `json:"of_completed_at"`
	Changes
}

// IsOf reports whether two comparisons are of the same datasets, in the same way.
func (c *Comparison) IsOf(o *Comparison) bool {
	return c.Of == o.Of && c.OfAt.Equal(o.OfAt) && c.Since == o.Since && c.SinceAt.Equal(o.SinceAt) &&
		c.By == o.By && slices.Equal(c.Compare, o.Compare) && slices.Equal(c.Was, o.Was)
}

// Compared is a folder that has, in place of a dataset, the rows in which two differ.
type Compared struct{ *Dataset }

// Comparison reads the comparison that the files of the folder are of; nil if they are of none.
func (d Compared) Comparison() (c *Comparison, finished bool, err error) {
	data, err := d.place.Read(place.ComparisonName)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	c = new(Comparison)
	if json.Unmarshal(data, c) != nil {
		c = new(Comparison) // damaged: of other datasets
	}
	success, err := d.place.Read(SuccessName)
	if errors.Is(err, fs.ErrNotExist) {
		return c, false, nil
	}
	return c, err == nil && bytes.Equal(success, successOf(place.ComparisonName, data)), err
}

// Begin removes the files of an earlier one, and writes what the files will be.
func (d Compared) Begin(c *Comparison) error {
	earlier, _, err := d.Comparison()
	if err == nil && earlier != nil {
		err = d.Clear()
	}
	if err != nil {
		return err
	}
	_, err = d.describe(place.ComparisonName, c)
	return err
}

// End checks all files, and writes _SUCCESS.
func (d Compared) End(c *Comparison) error {
	d.Refresh()
	if err := d.CheckFiles(c.Files); err != nil {
		return err
	}
	return d.succeed(place.ComparisonName, c)
}
