package duckdbtest

import (
	"bytes"
	"crypto/sha256"
	"database/sql"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	_ "github.com/duckdb/duckdb-go/v2"
)

const root = "../../.."

var program string

func TestMain(m *testing.M) { os.Exit(run(m)) }

// run builds the program, which all tests use as its users do.
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

// leadetl runs the program at the root of the tree and returns what it prints.
func leadetl(t *testing.T, args ...string) string {
	t.Helper()
	c := exec.Command(program, args...)
	c.Dir = root
	c.Env = append(os.Environ(), "XDG_STATE_HOME="+t.TempDir())
	var stdout, stderr bytes.Buffer
	c.Stdout, c.Stderr = &stdout, &stderr
	if err := c.Run(); err != nil {
		t.Fatalf("leadetl %s: %v\n%s%s", strings.Join(args, " "), err, &stdout, &stderr)
	}
	return stdout.String()
}

// open is an empty database.
func open(t *testing.T) *sql.DB {
	t.Helper()
	db, err := sql.Open("duckdb", "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	db.SetMaxOpenConns(1)
	execute(t, db, "SET TimeZone = 'UTC'")
	return db
}

func execute(t *testing.T, db *sql.DB, statements string) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), statements); err != nil {
		t.Fatalf("%v\n%s", err, statements)
	}
}

// load makes the table of a dataset by the statements of leadetl schema.
func load(t *testing.T, db *sql.DB, dataset string) {
	t.Helper()
	leadetl(t, "verify", dataset, "--target", "duckdb")
	execute(t, db, leadetl(t, "schema", "--dataset", dataset, "--dialect", "duckdb", "--table", "loaded"))
}

// query returns rows as text, NULL as "\N".
func query(t *testing.T, db *sql.DB, statement string) (all [][]string) {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), statement)
	if err != nil {
		t.Fatalf("%v\n%s", err, statement)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	for rows.Next() {
		cells, targets := make([]sql.NullString, len(columns)), make([]any, len(columns))
		for i := range cells {
			targets[i] = &cells[i]
		}
		if err := rows.Scan(targets...); err != nil {
			t.Fatal(err)
		}
		row := make([]string, len(columns))
		for i, c := range cells {
			if row[i] = c.String; !c.Valid {
				row[i] = `\N`
			}
		}
		all = append(all, row)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// TestEveryOperation loads what every operation makes of the sample lists, and
// compares it with the golden rows, which are what the writer was given.
func TestEveryOperation(t *testing.T) {
	everyOperation(t, func(t *testing.T, op, out string) {
		db := open(t)
		load(t, db, out)
		golden, err := os.ReadFile(filepath.Join(root, "testdata/golden", op+".jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		want := strings.Split(strings.TrimSpace(string(golden)), "\n")
		got := query(t, db, "SELECT to_json(loaded)::VARCHAR FROM loaded")
		if len(got) != len(want) {
			t.Fatalf("%d rows, want %d", len(got), len(want))
		}
		for i := range want {
			if g, w := parse(t, got[i][0]), parse(t, want[i]); !reflect.DeepEqual(g, w) {
				t.Errorf("row %d\n got %v\nwant %v", i+1, g, w)
			}
		}
	})
}

// everyOperation runs every operation on the sample lists, and checks each dataset.
func everyOperation(t *testing.T, check func(t *testing.T, op, out string)) {
	directory := t.TempDir()
	args := []string{"directory", "import", "--directory", directory}
	for _, kind := range []string{"people", "companies", "ip-ranges", "searches", "visits"} {
		args = append(args, "--"+kind, "testdata/directory/"+kind+".csv")
	}
	leadetl(t, args...)
	for op, list := range map[string]string{
		"email_to_hem": "emails", "network_to_hem": "profiles", "network_to_phone": "profiles", "enrichment": "profiles",
		"ip_to_company": "ips", "deanonymization": "ips", "keyword_to_lead": "searches", "keyword_to_lead_count": "searches",
	} {
		t.Run(op, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "out")
			args := []string{"run", op, "--in", "testdata/" + list + ".csv", "--directory", directory, "--out", out, "--set", "rows_per_part=10", "--quiet"}
			if strings.HasPrefix(op, "keyword") {
				args = append(args, "--as-of", "2026-11-15", "--select", "id,answers")
			}
			leadetl(t, args...)
			check(t, op, out)
		})
	}
}

// parse reads a row as a JSON object, without its nulls. Instants are spelled
// in one way.
func parse(t *testing.T, line string) map[string]any {
	t.Helper()
	row := map[string]any{}
	if err := json.Unmarshal([]byte(line), &row); err != nil {
		t.Fatal(err)
	}
	maps.DeleteFunc(row, func(_ string, v any) bool { return v == nil })
	for _, name := range []string{"last_seen_at", "resolved_at"} {
		if instant, ok := row[name].(string); ok {
			row[name] = strings.NewReplacer("T", " ", "Z", "", "+00:00", "", "+00", "").Replace(instant)
		}
	}
	return row
}

// wide are values that get hurt on the way into warehouses.
var wide = []string{
	"", "0", "007", "1e5", "-0", "NaN", "NULL", "null", `\N`, "true", "2026-11-20", " around ", "\ttab", "two\nlines", `a "quoted" cell`, "comma, semicolon;",
	"emoji 👩‍👩‍👧‍👦🏳️‍🌈", "שלום עולם", "مرحبا \u202eabc\u202c", "e\u0301 and é", "日本語", "\u200bzero\u200bwidth", "𝕏 beyond the plane", "\u00a0nbsp",
	"'; DROP TABLE loaded; --", "%2F=:#?", strings.Repeat("long ", 1<<18), strings.Repeat("🙂", 1<<18),
}

// TestWideValues carries them through as input columns.
func TestWideValues(t *testing.T) {
	dir := t.TempDir()
	in, out := filepath.Join(dir, "in.csv"), filepath.Join(dir, "out")
	rows := [][]string{{"id", "email", "Full Name", "select", "empty"}}
	for i, value := range wide {
		rows = append(rows, []string{fmt.Sprintf("%04d", i), fmt.Sprintf("p%d@x.example", i), value, value, ""})
	}
	writeCSV(t, in, rows)
	leadetl(t, "run", "email_to_hem", "--in", in, "--out", out, "--set", "rows_per_part=9", "--quiet")
	db := open(t)
	load(t, db, out)
	got := query(t, db, `SELECT id, email, "Full Name", "select", empty FROM loaded`)
	for i, want := range rows[1:] {
		for j, cell := range want {
			if i >= len(got) || got[i][j] != cell {
				t.Errorf("row %d, column %s: not what was written", i+1, rows[0][j])
			}
		}
	}
	if len(got) != len(wide) {
		t.Errorf("%d rows, want %d", len(got), len(wide))
	}
	comments := query(t, db, "SELECT count(*) FROM duckdb_columns() WHERE table_name = 'loaded' AND comment IS NULL")
	if comments[0][0] != "0" {
		t.Errorf("%s columns do not say what they mean", comments[0][0])
	}
}

func writeCSV(t *testing.T, path string, rows [][]string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w := csv.NewWriter(f)
	if err := w.WriteAll(rows); err != nil {
		t.Fatal(err)
	}
}

// TestFewRows: a list without rows is a table without rows.
func TestFewRows(t *testing.T) {
	for n := range 2 {
		dir := t.TempDir()
		in, out := filepath.Join(dir, "in.csv"), filepath.Join(dir, "out")
		writeCSV(t, in, [][]string{{"id", "email"}, {"1", "a@x.example"}}[:n+1])
		leadetl(t, "run", "email_to_hem", "--in", in, "--out", out, "--quiet", "--set", "min_rows=0")
		db := open(t)
		load(t, db, out)
		if got := query(t, db, "SELECT count(*) FROM loaded"); got[0][0] != strconv.Itoa(n) {
			t.Errorf("%s rows, want %d", got[0][0], n)
		}
	}
}

// TestManyRows compares a large dataset with DuckDB's own reading and hashing
// of the list it was made of, nulls included. LEADETL_ROWS is how many rows it has.
func TestManyRows(t *testing.T) {
	n := 200_000
	if text := os.Getenv("LEADETL_ROWS"); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	in, out := filepath.Join(dir, "in.parquet"), filepath.Join(dir, "out")
	db := open(t)
	execute(t, db, fmt.Sprintf(`COPY (SELECT printf('%%08d', i) AS id, 'user.' || i || '@example' || (i %% 977) || '.com' AS email,
		CASE WHEN i %% 3 = 0 THEN NULL ELSE 'Zoë ' || (i %% 4999) END AS name FROM range(%d) r(i)) TO '%s' (FORMAT parquet)`, n, in))
	leadetl(t, "run", "email_to_hem", "--in", in, "--out", out, "--set", "rows_per_part="+strconv.Itoa(n/4+1), "--quiet")
	load(t, db, out)
	for _, side := range []string{"SELECT * FROM ours EXCEPT ALL SELECT * FROM theirs", "SELECT * FROM theirs EXCEPT ALL SELECT * FROM ours"} {
		got := query(t, db, fmt.Sprintf(`WITH
			theirs AS (SELECT id, email, name, md5(email) AS hem_md5, sha1(email) AS hem_sha1, sha256(email) AS hem_sha256
				FROM read_parquet('%s')),
			ours AS (SELECT id, email, name, hem_md5, hem_sha1, hem_sha256 FROM loaded)
			SELECT count(*) FROM (%s)`, in, side))
		if got[0][0] != "0" {
			t.Errorf("%s rows of %s", got[0][0], side)
		}
	}
	if got := query(t, db, "SELECT count(*), count(DISTINCT source_row), max(source_row) FROM loaded"); !slices.Equal(got[0], []string{strconv.Itoa(n), strconv.Itoa(n), strconv.Itoa(n)}) {
		t.Errorf("rows, places and the last of them: %v, want %d", got[0], n)
	}
}

// TestManyPeople compares what enrichment writes of many people with DuckDB's own join of the
// files they were imported from. Texts repeat as often as they do in real lists, so columns
// have dictionaries of many pages, and hashed_emails has full pages of digests.
func TestManyPeople(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	db := open(t)
	for name, rows := range map[string]string{
		"people": `SELECT 'linkedin.com/in/person-' || i AS network_url, 'First' || (i % 977) AS first_name, CASE WHEN i % 5 > 0 THEN 'Title of ' || (i % 20011) END AS job_title,
			CASE WHEN i % 7 > 0 THEN 'p' || i || '@example' || (i % 31) || '.com' END AS email, 'City ' || (i % 3001) AS city, 'company-' || (i * 7919 % 5000) || '.example' AS company_domain
			FROM range(30000) r(i)`,
		"companies": `SELECT 'company-' || i || '.example' AS domain, 'Company ' || i AS name, 'Industry ' || (i % 40) AS industry, 'About ' || repeat('company ', i % 50) || i AS about FROM range(4000) r(i)`,
		"list":      `SELECT i AS id, 'https://www.linkedin.com/in/person-' || (i * 104729 % 40000) AS network_url FROM range(50000) r(i)`,
	} {
		execute(t, db, fmt.Sprintf("COPY (%s) TO '%s' (FORMAT csv, HEADER)", rows, at(name+".csv")))
	}
	leadetl(t, "directory", "import", "--directory", at("directory"), "--people", at("people.csv"), "--companies", at("companies.csv"))
	for _, compression := range []string{"snappy", "zstd", "none"} {
		t.Run(compression, func(t *testing.T) {
			out := at(compression)
			leadetl(t, "run", "enrichment", "--in", at("list.csv"), "--directory", at("directory"), "--out", out, "--set", "compression="+compression, "--set", "rows_per_part=20000", "--select", "all,hashed_emails", "--quiet")
			db := open(t)
			load(t, db, out)
			columns := "id, first_name, job_title, email, city, company_domain, company_name, company_industry, company_about, hem_md5, hem_sha1, hem_sha256, hashed"
			for _, side := range []string{"SELECT * FROM ours EXCEPT ALL SELECT * FROM theirs", "SELECT * FROM theirs EXCEPT ALL SELECT * FROM ours"} {
				got := query(t, db, fmt.Sprintf(`WITH
					theirs AS (SELECT l.id::VARCHAR AS id, p.first_name, p.job_title, p.email, p.city, p.company_domain, c.name AS company_name, c.industry AS company_industry,
						c.about AS company_about, md5(p.email) AS hem_md5, sha1(p.email) AS hem_sha1, sha256(p.email) AS hem_sha256,
						CASE WHEN p.email IS NOT NULL THEN [md5(p.email), sha1(p.email), sha256(p.email)] END AS hashed
						FROM read_csv('%[1]s') l LEFT JOIN read_csv('%[2]s') p ON l.network_url = 'https://www.' || p.network_url
						LEFT JOIN read_csv('%[3]s') c ON c.domain = p.company_domain),
					ours AS (SELECT %[4]s FROM (SELECT *, list_transform(hashed_emails, h -> h.email) AS hashed FROM loaded))
					SELECT count(*) FROM (%[5]s)`, at("list.csv"), at("people.csv"), at("companies.csv"), columns, side))
				if got[0][0] != "0" {
					t.Errorf("%s rows of %s", got[0][0], side)
				}
			}
		})
	}
}

// TestPartitions loads two nights into one table, whose column for the night is
// in the path alone.
func TestPartitions(t *testing.T) {
	dir := t.TempDir()
	in, out := filepath.Join(dir, "in.csv"), filepath.Join(dir, "out")
	writeCSV(t, in, [][]string{{"id", "email", "dt"}, {"1", "a@x.example", "theirs"}})
	db := open(t)
	for _, night := range []string{"2026-11-19", "2026-11-20"} {
		leadetl(t, "run", "email_to_hem", "--in", in, "--out", out, "--quiet", "--partition-by", "dt="+night+",run=a/b:c d")
		load(t, db, filepath.Join(out, "dt="+night, "run=a%2Fb%3Ac d"))
	}
	want := [][]string{{"2026-11-19", "DATE", "a/b:c d", "theirs"}, {"2026-11-20", "DATE", "a/b:c d", "theirs"}}
	if got := query(t, db, "SELECT dt::VARCHAR, typeof(dt), run, in_dt FROM loaded ORDER BY dt"); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	both := query(t, db, fmt.Sprintf("SELECT count(DISTINCT dt), count(*) FROM read_parquet('%s/*/*/part-*.parquet', hive_partitioning = true)", out))
	if !slices.Equal(both[0], []string{"2", "2"}) {
		t.Errorf("both nights at once: %v", both[0])
	}
}

// TestReplace loads nights in place of themselves, and a load that fails changes nothing.
func TestReplace(t *testing.T) {
	folder, db, replace := t.TempDir(), open(t), ""
	for i := range 3 {
		for _, out := range replacedNights(t, folder, i) {
			replace = leadetl(t, "schema", "--dataset", out, "--dialect", "duckdb", "--load", "replace")
			for range 2 {
				execute(t, db, replace)
			}
		}
		if got := query(t, db, "SELECT dt::VARCHAR, count(*), max(id) FROM email_to_hem GROUP BY ALL ORDER BY ALL"); !reflect.DeepEqual(got, replacedRows[i]) {
			t.Errorf("load %d: %v, want %v", i, got, replacedRows[i])
		}
	}
	execute(t, db, "ALTER TABLE email_to_hem DROP COLUMN id")
	if _, err := db.Exec(replace[strings.Index(replace, "MERGE"):]); err == nil {
		t.Error("a column that the table has not is loaded")
	}
	if got := query(t, db, "SELECT count(*) FROM email_to_hem"); got[0][0] != "4" {
		t.Errorf("%s rows after a load that failed, want 4", got[0][0])
	}
}

// replacedRows are the nights in a table after each of replacedNights: dt, rows, last id.
var replacedRows = [][][]string{
	{{"2026-11-19", "2", "1"}, {"2026-11-20", "3", "2"}},
	{{"2026-11-19", "2", "1"}, {"2026-11-20", "1", "9"}}, // the night was run again
	{{"2026-11-19", "3", "7"}, {"2026-11-20", "1", "9"}},
}

// replacedNights runs two nights, and then each again with another list. It returns the datasets to load.
func replacedNights(t *testing.T, folder string, i int) (loaded []string) {
	t.Helper()
	for _, night := range [][][2]string{{{"19", "0 1"}, {"20", "0 1 2"}}, {{"20", "9"}}, {{"19", "5 6 7"}}}[i] {
		in := filepath.Join(folder, "in.csv")
		text := "id,email\n"
		for _, id := range strings.Fields(night[1]) {
			text += fmt.Sprintf("%s,p%[1]s@x.example\n", id)
		}
		write(t, in, text)
		leadetl(t, "run", "email_to_hem", "--in", in, "--out", filepath.Join(folder, "hems"), "--partition-by", "dt=2026-11-"+night[0], "--overwrite", "--quiet")
		loaded = append(loaded, filepath.Join(folder, "hems/dt=2026-11-"+night[0]))
	}
	return loaded
}

// TestPartedRows loads rows that are parted by a column of the input: the column
// comes back from the paths as it was in the list, as text whatever it looks
// like.
func TestPartedRows(t *testing.T) {
	dir := t.TempDir()
	in, out := filepath.Join(dir, "in.csv"), filepath.Join(dir, "out")
	values := []string{"US", "us", "007", "2026-11-20", "true", "a/b=c:%41 +", "emoji 👩‍👩‍👧‍👦", "שלום", "..", "it's", `\N`, "null", "{x}[y]*?", ""}
	rows := [][]string{{"id", "email", "land"}}
	for i := range 10 * len(values) {
		rows = append(rows, []string{fmt.Sprintf("%04d", i), fmt.Sprintf("p%d@x.example", i), values[i%len(values)]})
	}
	writeCSV(t, in, rows)
	leadetl(t, "run", "email_to_hem", "--in", in, "--out", out, "--set", "rows_per_part=40", "--quiet", "--partition-by", "dt=2026-11-20,land")
	db := open(t)
	load(t, db, filepath.Join(out, "dt=2026-11-20"))
	got := query(t, db, "SELECT id, land, typeof(land), dt::VARCHAR FROM loaded ORDER BY id")
	if len(got) != len(rows)-1 {
		t.Fatalf("%d rows, want %d", len(got), len(rows)-1)
	}
	for i, row := range got {
		want := []string{rows[i+1][0], rows[i+1][2], "VARCHAR", "2026-11-20"}
		if want[1] == "" || want[1] == "null" { // DuckDB takes this word in a path for none
			want[1] = `\N`
		}
		if !slices.Equal(row, want) {
			t.Errorf("got %q, want %q", row, want)
		}
	}
	if got := query(t, db, "SELECT count(*) FROM loaded WHERE land IS NULL"); got[0][0] != "20" {
		t.Errorf("%s rows without a value", got[0][0])
	}
}

// TestStoredAnswers: the query of docs/answers.md reads answers that were exported as a table.
func TestStoredAnswers(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs/answers.md"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	lines, state, table := filepath.Join(dir, "answers.jsonl"), filepath.Join(dir, "state"), filepath.Join(dir, "answers.parquet")
	var text strings.Builder
	for key, rest := range map[string]string{
		"ann@x.example": `"outcome":"matched","body":{"lead":{"headline":"Ann"}}`, "bob@x.example": `"outcome":"matched","body_base64":"/2I="`, "cy@x.example": `"outcome":"no_match"`,
	} {
		hash := sha256.Sum256([]byte("\x15https://leads.example\x0aenrichment\x00" + key))
		fmt.Fprintf(&text, `{"key_hash":"%x","key":%q,"service":"https://leads.example","operation":"enrichment","received_at":"2026-11-20T12:00:00Z","status":200,"run":"night",%s}`+"\n", hash, key, rest)
	}
	if err := os.WriteFile(lines, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	leadetl(t, "answers", "import", lines, "--state", state)
	leadetl(t, "answers", "export", "--state", state, "--parquet", table)
	_, after, _ := strings.Cut(string(page), "```sql\n")
	query, _, _ := strings.Cut(after, "```")
	query = strings.ReplaceAll(strings.TrimSuffix(strings.TrimSpace(query), ";"), "out/answers/answers.parquet", table)
	rows, err := open(t).QueryContext(t.Context(), query+" ORDER BY key")
	if err != nil {
		t.Fatalf("%v\n%s", err, query)
	}
	defer rows.Close()
	var got []string
	for rows.Next() {
		var key, outcome string
		var name sql.NullString
		if err := rows.Scan(&key, &outcome, &name); err != nil {
			t.Fatal(err)
		}
		got = append(got, strings.Join([]string{key, outcome, name.String}, " "))
	}
	if want := []string{"ann@x.example matched Ann", "bob@x.example matched ", "cy@x.example no_match "}; rows.Err() != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v; want %v", got, rows.Err(), want)
	}
}

// TestNights runs two nights by each recipe, with lists of their own, and reads
// both through one table.
func TestNights(t *testing.T) {
	for name, recipe := range map[string]func(t *testing.T, folder string, night time.Time){
		"cron and systemd": func(t *testing.T, folder string, night time.Time) {
			write(t, filepath.Join(folder, "nights", night.Format(time.DateOnly)), "")
			shell(t, folder, page(t, "testdata/nightly.sh"))
		},
		"Airflow": func(t *testing.T, folder string, night time.Time) {
			_, command, _ := strings.Cut(page(t, "deploy/nightly_dag.py"), `COMMAND = """`)
			command, _, _ = strings.Cut(command, `"""`)
			shell(t, folder, strings.NewReplacer("{{ ds }}", night.Format(time.DateOnly), "/srv/lists", folder, "/datasets", folder, "sleep 900", "exit 5").Replace(command))
		},
		"Kubernetes": func(t *testing.T, folder string, night time.Time) {
			job := block(t, page(t, "deploy/cronjob.yaml"), "nightly.yaml:")
			job = strings.NewReplacer("s3://leads/lists/**.csv.gz", "lists/${NIGHT}.csv", "s3://leads/", "").Replace(job)
			write(t, filepath.Join(folder, "etc/nightly.yaml"), job)
			command := strings.NewReplacer("/etc/leadetl/", "etc/", ">/night/", ">").Replace(block(t, page(t, "deploy/cronjob.yaml"), "-"))
			shell(t, folder, command+`"$LEADETL" run --job nightly.yaml --state state`, fmt.Sprintf("JOB_NAME=leadetl-nightly-%d", night.Unix()/60))
		},
	} {
		t.Run(name, func(t *testing.T) {
			folder, db := t.TempDir(), open(t)
			write(t, filepath.Join(folder, "nightly.yaml"), "operation: email_to_hem\nin: lists/${NIGHT}.csv\nselect: [id, answers]\n")
			for i, night := range []string{"2026-11-19", "2026-11-20"} {
				write(t, filepath.Join(folder, "lists", night+".csv"), "id,email\n"+strings.Repeat(fmt.Sprintf("%d,%[1]d@x.example\n", i), i+1))
				scheduled, err := time.Parse(time.RFC3339, night+"T02:30:00Z")
				if err != nil {
					t.Fatal(err)
				}
				recipe(t, folder, scheduled)
				load(t, db, filepath.Join(folder, "hems/dt="+night))
			}
			want := [][]string{{"2026-11-19", "DATE", "0", "1"}, {"2026-11-20", "DATE", "1", "2"}}
			for _, table := range []string{"loaded", fmt.Sprintf("read_parquet('%s/hems/dt=*/part-*.parquet', hive_partitioning = true)", folder)} {
				if got := query(t, db, "SELECT dt::VARCHAR, typeof(dt), id, count(*) FROM "+table+" GROUP BY ALL ORDER BY ALL"); !reflect.DeepEqual(got, want) {
					t.Errorf("%s has %v, want %v", table, got, want)
				}
			}
		})
	}
}

func page(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// block is the text of several lines that a page of YAML has behind head.
func block(t *testing.T, text, head string) (found string) {
	t.Helper()
	before, behind, there := strings.Cut(text, head+" |\n")
	if !there {
		t.Fatalf("no %s", head)
	}
	indent := before[strings.LastIndex(before, "\n")+1:] + "  "
	for line := range strings.SplitSeq(behind, "\n") {
		line, inside := strings.CutPrefix(line, indent)
		if !inside {
			break
		}
		found += line + "\n"
	}
	return found
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
}

// shell runs commands in a folder; leadetl is the program.
func shell(t *testing.T, folder, commands string, env ...string) {
	t.Helper()
	c := exec.Command("sh", "-c", commands)
	c.Dir = folder
	c.Env = append(env, "LEADETL="+program, "PATH="+filepath.Dir(program)+":"+os.Getenv("PATH"), "XDG_STATE_HOME="+folder)
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s\n%s", err, commands, out)
	}
}
