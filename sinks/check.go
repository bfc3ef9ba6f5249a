package sinks

import "context"

// Check reports whether f is still as it was recorded. A file of the same size
// and modification time, on S3 of the same size and ETag, is trusted; any other
// is read and its checksum compared. What differs, is gone, or cannot be told
// for want of a checksum is ErrCorrupt.
func (d *Dataset) Check(f File) error { return d.place.check(f) }

// CheckPart checks all files of a part.
func (d *Dataset) CheckPart(p Part) error {
	for _, f := range p.All() {
		if err := d.Check(f); err != nil {
			return err
		}
	}
	return nil
}

// SumLanes is how many files Sum reads side by side at the best.
const SumLanes = 8

// Sum takes the SHA-256 of published files that have none yet.
func (d *Dataset) Sum(ctx context.Context, files []*File) error { return d.place.sum(ctx, files) }
