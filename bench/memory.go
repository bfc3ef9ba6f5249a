package main

import (
	"context"
	"errors"
	"fmt"
	"os"
)

// memory measures the peak memory of the main job at a tenth of the size, at the
// size, and at three times the size.
func (b *bench) memory(ctx context.Context) error {
	var peaks []float64
	for _, rows := range []int{b.rows / 10, b.rows, b.rows * 3} {
		u, err := b.emailsOnce(ctx, rows)
		if err != nil {
			return err
		}
		peaks = append(peaks, float64(u.peakRSS))
		b.report.below("peak memory at "+millions(rows)+" rows", 400, float64(u.peakRSS)/1e6, "%.0f MB")
	}
	b.report.below(fmt.Sprintf("peak memory at %s against %s rows", millions(b.rows*3), millions(b.rows)), 1.1, peaks[2]/peaks[1], "%.2f×")
	return nil
}

func (b *bench) emailsOnce(ctx context.Context, rows int) (u usage, err error) {
	in, out := b.path("emails.csv"), b.path("hems")
	defer func() { err = errors.Join(err, os.Remove(in), os.RemoveAll(out)) }()
	if err := writeEmails(in, rows); err != nil {
		return usage{}, err
	}
	return b.leadetl(ctx, b.job(b.rows, "email_to_hem", in, out)...)
}
