// Command duckdb does our jobs as a warehouse would: one SQL statement from CSV
// to Parquet. It is a program of its own, so that its time and memory are
// measured like those of leadetl.
//
//	duckdb copy IN.csv OUT.parquet [source_row]   writes the columns of email_to_hem
//	duckdb import KIND IN.csv OUT.parquet         writes reference data, sorted
//	duckdb lookup OPERATION IN.csv DIR OUT.parquet  writes the columns of an operation, from reference data in DIR
//	duckdb rewrite GLOB OUT.parquet               writes the same rows
//	duckdb sum OPERATION GLOB                     prints count and checksum of the rows
//	duckdb version                                prints DuckDB's version
package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strings"

	_ "github.com/duckdb/duckdb-go/v2"
)

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "duckdb:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	db, err := sql.Open("duckdb", "")
	if err != nil {
		return err
	}
	defer db.Close()
	do := func(statement string, err error) error {
		if err == nil {
			_, err = db.ExecContext(ctx, statement)
		}
		return err
	}
	switch {
	case len(args) >= 3 && args[0] == "copy":
		return do(copyStatement(args[1], args[2], len(args) > 3), nil)
	case len(args) == 4 && args[0] == "import":
		return do(importStatement(args[1], args[2], args[3]))
	case len(args) == 5 && args[0] == "lookup":
		return do(lookupStatement(args[1], args[2], args[3], args[4]))
	case len(args) == 3 && args[0] == "rewrite":
		return do(toParquet("SELECT * FROM read_parquet("+quote(args[1])+")", args[2]), nil)
	case len(args) == 3 && args[0] == "sum":
		return print(ctx, db, sumStatement(args[1], args[2]))
	case len(args) == 1 && args[0] == "version":
		return print(ctx, db, "SELECT version()")
	}
	return errors.New("usage: duckdb copy IN.csv OUT.parquet [source_row] | import KIND IN.csv OUT.parquet | lookup OPERATION IN.csv DIR OUT.parquet | rewrite GLOB OUT.parquet | sum OPERATION GLOB | version")
}

// print prints the single value of a query.
func print(ctx context.Context, db *sql.DB, query string) error {
	var value string
	if err := db.QueryRowContext(ctx, query).Scan(&value); err != nil {
		return err
	}
	_, err := fmt.Println(value)
	return err
}

// copyStatement writes the columns of email_to_hem. source_row costs DuckDB a
// window over all rows, so it is optional.
func copyStatement(in, out string, sourceRow bool) string {
	row := ""
	if sourceRow {
		row = "row_number() OVER () AS source_row,"
	}
	return fmt.Sprintf(`COPY (
		SELECT id, email, %[1]s AS source, %[3]s
			key, 'matched' AS outcome, NULL::VARCHAR AS reason, NULL::VARCHAR AS resolution_id,
			NULL::TIMESTAMPTZ AS resolved_at, 'embedded' AS answered_by, 0::INTEGER AS credits,
			md5(key) AS hem_md5, sha1(key) AS hem_sha1, sha256(key) AS hem_sha256, NULL::VARCHAR AS network_url
		FROM (SELECT id, email, lower(trim(email)) AS key
			FROM read_csv(%[1]s, header = true, columns = {'id': 'VARCHAR', 'email': 'VARCHAR'}))
	) TO %[2]s (FORMAT parquet, COMPRESSION snappy)`, quote(in), quote(out), row)
}

// sumStatement does not depend on the order of rows or files.
func sumStatement(operation, glob string) string {
	columns := "id, email, key, outcome, credits, hem_md5, hem_sha1, hem_sha256"
	if l, known := lookups[operation]; known {
		columns = "id, " + l.identifier + ", key, outcome, reason" + l.same
	}
	return fmt.Sprintf(`SELECT count(*) || ' rows, checksum ' || sum(hash(%s)) FROM read_parquet(%s)`, columns, quote(glob))
}

func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }
