package main

import (
	"context"
	"errors"
	"fmt"
	"os"
)

// emails measures the main job against DuckDB and the hash-only loop, in turns,
// and then a run that finds the job finished.
func (b *bench) emails(ctx context.Context) error {
	in, ours, theirs := b.path("emails.csv"), b.path("hems"), b.path("duckdb.parquet")
	defer func() { _ = errors.Join(os.Remove(in), os.RemoveAll(ours), os.Remove(theirs)) }()
	if err := writeEmails(in, b.rows); err != nil {
		return err
	}
	job := b.job("email_to_hem", in, ours)
	all := []series{
		{what: "leadetl, three hashes"},
		{what: "DuckDB, the same columns"},
		{what: "DuckDB, without source_row"},
		{what: "hash-only loop"},
	}
	for range b.rounds {
		for i, do := range []func() (usage, error){
			func() (usage, error) { return b.leadetl(ctx, job...) },
			func() (usage, error) { return measure(ctx, nil, b.path("duckdb"), "copy", in, theirs, "source_row") },
			func() (usage, error) { return measure(ctx, nil, b.path("duckdb"), "copy", in, theirs) },
			func() (usage, error) { return measure(ctx, nil, b.path("hashonly"), in) },
		} {
			if i == 0 {
				if err := os.RemoveAll(ours); err != nil {
					return err
				}
			}
			u, err := do()
			if err != nil {
				return err
			}
			all[i].rows = b.rows
			all[i].runs = append(all[i].runs, u)
		}
	}
	if err := b.sameRows(ctx, "email_to_hem", ours+"/*.parquet", theirs); err != nil {
		return err
	}
	again, err := b.leadetl(ctx, job...)
	if err != nil {
		return err
	}

	rows, mine := millions(b.rows), all[0]
	ratio := func(of series) float64 { return of.wall().Seconds() / mine.wall().Seconds() }
	cpu := func(of series) float64 { return of.cpu().Seconds() / mine.cpu().Seconds() }
	b.report.times(all...)
	b.report.atLeast(rows+" emails → md5, sha1, sha256 → Parquet, against DuckDB", 3.5, ratio(all[1]), "%.2f×")
	b.report.atLeast("  in CPU seconds", 3.5, cpu(all[1]), "%.2f×")
	b.report.atLeast("the same, DuckDB without the column source_row", 3.5, ratio(all[2]), "%.2f×")
	b.report.atLeast("  in CPU seconds", 3.5, cpu(all[2]), "%.2f×")
	b.report.atLeast("the same against the hash-only loop", 0.5, ratio(all[3]), "%.2f×")
	b.report.note("  in CPU seconds", fmt.Sprintf("%.2f×", cpu(all[3])))
	b.report.below("run of the finished job", 2, again.wall.Seconds(), "%.2f s")
	return nil
}

// sameRows fails if the two programs did not write the same rows.
func (b *bench) sameRows(ctx context.Context, operation, ours, theirs string) error {
	var sums [2]string
	for i, glob := range []string{ours, theirs} {
		u, err := measure(ctx, nil, b.path("duckdb"), "sum", operation, glob)
		if err != nil {
			return err
		}
		sums[i] = u.output
	}
	if sums[0] != sums[1] {
		return fmt.Errorf("the rows differ: ours %sDuckDB's %s", sums[0], sums[1])
	}
	return nil
}
