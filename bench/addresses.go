package main

import (
	"context"
	"errors"
	"os"
)

// addresses measures IP lookups: as many rows as the main job, a tenth as many
// IP ranges in the directory, and a hundredth as many companies.
func (b *bench) addresses(ctx context.Context) error {
	ranges, companies := b.rows/10, b.rows/100
	in, out, dir := b.path("ips.csv"), b.path("companies"), b.path("directory")
	rangesFile, companiesFile := b.path("ip-ranges.csv"), b.path("companies.csv")
	defer func() {
		_ = errors.Join(os.Remove(in), os.RemoveAll(out), os.RemoveAll(dir), os.Remove(rangesFile), os.Remove(companiesFile))
	}()
	end, err := writeRanges(rangesFile, ranges, companies)
	if err := errors.Join(err, writeCompanies(companiesFile, companies), writeIPs(in, b.rows, end)); err != nil {
		return err
	}
	imported, err := b.leadetl(ctx, "directory", "import", "--directory", dir, "--companies", companiesFile, "--ip-ranges", rangesFile)
	if err != nil {
		return err
	}
	lookups := series{what: "leadetl, IP addresses", rows: b.rows}
	for range b.rounds {
		u, err := b.leadetl(ctx, b.job("ip_to_company", in, out, "--directory", dir)...)
		if err := errors.Join(err, os.RemoveAll(out)); err != nil {
			return err
		}
		lookups.runs = append(lookups.runs, u)
	}
	imports := series{what: "leadetl, import of ranges and companies", rows: ranges + companies, runs: []usage{imported}}
	b.report.series = append(b.report.series, imports, lookups)
	b.report.atLeast(millions(b.rows)+" IP addresses through "+millions(ranges)+" ranges", 500_000, lookups.speed(), "%.0f rows/s")
	b.report.note("import of the "+millions(ranges)+" ranges and "+grouped(companies)+" companies", imported.wall.Round(10e6).String())
	return nil
}
