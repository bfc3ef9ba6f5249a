package job

import (
	"fmt"
	"slices"

	"github.com/leadetl/leadetl/pipeline/changes"
	"github.com/leadetl/leadetl/sinks"
)

// Changes asks for the rows that differ from an earlier dataset.
type Changes struct {
	changes.Settings
	Before *changes.Dataset // nil: all rows are added
}

// Resolve gives the settings the names that columns have in the dataset. It refuses an earlier
// dataset, or settings, that datasets with these columns cannot be compared with. leavesOut says
// that the job has suppression lists.
func (c *Changes) Resolve(j Job, of Columns, leavesOut bool) error {
	if c == nil {
		return nil
	}
	shape := changes.NewShape(j.Operation, of.Layout.Columns(), of.Layout.Partition(), leavesOut, of.Layout.Inputs(), of.Read[of.Identifier])
	if c.Before != nil {
		if err := changes.Comparable(c.Before.Manifest, shape); err != nil {
			return fmt.Errorf("%s: %w", c.Before.Dir, err)
		}
	}
	with, err := shape.Resolve(c.Settings)
	c.Settings = with
	return err
}

// Are reports whether changes were made as c asks.
func (c *Changes) Are(made *sinks.Changes) bool {
	var before *sinks.Manifest
	if c.Before != nil {
		before = c.Before.Manifest
	}
	return made != nil && made.IsSince(before) && made.By == c.Column() && slices.Equal(made.Compare, c.Compare) && slices.Equal(made.Was, c.Was)
}
