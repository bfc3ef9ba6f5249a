package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
)

const root = "../.."

var program string

func TestMain(m *testing.M) { os.Exit(run(m)) }

// run builds leadetl, which makes the datasets.
func run(m *testing.M) int {
	build := exec.Command("go", "tool", "-n", "leadetl") // builds it once, into the build cache
	build.Dir, build.Stderr = root, os.Stderr
	path, err := build.Output()
	if err != nil {
		fmt.Fprintln(os.Stderr, "build:", err)
		return 1
	}
	program = strings.TrimSpace(string(path))
	return m.Run()
}

// leadetl runs the program at the root of the tree.
func leadetl(t *testing.T, args ...string) {
	t.Helper()
	c := exec.Command(program, args...)
	c.Dir = root
	c.Env = append(os.Environ(), "XDG_STATE_HOME="+t.TempDir())
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("leadetl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// hems makes a dataset of the sample list and returns its folder.
func hems(t *testing.T, out string, flags ...string) string {
	t.Helper()
	leadetl(t, append([]string{"run", "email_to_hem", "--in", "testdata/emails.csv", "--out", out, "--set", "rows_per_part=10", "--quiet"}, flags...)...)
	return out
}

// publish runs the program under test.
func publish(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = execute(t.Context(), args, &out, &errs)
	return code, out.String(), errs.String()
}

// must publishes a dataset.
func must(t *testing.T, args ...string) string {
	t.Helper()
	code, out, errs := publish(t, args...)
	if code != 0 {
		t.Fatalf("leadetl-iceberg %q: exit %d: %s", args, code, errs)
	}
	return out
}

// load opens a table as another program does.
func load(t *testing.T, file string, ident ...string) *table.Table {
	t.Helper()
	c, err := openSQLite(t.Context(), file, iceberg.Properties{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.close() })
	loaded, err := c.LoadTable(t.Context(), ident)
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}

// rows reads a table back, in the order of its source rows.
func rows(t *testing.T, tbl *table.Table, options ...table.ScanOption) (all []map[string]any) {
	t.Helper()
	_, records, err := tbl.Scan(options...).ToArrowRecords(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for record, err := range records {
		if err != nil {
			t.Fatal(err)
		}
		data, err := array.RecordToStructArray(record).MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		var batch []map[string]any
		if err := json.Unmarshal(data, &batch); err != nil {
			t.Fatal(err)
		}
		all = append(all, batch...)
	}
	slices.SortStableFunc(all, func(a, b map[string]any) int { return int(a["source_row"].(float64) - b["source_row"].(float64)) })
	return all
}

// sortedJSON spells rows in one way, in one order.
func sortedJSON(t *testing.T, all []map[string]any) (lines []string) {
	t.Helper()
	for _, row := range all {
		maps.DeleteFunc(row, func(_ string, v any) bool { return v == nil })
		for _, name := range []string{"last_seen_at", "resolved_at"} {
			if instant, ok := row[name].(string); ok {
				row[name] = strings.TrimSuffix(strings.TrimSuffix(strings.Replace(instant, "T", " ", 1), "Z"), "+00")
			}
		}
		line, err := json.Marshal(row)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, string(line))
	}
	slices.Sort(lines)
	return lines
}

// Every operation's dataset is what it was after Iceberg has it: the rows are
// the golden ones, lists and structs included.
func TestEveryOperation(t *testing.T) {
	dir := t.TempDir()
	args := []string{"directory", "import", "--directory", filepath.Join(dir, "directory")}
	for _, kind := range []string{"people", "companies", "ip-ranges", "searches", "visits"} {
		args = append(args, "--"+kind, "testdata/directory/"+kind+".csv")
	}
	leadetl(t, args...)
	catalog := filepath.Join(dir, "catalog.db")
	for op, list := range map[string]string{
		"email_to_hem": "emails", "network_to_hem": "profiles", "network_to_phone": "profiles", "enrichment": "profiles",
		"ip_to_company": "ips", "deanonymization": "ips", "keyword_to_lead": "searches", "keyword_to_lead_count": "searches",
	} {
		t.Run(op, func(t *testing.T) {
			out := filepath.Join(dir, op)
			args := []string{"run", op, "--in", "testdata/" + list + ".csv", "--directory", filepath.Join(dir, "directory"), "--out", out, "--set", "rows_per_part=10", "--quiet"}
			if strings.HasPrefix(op, "keyword") {
				args = append(args, "--as-of", "2026-11-15", "--select", "id,answers")
			}
			leadetl(t, args...)
			must(t, out, "--catalog", "sqlite:"+catalog, "--table", "leads."+op)
			addFiles(t, catalog, op, out)
			golden, err := os.ReadFile(filepath.Join(root, "testdata/golden", op+".jsonl"))
			if err != nil {
				t.Fatal(err)
			}
			var want []map[string]any
			for line := range strings.Lines(string(golden)) {
				row := map[string]any{}
				if err := json.Unmarshal([]byte(line), &row); err != nil {
					t.Fatal(err)
				}
				want = append(want, row)
			}
			got, wanted := sortedJSON(t, rows(t, load(t, catalog, "leads", op))), sortedJSON(t, want)
			if len(got) != len(wanted) {
				t.Fatalf("%d rows, want %d", len(got), len(wanted))
			}
			for i := range wanted {
				if got[i] != wanted[i] {
					t.Errorf("row\n got %s\nwant %s", got[i], wanted[i])
				}
			}
		})
	}
}

// addFiles registers the files as they are in a table that iceberg-go makes from
// their columns, without this program.
func addFiles(t *testing.T, catalog, op, out string) {
	t.Helper()
	c, err := openSQLite(t.Context(), catalog, iceberg.Properties{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	d, err := openDataset(t.Context(), out, nil)
	if err != nil {
		t.Fatal(err)
	}
	schema, _, err := d.schemas()
	if err != nil {
		t.Fatal(err)
	}
	made, err := c.CreateTable(t.Context(), table.Identifier{"leads", op + "_by_hand"}, schema)
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(out, "part-*.parquet"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	tx := made.NewTransaction()
	if err := tx.AddFiles(t.Context(), files, nil, false); err != nil {
		t.Fatal(err)
	}
	if made, err = tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := len(rows(t, made)); int64(got) != d.rows() {
		t.Errorf("%d rows by AddFiles, want %d", got, d.rows())
	}
}

var snapshotNumber = regexp.MustCompile(`snapshot (\d+)`)

// A dataset is in a table once, however often it is published, and by however
// many at a time.
func TestOnce(t *testing.T) {
	dir := t.TempDir()
	out, catalog := hems(t, filepath.Join(dir, "hems")), filepath.Join(dir, "catalog.db")
	args := []string{out, "--catalog", "sqlite:" + catalog, "--table", "leads.hems"}
	first := must(t, args...)
	if !strings.Contains(first, "published in leads.hems") || !strings.HasSuffix(first, "files 3, rows 30\n") {
		t.Error(first)
	}
	again := must(t, args...)
	if !strings.Contains(again, "was published before in leads.hems") || snapshotNumber.FindString(again) != snapshotNumber.FindString(first) {
		t.Errorf("%s after %s", again, first)
	}
	other := hems(t, filepath.Join(dir, "other"), "--hem-types", "sha256", "--select", "id,answers")
	var workers sync.WaitGroup
	for range 4 {
		workers.Go(func() {
			var stdout, stderr bytes.Buffer
			if code := execute(context.Background(), []string{other, "--catalog", "sqlite:" + catalog, "--table", "leads.other"}, &stdout, &stderr); code != exitDone && code != exitTryAgain {
				t.Errorf("exit %d: %s", code, &stderr)
			}
		})
	}
	workers.Wait()
	must(t, other, "--catalog", "sqlite:"+catalog, "--table", "leads.other")
	for name, want := range map[string]int{"hems": 30, "other": 30} {
		tbl := load(t, catalog, "leads", name)
		if n := len(tbl.Metadata().Snapshots()); n != 1 {
			t.Errorf("%s has %d snapshots", name, n)
		}
		if got := len(rows(t, tbl)); got != want {
			t.Errorf("%s has %d rows, want %d", name, got, want)
		}
		summary := tbl.CurrentSnapshot().Summary
		if summary.Operation != table.OpAppend || summary.Properties[jobProperty] == "" {
			t.Errorf("%s: %+v", name, summary)
		}
	}
}

// Each night is an append, and its day a partition that scans can skip.
func TestNights(t *testing.T) {
	dir := t.TempDir()
	catalog := filepath.Join(dir, "catalog.db")
	for _, night := range []string{"2026-11-19", "2026-11-20"} {
		hems(t, filepath.Join(dir, "lake"), "--partition-by", "dt="+night)
		must(t, filepath.Join(dir, "lake", "dt="+night), "--catalog", "sqlite:"+catalog, "--table", "leads.nights")
	}
	tbl := load(t, catalog, "leads", "nights")
	if n := len(tbl.Metadata().Snapshots()); n != 2 {
		t.Errorf("%d snapshots", n)
	}
	spec := tbl.Spec()
	if spec.NumFields() != 1 || spec.Field(0).Name != "dt" || spec.Field(0).Transform.String() != "identity" {
		t.Errorf("partitioned by %s", spec)
	}
	if dt, found := tbl.Schema().FindFieldByName("dt"); !found || dt.Type != iceberg.PrimitiveTypes.Date {
		t.Errorf("dt is %v", dt)
	}
	if got, want := partitions(t, tbl), map[any]int64{iceberg.Date(20776): 30, iceberg.Date(20777): 30}; !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	only := table.WithRowFilter(iceberg.EqualTo(iceberg.Reference("dt"), "2026-11-20"))
	tasks, err := tbl.Scan(only).PlanFiles(t.Context())
	if err != nil || len(tasks) != 3 {
		t.Errorf("%d files for a night, want 3: %v", len(tasks), err)
	}
}

// partitions counts the rows by the value of the one partition. Iceberg says
// that readers take a column that is in no file from there. iceberg-go 0.7 does
// not yet: its scan has null.
func partitions(t *testing.T, tbl *table.Table) map[any]int64 {
	t.Helper()
	tasks, err := tbl.Scan().PlanFiles(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	counts := map[any]int64{}
	for _, task := range tasks {
		for _, value := range task.File.Partition() {
			counts[value] += task.File.Count()
		}
	}
	return counts
}

// The values of a column in the paths are in the table again, null too.
func TestPartitionByColumn(t *testing.T) {
	dir := t.TempDir()
	list, out, catalog := filepath.Join(dir, "list.csv"), filepath.Join(dir, "out"), filepath.Join(dir, "catalog.db")
	if err := os.WriteFile(list, []byte("id,email,country\n1,a@mail.example,US\n2,b@mail.example,a/b\n3,c@mail.example,\n4,d@mail.example,US\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	leadetl(t, "run", "email_to_hem", "--in", list, "--out", out, "--partition-by", "country", "--quiet")
	must(t, out, "--catalog", "sqlite:"+catalog, "--table", "leads.countries")
	tbl := load(t, catalog, "leads", "countries")
	if got, want := partitions(t, tbl), map[any]int64{"US": 2, "a/b": 1, nil: 1}; !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got := len(rows(t, tbl)); got != 4 {
		t.Errorf("%d rows", got)
	}
}

// What a person has to correct ends with exit code 2, and leaves the table.
func TestRefusals(t *testing.T) {
	dir := t.TempDir()
	catalog := "sqlite:" + filepath.Join(dir, "catalog.db")
	out := hems(t, filepath.Join(dir, "hems"))
	must(t, out, "--catalog", catalog, "--table", "leads.hems")
	narrow := hems(t, filepath.Join(dir, "narrow"), "--hem-types", "sha256")
	hems(t, filepath.Join(dir, "lake"), "--partition-by", "dt=2026-11-20")
	unfinished := hems(t, filepath.Join(dir, "unfinished"))
	if err := os.Remove(filepath.Join(unfinished, "_SUCCESS")); err != nil {
		t.Fatal(err)
	}
	twin := hems(t, filepath.Join(dir, "twin"))
	for _, c := range []struct {
		name string
		args []string
		want string
	}{
		{"no dataset", []string{"--catalog", catalog, "--table", "leads.hems"}, "name one dataset"},
		{"no namespace", []string{out, "--catalog", catalog, "--table", "hems"}, "--catalog and --table NAMESPACE.TABLE are needed"},
		{"no such flag", []string{out, "--catalogue", catalog}, "unknown flag"},
		{"no catalog", []string{out, "--catalog", "postgres://x", "--table", "leads.hems"}, "the catalog is https://HOST or sqlite:FILE"},
		{"a folder without a dataset", []string{dir, "--catalog", catalog, "--table", "leads.hems"}, "has no _SUCCESS"},
		{"an unfinished dataset", []string{unfinished, "--catalog", catalog, "--table", "leads.hems"}, "has no _SUCCESS"},
		{"other columns", []string{narrow, "--catalog", catalog, "--table", "leads.hems"}, "publish to a table of its own"},
		{"other partitions", []string{filepath.Join(dir, "lake/dt=2026-11-20"), "--catalog", catalog, "--table", "leads.hems"}, `is partitioned by [], the dataset by ["dt"]`},
		{"the same job, made elsewhere", []string{twin, "--catalog", catalog, "--table", "leads.hems"}, "has another dataset of the same job"},
	} {
		code, _, errs := publish(t, c.args...)
		if code != exitUsage || !strings.Contains(errs, c.want) {
			t.Errorf("%s: exit %d: %s want %q", c.name, code, errs, c.want)
		}
	}
	if n := len(load(t, filepath.Join(dir, "catalog.db"), "leads", "hems").Metadata().Snapshots()); n != 1 {
		t.Errorf("%d snapshots", n)
	}
}

// The commands of docs/iceberg.md run as they stand there.
func TestDocs(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs/iceberg.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, shown, _ := strings.Cut(string(page), "```sh\n")
	shown, _, _ = strings.Cut(shown, "```")
	dir := t.TempDir()
	lines := strings.Split(strings.TrimSpace(strings.ReplaceAll(shown, "out/iceberg", dir)), "\n")
	if len(lines) != 2 {
		t.Fatalf("%q", lines)
	}
	leadetl(t, strings.Fields(lines[0])[1:]...)
	if out := must(t, strings.Fields(lines[1])[1:]...); !strings.HasSuffix(out, "files 1, rows 30\n") {
		t.Error(out)
	}
}
