package duckdbtest

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// postgres is a server of PostgreSQL with one database. It listens to a socket in its folder.
type postgres struct{ folder string }

// startPostgres starts a server, as another user if this is root, which a server refuses to be.
func startPostgres(t *testing.T) postgres {
	t.Helper()
	initdb, err := exec.LookPath("initdb")
	if err != nil {
		t.Skip("there is no server of PostgreSQL in PATH; make postgres-check finds the one of Debian")
	}
	folder, err := os.MkdirTemp("/tmp", "pg") // the path of a socket is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	as := &syscall.SysProcAttr{}
	if os.Getuid() == 0 {
		owner, err := user.Lookup("postgres")
		if err != nil {
			owner, err = user.Lookup("nobody")
		}
		if err != nil {
			t.Fatal(err)
		}
		uid, _ := strconv.Atoi(owner.Uid)
		gid, _ := strconv.Atoi(owner.Gid)
		if err := os.Chown(folder, uid, gid); err != nil {
			t.Fatal(err)
		}
		as.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	}
	var said bytes.Buffer
	command := func(name string, args ...string) *exec.Cmd {
		c := exec.Command(name, args...)
		c.Dir, c.SysProcAttr, c.Env, c.Stdout, c.Stderr = folder, as, []string{"LC_ALL=C", "PATH=" + os.Getenv("PATH")}, &said, &said
		return c
	}
	data := filepath.Join(folder, "data")
	if err := command(initdb, "-D", data, "-U", "tester", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync").Run(); err != nil {
		t.Fatalf("initdb: %v\n%s", err, &said)
	}
	server := command(filepath.Join(filepath.Dir(initdb), "postgres"), "-D", data, "-k", folder, "-c", "listen_addresses=", "-c", "fsync=off")
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	gone := make(chan error, 1)
	go func() { gone <- server.Wait() }()
	t.Cleanup(func() {
		_ = server.Process.Signal(syscall.SIGINT)
		<-gone
	})
	p := postgres{folder}
	for {
		if _, err := p.psql(t, "SELECT 1"); err == nil {
			return p
		}
		select {
		case err := <-gone:
			t.Fatalf("postgres: %v\n%s", err, &said)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// psql runs a script as its user does, and returns what it prints.
func (p postgres) psql(t *testing.T, script string) (string, error) {
	t.Helper()
	c := exec.CommandContext(t.Context(), "psql", "-XqAt", "-h", p.folder, "-U", "tester", "-d", "postgres")
	c.Dir, c.Stdin = root, strings.NewReader(script)
	c.Env = append(os.Environ(), "PATH="+filepath.Dir(program)+":"+os.Getenv("PATH"), "XDG_STATE_HOME="+p.folder, "PGTZ=UTC", "LC_ALL=C")
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	if err := c.Run(); err != nil {
		return errs.String(), err
	}
	return strings.TrimSuffix(out.String(), "\n"), nil
}

func (p postgres) execute(t *testing.T, script string) string {
	t.Helper()
	out, err := p.psql(t, script)
	if err != nil {
		t.Fatalf("%v\n%s\n%.500s", err, out, script)
	}
	return out
}

// rows are those of a query in PostgreSQL, as JSON objects in the order of their text.
func (p postgres) rows(t *testing.T, query string) []string {
	t.Helper()
	return canonical(t, strings.Split(p.execute(t, "SELECT to_jsonb(r) FROM ("+query+") r"), "\n"))
}

// canonical writes rows that are JSON objects in one way and order.
func canonical(t *testing.T, rows []string) (all []string) {
	t.Helper()
	for _, row := range rows {
		if row != "" {
			cells := parse(t, row)
			text := ""
			for _, name := range slices.Sorted(maps.Keys(cells)) {
				text += fmt.Sprintf("%s %#v\n", name, cells[name])
			}
			all = append(all, text)
		}
	}
	slices.Sort(all)
	return all
}

// duckdbRows are those of a query in DuckDB.
func duckdbRows(t *testing.T, query_ string) []string {
	t.Helper()
	var rows []string
	for _, row := range query(t, open(t), "SELECT to_json(r)::VARCHAR FROM ("+query_+") r") {
		rows = append(rows, row[0])
	}
	return canonical(t, rows)
}

func requireRows(t *testing.T, got, want []string) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d rows, want %d", len(got), len(want))
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("row %d\n got %.3000s\nwant %.3000s", i+1, got[i], want[i])
		}
	}
}

func TestPostgres(t *testing.T) {
	p := startPostgres(t)
	schema := func(t *testing.T, dataset string, more ...string) string {
		t.Helper()
		return leadetl(t, append([]string{"schema", "--dataset", dataset, "--dialect", "postgres"}, more...)...)
	}
	t.Run("every operation", func(t *testing.T) {
		everyOperation(t, func(t *testing.T, op, out string) {
			leadetl(t, "verify", out, "--target", "postgres")
			p.execute(t, schema(t, out))
			requireRows(t, p.rows(t, "SELECT * FROM "+op), duckdbRows(t, "FROM '"+out+"/part-*.parquet'"))
		})
	})
	t.Run("wide values", func(t *testing.T) {
		dir := t.TempDir()
		in, out := filepath.Join(dir, "in.parquet"), filepath.Join(dir, "it's a, \"dataset\"")
		db := open(t)
		execute(t, db, `CREATE TABLE list (id VARCHAR, email VARCHAR, "Full ""Name" VARCHAR, "select" VARCHAR)`)
		for i, value := range wide {
			if _, err := db.Exec("INSERT INTO list VALUES (?, ?, ?, NULL)", fmt.Sprint(i), fmt.Sprintf("p%d@x.example", i), value); err != nil {
				t.Fatal(err)
			}
		}
		execute(t, db, "COPY list TO '"+in+"' (FORMAT parquet)")
		leadetl(t, "run", "email_to_hem", "--in", in, "--out", out, "--quiet", "--set", "rows_per_part=9")
		p.execute(t, schema(t, out, "--table", "wide"))
		requireRows(t, p.rows(t, "SELECT * FROM wide"), duckdbRows(t, "FROM '"+strings.ReplaceAll(out, "'", "''")+"/part-*.parquet'"))
		if got := p.execute(t, `SELECT count(*) FILTER (WHERE "Full ""Name" = ''), count(*) FILTER (WHERE "select" IS NULL) FROM wide`); got != fmt.Sprint("1|", len(wide)) {
			t.Errorf("empty texts and nulls: %s", got)
		}
	})
	t.Run("lists, pairs, numbers and times", func(t *testing.T) {
		everyOperation(t, func(t *testing.T, op, out string) {
			if op != "keyword_to_lead" && op != "deanonymization" {
				return
			}
			// The files that are exported have the columns of the dataset, and values that it has not.
			odd := filepath.Join(t.TempDir(), "_odd")
			write(t, filepath.Join(odd, "readme"), "")
			values := map[string][]string{
				"VARCHAR[]": {"NULL", "[]", "['']", "['a']", "['a;b', 'c']", "['[x']", "['a', '[b']", "[NULL]", "['a', NULL]", `['"q"', '\', E'two\nlines', 'c,d']`, "['{x}', 'NULL', 'null', ' ']"},
				`STRUCT(email VARCHAR, "type" VARCHAR)[]`: {"NULL", "[]", `[{'email': '"\', 'type': NULL}]`, "[NULL]", `[{'email': E'\n;,', 'type': ''}, {'email': 'é👩‍👩‍👧‍👦', 'type': 'x'}]`},
				"DOUBLE":                   {"NULL", "0.1", "1e-7", "-1e300", "5e-324", "123456789.125"},
				"INTEGER":                  {"NULL", "-2147483648", "2147483647"},
				"BIGINT":                   {"NULL", "-9007199254740991", "9007199254740991"},
				"BOOLEAN":                  {"NULL", "true", "false"},
				"DATE":                     {"NULL", "DATE '0001-01-01'", "DATE '9999-12-31'", "DATE '2024-02-29'"},
				"TIMESTAMP WITH TIME ZONE": {"NULL", "TIMESTAMPTZ '1969-12-31 23:59:59.999999Z'", "TIMESTAMPTZ '0001-01-01 00:00:00Z'", "TIMESTAMPTZ '2026-11-29 01:02:03.0004Z'"},
			}
			db, replaced := open(t), []string{}
			for _, c := range query(t, db, "DESCRIBE FROM '"+out+"/part-*.parquet'") {
				if all := values[c[1]]; all != nil && c[0] != "source_row" && c[0] != "search_row" {
					replaced = append(replaced, fmt.Sprintf("CAST(CASE n %% %d %s END AS %s) AS %s", len(all), cases(all), c[1], c[0]))
				}
			}
			execute(t, db, fmt.Sprintf("COPY (SELECT * EXCLUDE (n, range) REPLACE (%s) FROM (SELECT *, row_number() OVER () AS n FROM '%s/part-*.parquet', range(20))) TO '%s/part-00000.parquet' (FORMAT parquet)", strings.Join(replaced, ", "), out, odd))
			p.execute(t, schema(t, out, "--location", odd, "--table", "odd_"+op))
			requireRows(t, p.rows(t, "SELECT * FROM odd_"+op), duckdbRows(t, "FROM '"+odd+"/part-*.parquet'"))
			t.Logf("%d columns", len(replaced))
		})
	})
	t.Run("nights, and folders of values", func(t *testing.T) {
		dir := t.TempDir()
		in, out := filepath.Join(dir, "in.csv"), filepath.Join(dir, "out")
		values := []string{"US", "007", "2026-11-20", "true", "a/b=c:%41 +", "emoji 👩‍👩‍👧‍👦", "it's", `\N`, "null", ""}
		rows := [][]string{{"id", "email", "land"}}
		for i := range 30 {
			rows = append(rows, []string{fmt.Sprintf("%04d", i), fmt.Sprintf("p%d@x.example", i), values[i%len(values)]})
		}
		writeCSV(t, in, rows)
		for _, night := range []string{"2026-11-19", "2026-11-20"} {
			leadetl(t, "run", "email_to_hem", "--in", in, "--out", out, "--quiet", "--partition-by", "dt="+night+",land")
			p.execute(t, schema(t, filepath.Join(out, "dt="+night), "--table", "public.nights"))
			var want []string
			for i, row := range rows[1:] {
				if row[2] != "" {
					want = append(want, fmt.Sprintf(`{"id": "%04d", "land": %q, "dt": %q}`, i, row[2], night))
				} else {
					want = append(want, fmt.Sprintf(`{"id": "%04d", "dt": %q}`, i, night))
				}
			}
			requireRows(t, p.rows(t, "SELECT id, land, dt FROM nights WHERE dt = '"+night+"'"), canonical(t, want))
		}
	})
	t.Run("changes", func(t *testing.T) {
		folder := t.TempDir()
		p.execute(t, "CREATE SCHEMA crm")
		for i := range mergeNights {
			out := runNight(t, folder, i)
			for range 2 { // a second time changes nothing
				p.execute(t, schema(t, out, "--changes", "--table", "crm.merged"))
				want := duckdbRows(t, "SELECT id, name, key, outcome, hem_sha256 FROM '"+out+"/part-*.parquet' WHERE key IS NOT NULL")
				requireRows(t, p.rows(t, "SELECT id, name, key, outcome, hem_sha256 FROM crm.merged"), want)
			}
		}
	})
	t.Run("a night in place of itself", func(t *testing.T) {
		folder := t.TempDir()
		const nights = "SELECT dt, count(*), max(id) FROM replaced GROUP BY dt ORDER BY dt"
		for i := range 3 {
			for _, out := range replacedNights(t, folder, i) {
				replace := schema(t, out, "--table", "replaced", "--load", "replace")
				p.execute(t, replace)
				before := p.execute(t, nights)
				// Others read the rows of before until all are there.
				done := make(chan error, 1)
				go func() {
					_, err := p.psql(t, strings.Replace(replace, "\nCOMMIT;", "\nSELECT pg_sleep(3);\nCOMMIT;", 1))
					done <- err
				}()
				for p.execute(t, "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep%'") == "0" {
					select {
					case err := <-done:
						t.Fatalf("the load did not wait: %v", err)
					default:
					}
				}
				if got := p.execute(t, nights); got != before {
					t.Errorf("load %d: others read %q, want %q", i, got, before)
				}
				if err := <-done; err != nil {
					t.Fatal(err)
				}
			}
			var want []string
			for _, row := range replacedRows[i] {
				want = append(want, strings.Join(row, "|"))
			}
			if got := p.execute(t, nights); got != strings.Join(want, "\n") {
				t.Errorf("load %d: %s, want %s", i, got, want)
			}
		}
	})
	t.Run("what fails loads nothing", func(t *testing.T) {
		for name, c := range map[string]struct{ cell, says string }{
			"no_text": {"'a' || chr(0)", "a text has a NUL byte"},
			"the_end": {"E'a\\n\\\\.\\nb'", "unterminated CSV quoted field"}, // before psql 18
			"damaged": {"'damage'", "exit code 2"},
		} {
			dir := t.TempDir()
			in, out := filepath.Join(dir, "in.parquet"), filepath.Join(dir, "out")
			execute(t, open(t), fmt.Sprintf("COPY (SELECT i::VARCHAR AS id, i || '@x.example' AS email, CASE i WHEN 1 THEN %s END AS note FROM range(2) r(i)) TO '%s' (FORMAT parquet)", c.cell, in))
			leadetl(t, "run", "email_to_hem", "--in", in, "--out", out, "--quiet", "--set", "rows_per_part=1", "--select", "outcome,reason,id,note")
			if name == "damaged" {
				part := filepath.Join(out, "part-00001.parquet")
				data, err := os.ReadFile(part)
				if err == nil {
					clear(data[4:40])
					err = os.WriteFile(part, data, 0o600)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			if said, err := p.psql(t, schema(t, out, "--table", name)); err == nil || !strings.Contains(said, c.says) {
				t.Errorf("%s: %v, %s", name, err, said)
			}
			if got := p.execute(t, "SELECT count(*) FROM "+name); got != "0" {
				t.Errorf("%s: %s rows are loaded", name, got)
			}
		}
	})
}

// cases are the branches of CASE, for 0 and so on.
func cases(values []string) string {
	text := ""
	for i, v := range values {
		text += fmt.Sprintf(" WHEN %d THEN %s", i, v)
	}
	return text
}
