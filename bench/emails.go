package main

import (
	"context"
	"errors"
	"os"
)

// emails measures the main job against DuckDB and the floor, in turns,
// and then a run that finds the job finished. Fewer than ten million rows would measure the start of the programs.
func (b *bench) emails(ctx context.Context) (err error) {
	in, ours, theirs := b.path("emails.csv"), b.path("hems"), b.path("duckdb.parquet")
	defer func() { err = errors.Join(err, os.RemoveAll(in), os.RemoveAll(ours), os.RemoveAll(theirs)) }()
	rows, rounds := b.rows, b.rounds
	if b.rows == usualSize {
		rows, rounds = fullSize, 1
	}
	if err := writeEmails(in, rows); err != nil {
		return err
	}
	job := b.job(rows, "email_to_hem", in, ours)
	used, err := b.inTurns(rounds,
		func() (usage, error) { return b.newDataset(ctx, ours, job) },
		func() (usage, error) { return measure(ctx, nil, b.path("duckdb"), "copy", in, theirs) },
		func() (usage, error) { return measure(ctx, nil, b.path("floor"), "hashes", in) },
	)
	if err != nil {
		return err
	}
	matches, err := b.sameRows(ctx, ours+"/*.parquet", theirs)
	if err != nil {
		return err
	}
	files, err := b.fileSizes(ctx, ours)
	if err != nil {
		return err
	}
	again, err := b.leadetl(ctx, job...)
	if err != nil {
		return err
	}
	c := comparison{what: "email_to_hem", rows: rows, columns: "all", against: "DuckDB", target: 3.5, ours: used[0], theirs: used[1], files: files, matches: matches}
	b.report.compare(c)
	c.against, c.target, c.theirs, c.files = "the floor", 0.55, used[2], [2]int64{}
	b.report.compare(c)
	b.report.below("run of the finished job", 2, again.wall.Seconds(), "%.2f s")
	return nil
}
