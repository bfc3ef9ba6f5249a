// Command duckdb does our jobs as a warehouse would: one SQL statement from CSV
// to Parquet. It is a program of its own, so that its time and memory are
// measured like those of leadetl.
//
//	duckdb copy IN.csv OUT.parquet           writes the columns of email_to_hem
//	duckdb import KIND IN.csv DATABASE       makes a table of reference data, sorted
//	duckdb lookup OPERATION COLUMNS IN.csv REFERENCE OUT.parquet
//	                                         writes all columns of an operation, or a list of them, from
//	                                         reference data in a .duckdb or in a folder of CSV files
//	duckdb rewrite GLOB OUT.parquet          writes the same rows
//	duckdb csv GLOB OUT.csv                  writes them as CSV
//	duckdb sum FILE GLOB                     prints the matches in GLOB, whether its rows are in the order of the list, and
//	                                         sums of the columns that FILE has
//	duckdb version                           prints DuckDB's version
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
	command, database := "", ""
	if len(args) > 0 {
		command = fmt.Sprint(args[0], " ", len(args)-1)
	}
	if command == "import 3" {
		database = args[3]
	}
	db, err := sql.Open("duckdb", database)
	if err != nil {
		return err
	}
	defer db.Close()
	db.SetMaxOpenConns(1) // a setting is that of a connection
	do := func(statement string, err error) error {
		if err == nil {
			_, err = db.ExecContext(ctx, statement)
		}
		return err
	}
	if err := do("SET TimeZone = 'UTC'", nil); err != nil {
		return err
	}
	switch command {
	case "copy 2":
		return do(copyStatement(args[1], args[2]), nil)
	case "import 3":
		return do(importStatement(args[1], args[2]))
	case "lookup 5":
		if isDatabase(args[4]) {
			if err := do("ATTACH "+quote(args[4])+" AS reference (READ_ONLY)", nil); err != nil {
				return err
			}
		}
		return do(lookupStatement(args[1], args[2], args[3], args[4], args[5]))
	case "rewrite 2":
		return do(toParquet("SELECT * FROM read_parquet("+quote(args[1])+")", args[2]), nil)
	case "csv 2":
		return do("COPY (SELECT * FROM read_parquet("+quote(args[1])+")) TO "+quote(args[2])+" (FORMAT csv, HEADER)", nil)
	case "sum 2":
		return printSums(ctx, db, args[1], args[2])
	case "version 0":
		return print(ctx, db, "SELECT version()")
	}
	return errors.New("usage: duckdb copy IN.csv OUT.parquet | import KIND IN.csv DATABASE | lookup OPERATION COLUMNS IN.csv REFERENCE OUT.parquet | rewrite GLOB OUT.parquet | csv GLOB OUT.csv | sum FILE GLOB | version")
}

func isDatabase(name string) bool { return strings.HasSuffix(name, ".duckdb") }

// print prints the single value of a query.
func print(ctx context.Context, db *sql.DB, query string) error {
	var value string
	if err := db.QueryRowContext(ctx, query).Scan(&value); err != nil {
		return err
	}
	_, err := fmt.Println(value)
	return err
}

// copyStatement writes the columns of email_to_hem. It omits source_row, which costs DuckDB
// a window over all rows.
func copyStatement(in, out string) string {
	return toParquet(fmt.Sprintf(`SELECT id, email, %[1]s AS source,
			key, 'matched' AS outcome, NULL::VARCHAR AS reason, NULL::VARCHAR AS resolution_id,
			NULL::TIMESTAMPTZ AS resolved_at, 'embedded' AS answered_by, 0::INTEGER AS credits,
			md5(key) AS hem_md5, sha1(key) AS hem_sha1, sha256(key) AS hem_sha256, NULL::VARCHAR AS network_url
		FROM (SELECT id, email, lower(trim(email)) AS key
			FROM read_csv(%[1]s, header = true, columns = {'id': 'VARCHAR', 'email': 'VARCHAR'}))`, quote(in)), out)
}

// printSums prints the number of matches, whether the rows are in the order of the list, whose ids count them, and for
// each column of a file a line with the sum of the hashes of its values and ids.
func printSums(ctx context.Context, db *sql.DB, file, glob string) error {
	var columns string
	if err := db.QueryRowContext(ctx, "SELECT string_agg(column_name, ',') FROM (DESCRIBE FROM read_parquet("+quote(file)+"))").Scan(&columns); err != nil {
		return err
	}
	sums := "count_if(outcome = 'matched'), bool_and(id::BIGINT > before)"
	for _, name := range strings.Split(columns, ",") {
		sums += ", '" + name + "=' || sum(hash(id, " + name + "))"
	}
	return print(ctx, db, "SELECT concat_ws(chr(10), "+sums+") FROM (SELECT *, lag(id::BIGINT, 1, 0) OVER (ORDER BY filename, file_row_number) AS before FROM read_parquet("+
		quote(glob)+", filename = true, file_row_number = true))")
}

func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }
