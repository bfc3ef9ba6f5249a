package foreigntest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	_ "github.com/duckdb/duckdb-go/v2"

	"github.com/leadetl/leadetl/internal/rows"
	"github.com/leadetl/leadetl/sources/parquetfile"
)

// What came of a file.
const (
	equal     = "equal"                                  // every value is DuckDB's
	partly    = "equal, but for columns refused by name" // VARIANT and the like
	differs   = "differs"                                // a value, or the number of rows
	refused   = "refused"
	intended  = "refused, as it should be" // below
	unread    = "described by DuckDB, but not read by it"
	undecided = "not described by DuckDB"
)

// refusals are the files that are refused although DuckDB reads them, with a
// part of the sentence that says why.
var refusals = map[string]string{
	"negative_row_group_num_rows": "row group 1 has -1 rows",                // damaged for a test
	"num_values_exceeds_data":     "is damaged",                             // damaged for a test
	"repeated_no_annotation":      "it says 0 rows, its row groups have 6",  // a list must not come out empty
	"large_string_map.brotli":     "a page of more than 256 MiB",            // 4 kB of file, a value of 1 GiB
	"int96_from_spark":            "an INT96 has an impossible time of day", // of the year 290,000; DuckDB reads 226,414 BC
}

// share is the least part of the files of others that are read with DuckDB's
// values.
const share = 0.95

func TestForeign(t *testing.T) {
	t.Run("others", func(t *testing.T) {
		seen := map[string]bool{}
		var files []string
		for _, folder := range folders(t) {
			files = append(files, parquetFiles(t, folder, seen)...)
		}
		tally(t, "files of others", files)
	})
	t.Run("duckdb", func(t *testing.T) { tally(t, "files that DuckDB writes", duckdbFiles(t)) })
}

// open is an empty database.
func open(t *testing.T) *sql.DB {
	t.Helper()
	db, err := sql.Open("duckdb", "")
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	if _, err := db.Exec("SET TimeZone = 'UTC'"); err != nil {
		t.Fatal(err)
	}
	return db
}

// tally reads files, and prints what came of them.
func tally(t *testing.T, name string, files []string) {
	t.Helper()
	counts := map[string]int{}
	for _, path := range files {
		result, detail := compare(t, path)
		counts[result]++
		if result != equal {
			fmt.Printf("%-40s %s: %s\n", short(path), result, detail)
		}
	}
	comparable := len(files) - counts[undecided] - counts[unread]
	read := counts[equal] + counts[partly]
	fmt.Printf("%s: %d, of which DuckDB reads %d, and we %d with its values (%.1f%%)\n", name, len(files), comparable, read, 100*float64(read)/float64(max(1, comparable)))
	for _, result := range []string{equal, partly, differs, refused, intended, unread, undecided} {
		fmt.Printf("%6d  %s\n", counts[result], result)
	}
	if least := share * float64(comparable-counts[intended]); float64(read) < least {
		t.Errorf("%s: %d of %d are read with DuckDB's values, want %.0f", name, read, comparable-counts[intended], least)
	}
}

// compare reads a file with both.
func compare(t *testing.T, path string) (result, detail string) {
	t.Helper()
	db := open(t) // some files leave a database that can do nothing more
	defer db.Close()
	kinds, err := describe(db, path)
	if err != nil {
		return undecided, ourOutcome(path) + "; DuckDB: " + err.Error()
	}
	got, problems, err := ours(path)
	if why, ok := refusals[short(path)]; ok {
		if err := errors.Join(append(problems, err)...); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v, want a refusal with %q", short(path), err, why)
		}
		return intended, why
	}
	want, unreadable := values(db, path, kinds)
	switch {
	case unreadable != nil:
		return unread, ourOutcome(path) + "; DuckDB: " + unreadable.Error()
	case err != nil:
		return refused, err.Error()
	}
	if len(got) != len(kinds) {
		return differs, fmt.Sprintf("%d columns, DuckDB has %d", len(got), len(kinds))
	}
	for c, column := range got {
		if problems[c] != nil {
			continue
		}
		if len(column) != len(want) {
			return differs, fmt.Sprintf("column %d has %d rows, DuckDB %d", c+1, len(column), len(want))
		}
		for i, cell := range column {
			if cell.rejected && isBinary(want[i][c]) {
				continue
			}
			if cell.rejected || !kinds[c].equal(cell.text, want[i][c]) {
				return differs, fmt.Sprintf("column %d (%s), row %d: %s, DuckDB has %T %.200v", c+1, kinds[c].name, i+1, cell, want[i][c], want[i][c])
			}
		}
	}
	for c, problem := range problems {
		if problem != nil && strings.Contains(problem.Error(), "is not supported") {
			return partly, problem.Error()
		} else if problem != nil {
			return refused, fmt.Sprintf("column %d: %v", c+1, problem)
		}
	}
	return equal, ""
}

func quoted(path string) string { return strings.ReplaceAll(path, "'", "''") }

func source(path string) string {
	return "read_parquet('" + quoted(path) + "', hive_partitioning = false)"
}

func describe(db *sql.DB, path string) (kinds []kind, err error) {
	rows, err := db.Query("SELECT column_type FROM (DESCRIBE SELECT * FROM " + source(path) + ")")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			return nil, err
		}
		kinds = append(kinds, parseKind(text))
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	var int96 bool // instants, which DuckDB has as local times
	err = db.QueryRow("SELECT coalesce(bool_or(type = 'INT96'), false) FROM parquet_schema('" + quoted(path) + "')").Scan(&int96)
	for i, k := range kinds {
		if int96 && strings.HasPrefix(k.name, "TIMESTAMP") {
			kinds[i].name = "TIMESTAMP WITH TIME ZONE"
		}
	}
	return kinds, err
}

// values are the rows as DuckDB reads them, without columns of types that we
// refuse.
func values(db *sql.DB, path string, kinds []kind) (all [][]any, err error) {
	picked := make([]string, len(kinds))
	for i, k := range kinds {
		switch picked[i] = fmt.Sprint("c", i); k.name {
		case "VARIANT", "GEOMETRY":
			picked[i] = "NULL"
		case "JSON":
			picked[i] += "::VARCHAR"
		}
	}
	columns := len(kinds)
	rows, err := db.Query("SELECT " + strings.Join(picked, ", ") + " FROM " + source(path) + " t(" + names(columns) + ")")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		row, targets := make([]any, columns), make([]any, columns)
		for i := range row {
			targets[i] = &row[i]
		}
		if err := rows.Scan(targets...); err != nil {
			return nil, err
		}
		all = append(all, row)
	}
	return all, rows.Err()
}

// names are names for n columns.
func names(n int) string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprint("c", i)
	}
	return strings.Join(all, ", ")
}

// cell is a value of ours.
type cell struct {
	text     *string // nil for null
	rejected bool    // it is not UTF-8
}

func (c cell) String() string {
	switch {
	case c.rejected:
		return "a reject"
	case c.text == nil:
		return "null"
	}
	return fmt.Sprintf("%.200q", *c.text)
}

// ours reads every column by itself.
func ours(path string) (columns [][]cell, problems []error, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	r, err := parquetfile.Open(filepath.Base(path), f)
	if err != nil {
		return nil, nil, err
	}
	names := r.Columns()
	if err := r.Close(); err != nil {
		return nil, nil, err
	}
	for c := range names {
		cells, err := column(f, c)
		columns, problems = append(columns, cells), append(problems, err)
	}
	return columns, problems, nil
}

func column(f *os.File, c int) (cells []cell, err error) {
	ctx := context.Background()
	r, err := parquetfile.Open(filepath.Base(f.Name()), f)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	if err := r.Select(ctx, []int{c}); err != nil {
		return nil, err
	}
	const most = 8192
	for err == nil {
		b := rows.NewBuilder(1, most)
		err = r.Fill(ctx, b, most)
		batch := b.Batch(f.Name(), []int{0})
		for int64(len(cells)) < r.Row() {
			cells = append(cells, cell{rejected: true})
		}
		for i, row := range batch.Rows {
			cells[row-1] = cell{}
			if !batch.Columns[0].IsNull(i) {
				text := strings.Clone(batch.Columns[0].Value(i))
				cells[row-1].text = &text
			}
		}
		batch.Release()
	}
	if !errors.Is(err, io.EOF) {
		return nil, err
	}
	return cells, nil
}

// ourOutcome says what our reader makes of a file that DuckDB does not read.
func ourOutcome(path string) string {
	columns, problems, err := ours(path)
	if err == nil {
		err = errors.Join(problems...)
	}
	if err != nil {
		return "we refuse it: " + strings.ReplaceAll(err.Error(), "\n", "; ")
	}
	return fmt.Sprintf("we read %d columns", len(columns))
}
