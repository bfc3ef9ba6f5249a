package warehouse

import (
	"fmt"
	"strings"

	"github.com/leadetl/leadetl/sinks/schema"
)

// postgres writes a script of psql, whose \copy runs leadetl export and loads its rows.
func (w *writer) postgres() {
	t := w.table
	name := qualified(t.name(), doubleQuoted)
	w.head("the table, what its columns mean, and the rows")
	w.psql()
	w.line("CREATE TABLE IF NOT EXISTS %s (", name)
	columns := w.columns[:len(w.columns):len(w.columns)]
	var partitions []string
	for _, p := range t.partitions() {
		kind := kind{plain: "STRING"}
		if p.isDate() {
			kind.plain = "DATE"
		}
		columns = append(columns, parsed{schema.Column{Name: p.Name}, kind})
		partitions = append(partitions, doubleQuoted(p.Name)+" "+kind.in(Postgres))
	}
	w.list(func(c parsed) string { return doubleQuoted(c.Name) + " " + c.kind.in(Postgres) + c.required() }, partitions...)
	w.line(");\n")
	w.meanings(doubleQuoted)
	w.line("\nBEGIN;")
	names, values := w.exported(t.folder("s3://"), columns)
	if t.Replace {
		w.line(postgresLock, name)
		w.line("DELETE FROM %s WHERE %s;", name, t.replaced(doubleQuoted, literal))
	}
	w.line("INSERT INTO %s (%s)\nSELECT\n  %s\n  FROM %s;", name, names, values, w.loaded())
	w.line("COMMIT;")
}

// psql begins a script. An export that fails must not be committed, and psql goes on after an error
// unless it is told to stop.
func (w *writer) psql() {
	w.line("-- For psql of PostgreSQL 15 or later, as a script: if a command fails, nothing is loaded.")
	w.line(`\set ON_ERROR_STOP on`)
	w.line("SET client_encoding = 'UTF8';")
}

// postgresLock lets others read a table, and wait to change it.
const postgresLock = "LOCK TABLE %s IN SHARE ROW EXCLUSIVE MODE;"

// loaded is the table that rows are copied into.
func (w *writer) loaded() string { return doubleQuoted(w.table.temporary("_load")) }

// exported copies the rows of a dataset into the table loaded, and returns its columns, and their values
// for a table. A list of texts is one text in CSV.
func (w *writer) exported(dataset string, columns []parsed) (names, values string) {
	var all, selected, declared []string
	for _, c := range columns {
		name := doubleQuoted(c.Name)
		value, kind := name, c.kind.in(Postgres)
		if c.kind.element != nil && c.kind.element.isPlain() {
			value, kind = fmt.Sprintf("CASE WHEN %s LIKE '[%%' THEN ARRAY(SELECT jsonb_array_elements_text(%[1]s::jsonb)) ELSE string_to_array(%[1]s, ';') END AS %[1]s", name), "text"
		}
		all, selected, declared = append(all, name), append(selected, value), append(declared, "  "+name+" "+kind)
	}
	w.line("CREATE TEMP TABLE %s (", w.loaded())
	w.lines(declared)
	w.line(") ON COMMIT DROP;")
	w.line(`\copy %s FROM PROGRAM %s WITH (FORMAT csv, HEADER match)`, w.loaded(), literal("leadetl export "+shellQuoted(dataset)+" --out -"))
	return strings.Join(all, ", "), strings.Join(selected, ",\n  ")
}
