package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
)

// reference is reference data as both programs use it: files, which DuckDB reads at every
// look-up, our directory of them, and DuckDB's tables of them.
type reference struct{ files, directory, tables string }

func (b *bench) reference(name string) (*reference, error) {
	r := &reference{b.path(name), b.path(name + "-directory"), b.path(name + ".duckdb")}
	return r, os.MkdirAll(r.files, 0o755)
}

func (r *reference) file(kind string) string { return r.files + "/" + kind + ".csv" }

func (r *reference) remove() error {
	return errors.Join(os.RemoveAll(r.files), os.RemoveAll(r.directory), os.RemoveAll(r.tables))
}

// importFile imports a kind with both programs.
func (b *bench) importFile(ctx context.Context, r *reference, kind string) (ours, theirs usage, err error) {
	if ours, err = b.leadetl(ctx, "directory", "import", "--directory", r.directory, "--"+kind, r.file(kind)); err == nil {
		theirs, err = measure(ctx, nil, b.path("duckdb"), "import", kind, r.file(kind), r.tables)
	}
	return ours, theirs, err
}

// operation is an operation on a list, with the columns of its answers that an analyst
// selects.
type operation struct {
	name, column string
	write        func(d *userData, name string, rows int) error
	target       float64 // against DuckDB that reads CSV, the analyst's columns
	native       float64 // the same against its tables
	analyst      string
}

var operations = []operation{
	{
		"ip_to_company", "ip", func(d *userData, name string, rows int) error { return d.writeIPs(name, rows, false) }, 3.3, 1.9,
		"org_type,company_name,company_domain,company_website_url,company_industry,company_revenue_min,company_revenue_max,company_employee_min,company_employee_max,company_year_founded,company_city,company_state",
	},
	{
		"deanonymization", "ip", func(d *userData, name string, rows int) error { return d.writeIPs(name, rows, true) }, 3.3, 1.9,
		"match_level,confidence,first_name,last_name,job_title,email,phone,hem_sha256,company_name,company_domain,company_industry,company_state",
	},
	{
		"enrichment", "url", (*userData).writeProfiles, 2.6, 1.7,
		"first_name,last_name,job_title,email,phone,city,state,hem_sha256,company_name,company_domain,company_industry,company_employee_min",
	},
	{"network_to_hem", "url", (*userData).writeProfiles, 2.6, 1.7, "hem_md5,hem_sha1,hem_sha256,network_url"},
	{"network_to_phone", "url", (*userData).writeProfiles, 2.1, 1.1, "phone,phone_region,phone_type"},
}

// allColumns is the target against DuckDB that reads CSV and writes all columns.
const allColumns = 1.3

// importAll writes reference data and measures their imports.
func (b *bench) importAll(ctx context.Context, d *userData, ref *reference) error {
	for _, kind := range []struct {
		name   string
		rows   int
		write  func(name string) error
		target float64 // in processor time
	}{
		{"companies", d.companies, d.writeCompanies, 0}, {"people", d.people, d.writePeople, 1 / 1.5},
		{"ip-ranges", len(d.ranges), d.writeRanges, 0}, {"visits", d.visits(), d.writeVisits, 0},
	} {
		if err := kind.write(ref.file(kind.name)); err != nil {
			return err
		}
		ours, theirs, err := b.importFile(ctx, ref, kind.name)
		if err != nil {
			return err
		}
		b.report.compare(comparison{what: "import of " + kind.name, rows: kind.rows, against: "DuckDB, sorted table", target: kind.target, ofCPU: true,
			ours: []usage{ours}, theirs: []usage{theirs}})
	}
	return nil
}

// lookups measures imports, and every operation that reads a directory, at each size.
func (b *bench) lookups(ctx context.Context) (err error) {
	d, err := newUserData(b.companies, b.people, 3*b.companies)
	if err != nil {
		return err
	}
	ref, err := b.reference("users")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ref.remove()) }()
	if err := b.importAll(ctx, d, ref); err != nil {
		return err
	}
	for _, rows := range b.sizes {
		for _, o := range operations {
			if err := b.operation(ctx, d, ref, o, rows); err != nil {
				return fmt.Errorf("%s of %d rows: %w", o.name, rows, err)
			}
		}
		if err := b.emailsWithDirectory(ctx, d, ref, rows); err != nil {
			return err
		}
		var most int64
		for _, c := range b.report.current().comparisons {
			if c.rows == rows {
				most = max(most, series{runs: c.ours}.own())
			}
		}
		b.report.below("largest memory of its own at "+millions(rows)+" rows", 400, float64(most)/1e6, "%.0f MB")
	}
	return nil
}

// operation measures an operation with all columns and with those of an analyst, against
// DuckDB that reads reference data from CSV, and from its tables; all columns from tables at full size alone.
func (b *bench) operation(ctx context.Context, d *userData, ref *reference, o operation, rows int) (err error) {
	in := b.path("list.csv")
	defer func() { err = errors.Join(err, os.RemoveAll(in)) }()
	if err := o.write(d, in, rows); err != nil {
		return err
	}
	l := list{in, rows}
	all := []peer{{"DuckDB, CSV", ref.files, allColumns}}
	if b.full {
		all = append(all, peer{"DuckDB, tables", ref.tables, 0})
	}
	if err := b.lookup(ctx, o, "all", l, ref, all...); err != nil {
		return err
	}
	return b.lookup(ctx, o, o.analyst, l, ref, peer{"DuckDB, CSV", ref.files, o.target}, peer{"DuckDB, tables", ref.tables, o.native})
}

// list is a file and its number of rows.
type list struct {
	name string
	rows int
}

// peer is DuckDB with reference data in a folder of CSV files or in tables.
type peer struct {
	name, reference string
	target          float64
}

// lookup measures an operation with some columns, or "all", against peers.
func (b *bench) lookup(ctx context.Context, o operation, columns string, in list, ref *reference, peers ...peer) (err error) {
	out := b.path("ours")
	defer func() { err = errors.Join(err, os.RemoveAll(out)) }()
	args := []string{"run", o.name, "--in", in.name, "--out", out, "--quiet", "--directory", ref.directory, "--id-column", o.column}
	written := columns
	if columns != "all" {
		written = fmt.Sprint(strings.Count(columns, ",") + 1)
		args = append(args, "--select", "input,"+columns)
	}
	runs := []func() (usage, error){func() (usage, error) { return b.newDataset(ctx, out, args) }}
	theirs := func(i int) string { return b.path(fmt.Sprintf("theirs-%d.parquet", i)) }
	for i, p := range peers {
		defer func() { err = errors.Join(err, os.RemoveAll(theirs(i))) }()
		runs = append(runs, func() (usage, error) {
			return measure(ctx, nil, b.path("duckdb"), "lookup", o.name, columns, in.name, p.reference, theirs(i))
		})
	}
	if columns != "all" {
		runs = append(runs, func() (usage, error) {
			return measure(ctx, nil, b.path("floor"), o.name, in.name, ref.files, columns)
		})
	}
	used, err := b.inTurns(b.rounds, runs...)
	if err != nil {
		return err
	}
	files, err := b.fileSizes(ctx, out)
	if err != nil {
		return err
	}
	var floor time.Duration // of a row
	if columns != "all" {
		if floor, err = floorOf(used[len(peers)+1]); err != nil {
			return err
		}
	}
	for i, p := range peers {
		matches, err := b.sameRows(ctx, out+"/*.parquet", theirs(i))
		if err != nil {
			return err
		}
		b.report.compare(comparison{what: o.name, rows: in.rows, columns: written, against: p.name, target: p.target,
			ours: used[0], theirs: used[i+1], files: files, matches: matches, floor: floor})
	}
	if o.name == "enrichment" && columns == "all" {
		return b.verify(ctx, out, in.rows)
	}
	return nil
}

// floorOf is the least time of a row in the floor's loop. It is an error if the loop found nobody.
func floorOf(runs []usage) (least time.Duration, err error) {
	for _, u := range runs {
		var rows, matches, loop int64
		if _, err := fmt.Sscan(u.output, &rows, &matches, &loop); err != nil || rows*matches == 0 {
			return 0, fmt.Errorf("the floor says %q, %v; want rows, matches and nanoseconds", u.output, err)
		}
		if of := time.Duration(loop / rows); least == 0 || of < least {
			least = of
		}
	}
	return least, nil
}

// verify measures leadetl verify of a dataset of enrichment.
func (b *bench) verify(ctx context.Context, dataset string, rows int) error {
	u, err := b.leadetl(ctx, "verify", dataset)
	if err != nil {
		return err
	}
	b.report.atLeast("verify of "+millions(rows)+" enrichment", 250_000, series{rows: rows, runs: []usage{u}}.speed(), "%.0f rows/s")
	return nil
}

// emailsWithDirectory measures email_to_hem with people, against without.
func (b *bench) emailsWithDirectory(ctx context.Context, d *userData, ref *reference, rows int) (err error) {
	in, out := b.path("list.csv"), b.path("ours")
	defer func() { err = errors.Join(err, os.RemoveAll(in), os.RemoveAll(out)) }()
	if err := d.writeEmails(in, rows); err != nil {
		return err
	}
	args := []string{"run", "email_to_hem", "--in", in, "--out", out, "--quiet"}
	used, err := b.inTurns(b.rounds,
		func() (usage, error) { return b.newDataset(ctx, out, append(args, "--directory", ref.directory)) },
		func() (usage, error) { return b.newDataset(ctx, out, args) },
	)
	if err == nil {
		b.report.compare(comparison{what: "email_to_hem with --directory", rows: rows, columns: "all", against: "leadetl without", target: 0.7,
			ours: used[0], theirs: used[1]})
	}
	return err
}

// manyCompanies measures ip_to_company with ten times as many companies, against fewer.
func (b *bench) manyCompanies(ctx context.Context) (err error) {
	few, rows := b.companies/3, 10*b.companies
	in, out := b.path("list.csv"), b.path("ours")
	defer func() { err = errors.Join(err, os.RemoveAll(in), os.RemoveAll(out)) }()
	var runs []func() (usage, error)
	for _, companies := range []int{10 * few, few} {
		d, err := newUserData(companies, 0, 15*few)
		if err != nil {
			return err
		}
		ref, err := b.reference(fmt.Sprint("companies-", companies))
		if err != nil {
			return err
		}
		defer func() { _ = ref.remove() }() // the whole folder is removed at the end
		if err := errors.Join(d.writeIPs(in, rows, false), d.writeCompanies(ref.file("companies")), d.writeRanges(ref.file("ip-ranges"))); err != nil {
			return err
		}
		imports := []string{"directory", "import", "--directory", ref.directory, "--companies", ref.file("companies"), "--ip-ranges", ref.file("ip-ranges")}
		if _, err := b.leadetl(ctx, imports...); err != nil {
			return err
		}
		runs = append(runs, func() (usage, error) {
			return b.newDataset(ctx, out, []string{"run", "ip_to_company", "--in", in, "--out", out, "--quiet", "--directory", ref.directory})
		})
	}
	used, err := b.inTurns(b.rounds, runs...)
	if err == nil {
		b.report.compare(comparison{what: "ip_to_company, " + millions(10*few) + " companies", rows: rows, columns: "all", against: "leadetl, " + millions(few),
			target: 1 / 1.15, ours: used[0], theirs: used[1]})
	}
	return err
}

// firstData measures ip_to_company with the data of the first benchmarks: companies of a
// hundred bytes, and addresses that are equally frequent.
func (b *bench) firstData(ctx context.Context) (err error) {
	ref, err := b.reference("first")
	if err != nil {
		return err
	}
	in := list{b.path("list.csv"), b.rows}
	defer func() { err = errors.Join(err, ref.remove(), os.RemoveAll(in.name)) }()
	companies := max(1000, b.rows/100)
	end, err := writeRanges(ref.file("ip-ranges"), b.rows/10, companies)
	if err := errors.Join(err, writeCompanies(ref.file("companies"), companies), writeIPs(in.name, b.rows, end)); err != nil {
		return err
	}
	for _, kind := range []string{"companies", "ip-ranges"} {
		if _, _, err := b.importFile(ctx, ref, kind); err != nil {
			return err
		}
	}
	return b.lookup(ctx, operations[0], "all", in, ref, peer{"DuckDB, tables", ref.tables, 2.5})
}
