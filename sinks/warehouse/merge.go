package warehouse

import (
	"fmt"
	"slices"
	"strings"

	"github.com/leadetl/leadetl/sinks/schema"
)

// Merge keeps a table that has the latest rows of each key: it takes the changes of a dataset over.
// Its column row_hash tells the rows of a key apart.
type Merge struct {
	// Table has the columns of the dataset, those in paths too, and its location. Partitions
	// with one value are not in the table.
	Table
	Changes []string // columns of the changes, behind those of the dataset
	By      int      // place of the column that rows are found by
	Answers []bool   // which columns hold answers: a row that failed keeps the ones it had
	Since   string   // job id of the earlier dataset; empty without one
}

// changesSuffix ends the name of the table of changes. No suffix is longer.
const changesSuffix = "_changes"

// mergeDialect is how a warehouse writes a merge.
type mergeDialect struct {
	name    func(string) string // in queries
	columns func(string) string // in CREATE TABLE; nil is name
	hash    string              // hex SHA-256 of a text
	kept    bool                // the table of changes is none of the session
	load    func(m Merge, w *writer, changes string)
	with    string // behind the columns of the table
	scheme  string
}

// Hash functions. Sources: the function references of the warehouses.
var mergeDialects = map[Dialect]mergeDialect{
	DuckDB: {name: doubleQuoted, hash: "sha256(%s)", load: func(m Merge, w *writer, changes string) {
		w.line("CREATE OR REPLACE TEMP TABLE %s AS SELECT * FROM read_parquet(%s);", changes, literal(m.files("")+partsPattern))
	}},
	Snowflake: {name: snowflakeName, kept: true, hash: "SHA2(%s, 256)", scheme: "s3://", load: func(m Merge, w *writer, changes string) {
		w.line("CREATE OR REPLACE TEMPORARY TABLE %s (", changes)
		m.writeChanged(w, Snowflake, snowflakeName)
		w.line(");\n")
		stage := w.stage()
		w.line("COPY INTO %s\n  FROM %s/%s/_changes/part-\n  FILE_FORMAT = leadetl_parquet\n  MATCH_BY_COLUMN_NAME = CASE_INSENSITIVE;", changes, stage, m.below())
	}},
	BigQuery: {name: backslashQuoted, kept: true, hash: "TO_HEX(SHA256(%s))", scheme: "gs://", load: func(m Merge, w *writer, changes string) {
		w.line("LOAD DATA OVERWRITE %s\nFROM FILES (\n  format = 'PARQUET',\n  enable_list_inference = true,\n  uris = [%s]\n);", changes, backslashed(m.files("gs://")+partsPattern))
	}},
	Redshift: {name: lowerQuoted, hash: "SHA2(%s, 256)", scheme: "s3://", load: func(m Merge, w *writer, changes string) {
		w.line("CREATE TEMP TABLE %s (", changes)
		m.writeChanged(w, Redshift, lowerQuoted)
		w.line(");\nCOPY %s FROM %s\n  IAM_ROLE default\n  FORMAT AS PARQUET SERIALIZETOJSON;", changes, literal(m.files("s3://")+"part-"))
	}},
	Postgres: {name: doubleQuoted, hash: "encode(sha256(convert_to(%s, 'UTF8')), 'hex')", load: func(m Merge, w *writer, changes string) {
		w.line("BEGIN;")
		_, values := w.exported(m.files("s3://"), m.changed(w))
		w.line("CREATE TEMP TABLE %s ON COMMIT DROP AS SELECT\n  %s\n  FROM %s;", changes, values, w.loaded())
		w.line(postgresLock, qualified(m.name(), doubleQuoted))
	}},
	Athena: {
		name: lowerQuoted, kept: true, columns: func(s string) string { return backquoted(strings.ToLower(s)) },
		hash: "lower(to_hex(sha256(to_utf8(%s))))", scheme: "s3://", with: "\nLOCATION 's3://BUCKET/TABLE/'\nTBLPROPERTIES ('table_type' = 'ICEBERG')",
		load: func(m Merge, w *writer, _ string) {
			w.line("DROP TABLE IF EXISTS %s;\nCREATE EXTERNAL TABLE %[1]s (", qualified(strings.ToLower(m.name()+changesSuffix), backquoted))
			m.writeChanged(w, Athena, func(s string) string { return backquoted(strings.ToLower(s)) })
			w.line(")\nSTORED AS PARQUET\nLOCATION %s;", literal(m.files("s3://")))
		},
	},
	Spark: {name: backquoted, hash: "sha2(%s, 256)", scheme: "s3a://", with: "\nUSING DELTA", load: func(m Merge, w *writer, changes string) {
		w.line("CREATE OR REPLACE TEMPORARY VIEW %s\nUSING PARQUET OPTIONS (path %s);", changes, backslashed(m.files("s3a://")))
	}},
}

// files is the folder of the changes.
func (m Merge) files(scheme string) string { return m.folder(scheme) + "/_changes/" }

// below is the folder of the dataset below the location of the table.
func (m Merge) below() string {
	return strings.Trim(strings.TrimPrefix(m.folder("s3://"), m.location("s3://")), "/")
}

// changed are the columns of the table of changes, of which the writer has those of the dataset.
func (m Merge) changed(w *writer) []parsed {
	all := slices.Clone(w.columns)
	for _, c := range m.Changes {
		kind := "STRING"
		switch {
		case c == "changed":
			kind = "LIST<STRING>"
		case strings.HasPrefix(c, "was_"):
			for _, column := range m.Columns {
				if "was_"+column.Name == c {
					kind = column.Type
				}
			}
		}
		of, err := parseType(kind)
		if err != nil {
			panic(err) // the columns of the table were parsed
		}
		all = append(all, parsed{schema.Column{Name: c}, of})
	}
	return all
}

// writeChanged writes the columns of the table of changes.
func (m Merge) writeChanged(w *writer, d Dialect, name func(string) string) {
	var lines []string
	for _, c := range m.changed(w) {
		lines = append(lines, "  "+name(c.Name)+" "+c.kind.in(d))
	}
	w.lines(lines)
}

// WriteMerge writes the table, what reads the changes of a dataset, and the statement that
// takes them over.
func WriteMerge(d Dialect, m Merge) (string, error) {
	of, known := mergeDialects[d]
	if !known {
		return "", fmt.Errorf("changes are merged in a warehouse; --dialect is one of %s", strings.Join(Names(Warehouses), ", "))
	}
	w := &writer{table: m.Table}
	for _, c := range m.Columns {
		kind, err := parseType(c.Type)
		if err != nil {
			return "", fmt.Errorf("column %s: %w", c.Name, err)
		}
		w.columns = append(w.columns, parsed{c, kind})
	}
	columns := of.columns
	if columns == nil {
		columns = of.name
	}
	table := func(name string) string {
		if d == BigQuery {
			return inDataset(name)
		}
		return qualified(name, of.name)
	}
	into, changes := table(m.name()), of.name(m.temporary(changesSuffix))
	if of.kept {
		changes = table(m.name() + changesSuffix)
	}
	w.head("the latest rows of each key, and what changed")
	if d == Postgres {
		w.psql()
	}
	w.line("-- Every night in its order, the first one too. Rows without %s are not in the table.", m.Columns[m.By].Name)
	create := into
	if d == Athena {
		create = qualified(m.name(), columns)
	}
	w.line("CREATE TABLE IF NOT EXISTS %s (", create)
	w.list(func(c parsed) string { return columns(c.Name) + " " + c.kind.in(d) }, columns("row_hash")+" "+kind{plain: "STRING"}.in(d))
	w.line(")%s;\n", of.with)
	of.load(m, w, changes)
	w.line("")
	if d == Redshift { // its MERGE takes a table, and no conditions
		m.redshift(w, of, into, changes)
	} else {
		m.merge(w, of, into, changes)
	}
	if d == Postgres {
		w.line("COMMIT;")
	}
	return w.String(), nil
}

// source selects the changes of rows with a key, with the key: of removed rows that have only a
// hash, that of the row in the table.
func (m Merge) source(of mergeDialect, into, changes string) string {
	by := of.name(m.Columns[m.By].Name)
	if m.Since == "" {
		return fmt.Sprintf("SELECT c.*, c.%s AS found_by FROM %s c\n  WHERE c.%[1]s IS NOT NULL AND c.%[3]s <> 'without_key'", by, changes, of.name("change"))
	}
	hash := fmt.Sprintf(of.hash, fmt.Sprintf("CONCAT(%s, h.%s)", literal(m.Since+":"), by))
	return fmt.Sprintf("SELECT c.*, COALESCE(c.%[1]s, h.%[1]s) AS found_by\n  FROM %[2]s c LEFT JOIN %[3]s h ON c.key_hash = %[4]s AND c.was_row_hash = h.row_hash\n  WHERE COALESCE(c.%[1]s, h.%[1]s) IS NOT NULL AND c.%[5]s <> 'without_key'",
		by, changes, into, hash, of.name("change"))
}

// assignments are the columns that a changed row sets, from the source s.
func (m Merge) assignments(of mergeDialect, into string) string {
	var all []string
	for i, c := range m.Columns {
		name := of.name(c.Name)
		value := "s." + name
		if m.Answers[i] {
			value = fmt.Sprintf("CASE WHEN s.outcome IN ('failed', 'skipped') THEN %s.%s ELSE s.%[2]s END", into, name)
		}
		all = append(all, name+" = "+value)
	}
	return strings.Join(append(all, "row_hash = s.row_hash"), ",\n  ")
}

// inserted are the columns of a new row, and their values from the source s.
func (m Merge) inserted(of mergeDialect) string {
	names, values := []string{}, []string{}
	for _, c := range m.Columns {
		names, values = append(names, of.name(c.Name)), append(values, "s."+of.name(c.Name))
	}
	return fmt.Sprintf("(%s, row_hash)\n  VALUES (%s, s.row_hash)", strings.Join(names, ", "), strings.Join(values, ", "))
}

func (m Merge) merge(w *writer, of mergeDialect, into, changes string) {
	w.line("-- A row that failed keeps the answer it had.")
	w.line("MERGE INTO %s t USING (\n  %s\n) s", into, m.source(of, into, changes))
	// A row that was changed has was_row_hash before the statement, and row_hash if it runs again.
	w.line("ON t.%s = s.found_by AND t.row_hash IN (s.was_row_hash, s.row_hash)", of.name(m.Columns[m.By].Name))
	w.line("WHEN MATCHED AND s.%s = 'removed' THEN DELETE", of.name("change"))
	w.line("WHEN MATCHED THEN UPDATE SET\n  %s", m.assignments(of, "t"))
	w.line("WHEN NOT MATCHED AND s.%s <> 'removed' THEN INSERT %s;", of.name("change"), m.inserted(of))
}

func (m Merge) redshift(w *writer, of mergeDialect, into, changes string) {
	by, found := of.name(m.Columns[m.By].Name), doubleQuoted(m.temporary("_found"))
	w.line("CREATE TEMP TABLE %s AS\n  %s;", found, m.source(of, into, changes))
	w.line("DELETE FROM %s USING %s s\n  WHERE %[1]s.%[3]s = s.found_by AND %[1]s.row_hash = s.was_row_hash AND s.change = 'removed';", into, found, by)
	w.line("DELETE FROM %s WHERE change = 'removed';", found)
	w.line("UPDATE %s SET row_hash = s.row_hash FROM %s s\n  WHERE %[1]s.%[3]s = s.found_by AND %[1]s.row_hash = s.was_row_hash;", into, found, by)
	w.line("-- A row that failed keeps the answer it had.")
	w.line("MERGE INTO %s USING %s s\nON %[1]s.%[3]s = s.found_by AND %[1]s.row_hash = s.row_hash", into, found, by)
	w.line("WHEN MATCHED THEN UPDATE SET\n  %s", m.assignments(of, into))
	w.line("WHEN NOT MATCHED THEN INSERT %s;", m.inserted(of))
}
