package main

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/clitest"
	"github.com/leadetl/leadetl/cmd/leadetl/program"
	"github.com/leadetl/leadetl/pipeline/columns"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/sinks/warehouse"
)

var update = flag.Bool("update", false, "rewrite testdata/schema and the tables of columns and settings in docs/reference")

// requireFile compares a text with a file, or rewrites it.
func requireFile(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s is not what the program prints; go test ./cmd/leadetl -run TestSchema -update rewrites it:\n%s", path, got)
	}
}

// written stands on a page before what a test writes there.
const written = "<!-- A test writes the rest of this page. -->\n\n"

// requireTable compares a text with the end of a page.
func requireTable(t *testing.T, page, got string) {
	t.Helper()
	path := filepath.Join(clitest.ModuleRoot, page)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, _, found := strings.Cut(string(text), written)
	if !found {
		t.Fatalf("%s does not say where the test's text begins", page)
	}
	requireFile(t, path, before+written+got)
}

// TestSchemaGolden compares the tables of deanonymization, which has columns of
// nearly every type, with testdata/schema.
func TestSchemaGolden(t *testing.T) {
	for _, d := range warehouse.Warehouses {
		got := clitest.RunRaw(t, "schema", "deanonymization", "--dialect", string(d), "--select", "id,seen at,in_email,answers", "--normalize-names", "snake", "--drop-identifier", "--partition-by", "dt=2026-11-20")
		requireFile(t, filepath.Join(clitest.Samples, "schema", string(d)+".sql"), got)
	}
}

// TestSchemaColumns keeps the end of docs/reference/columns.md what the program says of the columns
// that its writer uses. The page has each line once, under the operations that have it.
func TestSchemaColumns(t *testing.T) {
	operations := slices.Concat(resolution.SingleRecord, resolution.Keyword)
	var lines []string // in the order in which they are first seen
	of := map[string][]string{}
	for _, op := range operations {
		args := []string{"schema", string(op), "--dialect", "markdown", "--select", "answers", "--resolver", "https://service.example"}
		if !op.IsKeyword() {
			args = append(args, "--multiple", "each")
		}
		if op == resolution.EmailToHEM {
			args = append(args, "--hem-profiles", "plain,uid2,google")
		}
		if columns.HasPhone(op) {
			args = append(args, "--phone-profiles", "e164,digits")
		}
		table := slices.Collect(strings.Lines(clitest.RunRaw(t, args...)))
		for _, line := range table[2:] {
			line = shortened(line)
			if of[line] == nil {
				lines = append(lines, line)
			}
			of[line] = append(of[line], string(op))
		}
	}
	var groups []string
	rows := map[string]string{}
	for _, line := range lines {
		group := blockOf(line, of[line])
		if rows[group] == "" {
			groups = append(groups, group)
		}
		rows[group] += line
	}
	var page strings.Builder
	for i, group := range groups {
		if i > 0 {
			page.WriteByte('\n')
		}
		fmt.Fprintf(&page, "### %s\n\n| column | type | null | meaning |\n|---|---|---|---|\n%s", group, rows[group])
	}
	requireTable(t, "docs/reference/columns.md", page.String())
}

// shortened is a line of a table with the unit of a column behind its meaning, and without the cell
// that says where its rule is from: the page has links for that.
func shortened(line string) string {
	cells := strings.Split(line, "|")
	unit, meaning := strings.TrimSpace(cells[4]), strings.TrimSpace(cells[5])
	if unit != "" {
		meaning += " (" + unit + ")"
	}
	return strings.Join(append(cells[:4], " "+meaning+" ", "\n"), "|")
}

// blockOf names a line's table on the page, by the operations that have the line.
func blockOf(line string, operations []string) string {
	switch {
	case len(operations) == 1:
		return operations[0]
	case len(operations) == len(resolution.SingleRecord)+len(resolution.Keyword):
		return "every operation"
	case strings.Contains(line, "`source_part`"):
		return "several in a cell"
	case strings.Contains(line, "`company_"):
		return "company"
	case strings.Contains(line, "`phone") && !strings.Contains(line, "`phones`"):
		return "phone"
	case strings.Contains(line, "`hem_"), strings.Contains(line, "`hashed_emails`"):
		return "HEM"
	}
	return "contact"
}

// TestSchemaOfDatasets: a dataset has the table of the settings it was made
// with, in every dialect.
func TestSchemaOfDatasets(t *testing.T) {
	dir := t.TempDir()
	in := filepath.Join(dir, "in.csv")
	if err := os.WriteFile(in, []byte("id,EMAIL,Source,hashed_emails,Record ID\n1,a@x.example,s,h,7\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for i, settings := range [][]string{
		{"--rename", "Record ID=record_id"}, {"--select", "id,answers"}, {"--select", "answers", "--hem-types", "sha256"}, {"--drop-identifier", "--normalize-names", "snake"}, {"--hem-profiles", "uid2", "--normalize-names", "snake", "--multiple", "each"},
		{"--partition-by", "dt=2026-11-20", "--rename", "Record ID=crm", "--normalize-names", "snake"},
	} {
		out := filepath.Join(dir, fmt.Sprint(i))
		clitest.RunRaw(t, append([]string{"run", "email_to_hem", "--in", in, "--out", out, "--state", t.TempDir(), "--quiet"}, settings...)...)
		dataset := out
		if i == 5 {
			dataset = filepath.Join(out, "dt=2026-11-20")
		}
		for _, d := range warehouse.Dialects {
			of := clitest.RunRaw(t, append([]string{"schema", "email_to_hem", "--in", in, "--dialect", string(d), "--location", "s3://lake/hems"}, settings...)...)
			got := clitest.RunRaw(t, "schema", "--dataset", dataset, "--dialect", string(d), "--location", "s3://lake/hems")
			if of != got {
				t.Errorf("%q in %s: of the settings\n%s\nof the dataset\n%s", settings, d, of, got)
			}
		}
	}
}

func TestSchemaRefusals(t *testing.T) {
	headless := filepath.Join(t.TempDir(), "in.csv")
	if err := os.WriteFile(headless, []byte("Jane,Canary,12 Canary St\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"email_to_hem"}, "no --dialect"},
		{[]string{"--dialect", "duckdb"}, "name an operation or a --dataset"},
		{[]string{"email_to_hem", "--dataset", "out", "--dialect", "duckdb"}, "name an operation or a --dataset"},
		{[]string{"email_to_hem", "--dialect", "oracle"}, `unknown dialect "oracle"; it is one of duckdb, snowflake`},
		{[]string{"email_to_hem", "--dialect", "duckdb", "--load", "merge"}, "--load is \"merge\"; it is one of append, replace"},
		{[]string{"email_to_hem", "--dialect", "dbt", "--load", "replace"}, "--load replace needs the --dialect of a warehouse"},
		{[]string{"--dataset", "out", "--dialect", "duckdb", "--load", "replace", "--changes"}, "and neither --changes"},
		{[]string{"magic", "--dialect", "duckdb"}, "magic"},
		{[]string{"email_to_hem", "--redshift-manifest"}, "needs --dataset and --location"},
		{[]string{"--dataset", filepath.Join(t.TempDir(), "none"), "--dialect", "duckdb"}, "does not exist; name the folder of a dataset"},
		{[]string{"enrichment", "--dialect", "duckdb", "--select", "answers", "--partition-by", "city=x"}, `partition "city" has the name of a column`},
		{[]string{"enrichment", "--dialect", "duckdb", "--select", "answers", "--partition-by", "country"}, `cannot partition rows by "country": it is not among the kept input columns`},
		{[]string{"enrichment", "--dialect", "duckdb", "--select", "answers", "--partition-by", "_dt=1"}, "begin with a letter"},
		{[]string{"enrichment", "--dialect", "bigquery", "--select", "Record ID,2nd,answers"}, "leadetl: bigquery: column Record ID: a name has letters, digits and underscores only, and does not begin with a digit\nleadetl: bigquery: column 2nd: a name has letters, digits and underscores only, and does not begin with a digit\nleadetl: run it with --normalize-names snake, or --rename 'Record ID=record_id'\n"},
		{[]string{"enrichment", "--dialect", "bigquery", "--in", headless}, "leadetl: bigquery: column (its name may be data): a name has letters"},
		{[]string{"enrichment", "--dialect", "duckdb", "--in", headless, "--rename", "a=b"}, "not shown, because their names may be data"},
		{[]string{"enrichment", "--dialect", "duckdb", "--rename", "a=b"}, "--rename names input columns, which are not known here; name them with --select, or the input with --in"},
		{[]string{"enrichment", "--dialect", "duckdb", "--select", "a,answers", "--rename", "a"}, `--rename "a"; write OLD=NEW, such as 'Record ID=record_id'`},
		{[]string{"enrichment", "--dialect", "duckdb", "--select", "a,answers", "--normalize-names", "camel"}, `--normalize-names is "camel"; it is snake or none`},
		{[]string{"enrichment", "--dialect", "duckdb", "--select", "answers", "--partition-by", "dt="}, "partition dt needs a value"},
		{[]string{"enrichment", "--dialect", "duckdb", "--select", "answers", "--partition-by", "dt=1,DT=2"}, `partition "DT" is given twice`},
	} {
		var errOut bytes.Buffer
		code := program.Execute(t.Context(), append([]string{"schema"}, c.args...), nil, io.Discard, &errOut)
		if code != cli.ExitUsage || !strings.Contains(errOut.String(), c.want) || strings.Contains(errOut.String(), "Canary") {
			t.Errorf("%q: exit code %d, %s", c.args, code, &errOut)
		}
	}
}
