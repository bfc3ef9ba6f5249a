package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// reference is reference data as both programs use it: ours imported into a
// directory, DuckDB's in sorted Parquet files.
type reference struct {
	people, companies, ranges, visits int
	end                               uint32 // the address after the last range
	directory, sorted                 string
}

func (b *bench) reference() *reference {
	return &reference{
		people: b.people, companies: max(1000, b.rows/100), ranges: b.rows / 10, visits: b.rows / 10,
		directory: b.path("directory"), sorted: b.path("sorted"),
	}
}

// lookups measures imports and every operation that reads a directory. It
// alternates with DuckDB's hash and ASOF joins of the same files.
func (b *bench) lookups(ctx context.Context) (err error) {
	ref := b.reference()
	defer func() { err = errors.Join(err, os.RemoveAll(ref.directory), os.RemoveAll(ref.sorted)) }()
	if err := b.importAll(ctx, ref); err != nil {
		return err
	}
	for _, l := range []struct {
		operation string
		column    string
		target    float64
		write     func(name string) error
	}{
		{"ip_to_company", "ip", 2.5, func(name string) error { return writeIPs(name, b.rows, 0, ref.end) }},
		{"deanonymization", "ip", 2, func(name string) error { return writeIPs(name, b.rows, ref.visits, ref.end) }},
		{"enrichment", "url", 2, func(name string) error { return writeProfiles(name, b.rows, ref.people) }},
		{"network_to_hem", "url", 2, func(name string) error { return writeProfiles(name, b.rows, ref.people) }},
		{"network_to_phone", "url", 2, func(name string) error { return writeProfiles(name, b.rows, ref.people) }},
	} {
		in := b.path("lookups.csv")
		if err := l.write(in); err != nil {
			return err
		}
		if err := errors.Join(b.lookup(ctx, ref, l.operation, l.column, in, l.target), os.Remove(in)); err != nil {
			return fmt.Errorf("%s: %w", l.operation, err)
		}
	}
	if err := b.emailsWithDirectory(ctx, ref); err != nil {
		return err
	}
	return b.memoryByPeople(ctx, ref)
}

// importAll writes reference data and imports it with both programs.
func (b *bench) importAll(ctx context.Context, ref *reference) (err error) {
	if err := os.MkdirAll(ref.sorted, 0o755); err != nil {
		return err
	}
	file := func(kind string) string { return b.path(kind + ".csv") }
	if ref.end, err = writeRanges(file("ip-ranges"), ref.ranges, ref.companies); err != nil {
		return err
	}
	if err := errors.Join(writeCompanies(file("companies"), ref.companies), writePeople(file("people"), ref.people, ref.companies),
		writeVisits(file("visits"), ref.visits, ref.people, ref.end)); err != nil {
		return err
	}
	for _, kind := range []struct {
		name string
		rows int
	}{{"companies", ref.companies}, {"people", ref.people}, {"ip-ranges", ref.ranges}, {"visits", ref.visits}} {
		ours, err := b.leadetl(ctx, "directory", "import", "--directory", ref.directory, "--"+kind.name, file(kind.name))
		if err != nil {
			return err
		}
		theirs, err := measure(ctx, nil, b.path("duckdb"), "import", kind.name, file(kind.name), ref.sorted+"/"+kind.name+".parquet")
		if err := errors.Join(err, os.Remove(file(kind.name))); err != nil {
			return err
		}
		if kind.name == "people" || kind.name == "ip-ranges" {
			b.report.times(series{what: "leadetl, import of " + kind.name, rows: kind.rows, runs: []usage{ours}},
				series{what: "DuckDB, read and sort " + kind.name, rows: kind.rows, runs: []usage{theirs}})
			what := fmt.Sprintf("import of %s %s, CPU against DuckDB sorting them into Parquet", millions(kind.rows), kind.name)
			b.report.below(what, 2, ours.cpu.Seconds()/theirs.cpu.Seconds(), "%.2f×")
			b.report.below("  heap and other memory of its own", 400, float64(ours.peakOwn)/1e6, "%.0f MB")
		}
	}
	return nil
}

// lookup measures an operation against DuckDB.
func (b *bench) lookup(ctx context.Context, ref *reference, operation, column, in string, target float64) (err error) {
	out, theirs, again := b.path("found"), b.path("found.parquet"), b.path("again.parquet")
	defer func() {
		err = errors.Join(err, os.RemoveAll(out), os.RemoveAll(theirs), os.RemoveAll(again))
	}()
	mine, peer := series{what: "leadetl, " + operation, rows: b.rows}, series{what: "DuckDB, " + operation, rows: b.rows}
	for range b.rounds {
		if err := errors.Join(os.RemoveAll(out), os.RemoveAll(theirs)); err != nil {
			return err
		}
		u, err := b.leadetl(ctx, b.job(operation, in, out, "--directory", ref.directory, "--column", column)...)
		if err != nil {
			return err
		}
		mine.runs = append(mine.runs, u)
		if u, err = measure(ctx, nil, b.path("duckdb"), "lookup", operation, in, ref.sorted, theirs); err != nil {
			return err
		}
		peer.runs = append(peer.runs, u)
	}
	if err := b.sameRows(ctx, operation, out+"/*.parquet", theirs); err != nil {
		return err
	}
	_, err = measure(ctx, nil, b.path("duckdb"), "rewrite", out+"/*.parquet", again)
	if err := errors.Join(err, os.Remove(theirs)); err != nil {
		return err
	}
	sizes, err := sizesOf(out, again)
	if err != nil {
		return err
	}
	r := &b.report
	r.times(mine, peer)
	r.atLeast(fmt.Sprintf("%s %s, against DuckDB", millions(b.rows), operation), target, peer.wall().Seconds()/mine.wall().Seconds(), "%.2f×")
	r.atLeast("  in CPU seconds", target, peer.cpu().Seconds()/mine.cpu().Seconds(), "%.2f×")
	r.below("  size of the files, against those of DuckDB", 1.05, sizes[0]/sizes[1], "%.3f×")
	if operation == "enrichment" {
		return b.verify(ctx, out)
	}
	return nil
}

// sizesOf returns the bytes of the Parquet files in a folder, and of a file.
func sizesOf(folder, file string) (sizes [2]float64, err error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return sizes, err
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && strings.HasSuffix(e.Name(), ".parquet") {
			sizes[0] += float64(info.Size())
		}
	}
	info, err := os.Stat(file)
	if err == nil {
		sizes[1] = float64(info.Size())
	}
	return sizes, err
}

// verify measures leadetl verify of a dataset of enrichment.
func (b *bench) verify(ctx context.Context, dataset string) error {
	u, err := b.leadetl(ctx, "verify", dataset)
	if err != nil {
		return err
	}
	s := series{what: "leadetl, verify of enrichment", rows: b.rows, runs: []usage{u}}
	b.report.times(s)
	b.report.atLeast("verify of enrichment", 250_000, s.speed(), "%.0f rows/s")
	return nil
}

// emailsWithDirectory measures email_to_hem with and without people.
func (b *bench) emailsWithDirectory(ctx context.Context, ref *reference) (err error) {
	in, out := b.path("known.csv"), b.path("found")
	defer func() { err = errors.Join(err, os.Remove(in), os.RemoveAll(out)) }()
	if err := writeKnownEmails(in, b.rows, ref.people); err != nil {
		return err
	}
	all := []series{{what: "leadetl, email_to_hem of emails half of which are known"}, {what: "leadetl, the same with --directory"}}
	for range b.rounds {
		for i, more := range [][]string{nil, {"--directory", ref.directory}} {
			u, err := b.leadetl(ctx, b.job("email_to_hem", in, out, more...)...)
			if err := errors.Join(err, os.RemoveAll(out)); err != nil {
				return err
			}
			all[i].rows, all[i].runs = b.rows, append(all[i].runs, u)
		}
	}
	b.report.times(all...)
	b.report.atLeast("email_to_hem with --directory, against without", 0.7, all[0].wall().Seconds()/all[1].wall().Seconds(), "%.2f×")
	b.report.note("  in CPU seconds", fmt.Sprintf("%.2f×", all[0].cpu().Seconds()/all[1].cpu().Seconds()))
	return nil
}

// memoryByPeople measures the memory of enrichment with these people and with a
// tenth of them.
func (b *bench) memoryByPeople(ctx context.Context, ref *reference) (err error) {
	few, people, in, out := b.path("few"), b.path("people.csv"), b.path("lookups.csv"), b.path("found")
	defer func() {
		err = errors.Join(err, os.RemoveAll(few), os.RemoveAll(people), os.RemoveAll(in), os.RemoveAll(out))
	}()
	if err := errors.Join(writePeople(people, ref.people/10, ref.companies), writeProfiles(in, b.rows/2, ref.people)); err != nil {
		return err
	}
	if _, err := b.leadetl(ctx, "directory", "import", "--directory", few, "--people", people); err != nil {
		return err
	}
	for _, d := range []struct {
		directory string
		people    int
	}{{few, ref.people / 10}, {ref.directory, ref.people}} {
		u, err := b.leadetl(ctx, b.job("enrichment", in, out, "--directory", d.directory, "--column", "url")...)
		if err := errors.Join(err, os.RemoveAll(out)); err != nil {
			return err
		}
		b.report.below("enrichment through "+millions(d.people)+" people: heap and other memory of its own", 400, float64(u.peakOwn)/1e6, "%.0f MB")
		b.report.note("  with the pages of the directory", strconv.Itoa(int(u.peakRSS/1e6))+" MB")
	}
	return nil
}
