// Package warehouse writes down how a dataset gets into a data warehouse: the
// table that fits its columns, the statement that loads it, and what the
// warehouse would trip over.
//
// The one thing to know before using it: nothing here connects to anything.
// What comes out is text for people and their tools.
package warehouse

import (
	"fmt"
	"slices"
	"strings"
)

// Dialect is a warehouse, or Markdown for people.
type Dialect string

// The dialects.
const (
	DuckDB    Dialect = "duckdb"
	Snowflake Dialect = "snowflake"
	BigQuery  Dialect = "bigquery"
	Redshift  Dialect = "redshift"
	Athena    Dialect = "athena"
	Spark     Dialect = "spark"
	Markdown  Dialect = "markdown"
)

// Warehouses are the dialects that are one.
var Warehouses = []Dialect{DuckDB, Snowflake, BigQuery, Redshift, Athena, Spark}

// Dialects are all that Write knows.
var Dialects = append(slices.Clone(Warehouses), Markdown)

// Parse finds the dialect called name among those that may be.
func Parse(name string, among []Dialect) (Dialect, error) {
	if d := Dialect(strings.ToLower(name)); slices.Contains(among, d) {
		return d, nil
	}
	return "", fmt.Errorf("unknown dialect %q; it is one of %s", name, Names(among))
}

// Names lists dialects with commas.
func Names(dialects []Dialect) string {
	names := make([]string, len(dialects))
	for i, d := range dialects {
		names[i] = string(d)
	}
	return strings.Join(names, ", ")
}

// Column is a column of a dataset.
type Column struct {
	Name     string
	Type     string // as manifests have it: "STRING", "LIST<STRUCT<email STRING, type STRING>>"
	Nullable bool
	// What follows is for people: what the column is, the unit of its values,
	// when there is none, and by which rule it comes about.
	Meaning, Unit, Null, From string
}

// Partition is a column that is in the paths of a dataset's files, and not in
// the files.
type Partition struct {
	Name  string
	Value string // of all rows
	// Varies says that each value that rows have is a folder. Rows without one
	// are in that of DefaultPartition. It is the last of a table's partitions.
	Varies bool
}

// constant are the partitions that lead to the dataset's folder.
func (t Table) constant() []Partition {
	return slices.DeleteFunc(slices.Clone(t.Partitions), func(p Partition) bool { return p.Varies })
}

// varying is the column that the dataset's rows are parted by, if there is one.
func (t Table) varying() (Partition, bool) {
	if n := len(t.Partitions); n > 0 && t.Partitions[n-1].Varies {
		return t.Partitions[n-1], true
	}
	return Partition{}, false
}

// isDate reports whether a partition's value is a day.
func (p Partition) isDate() bool { return datePattern.MatchString(p.Value) }

// Table is a table to be made of a dataset.
type Table struct {
	Name       string // empty for the operation's
	Operation  string
	Version    int // of the schema
	Columns    []Column
	Partitions []Partition
	// Location is where the dataset is, or, with partitions, what their folders
	// are in: a folder or a URI. Empty is a place to be filled in.
	Location string
}

func (t Table) name() string {
	if t.Name == "" {
		return t.Operation
	}
	return t.Name
}

// location is where the table's files are, below a scheme if there is none.
func (t Table) location(scheme string) string {
	if t.Location == "" {
		return scheme + "BUCKET/PREFIX"
	}
	return strings.TrimSuffix(t.Location, "/")
}

// Folder is the folder of the dataset itself, of a table with a Location.
func (t Table) Folder() string { return t.folder("") }

// folder is Folder, below a scheme where there is no Location.
func (t Table) folder(scheme string) string {
	constant := t.constant()
	if len(constant) == 0 {
		return t.location(scheme)
	}
	return t.location(scheme) + "/" + PartitionPath(constant)
}

// Write writes the table and what loads it.
func Write(d Dialect, t Table) (string, error) {
	columns := make([]parsed, len(t.Columns))
	for i, c := range t.Columns {
		kind, err := parseType(c.Type)
		if err != nil {
			return "", fmt.Errorf("column %s: %w", c.Name, err)
		}
		columns[i] = parsed{c, kind}
	}
	w := &writer{table: t, columns: columns}
	switch d {
	case DuckDB:
		w.duckdb()
	case Snowflake:
		w.snowflake()
	case BigQuery:
		w.bigquery()
	case Redshift:
		w.redshift()
	case Athena:
		w.athena()
	case Spark:
		w.spark()
	case Markdown:
		w.markdown()
	default:
		return "", fmt.Errorf("unknown dialect %q", d)
	}
	return w.String(), nil
}

// parsed is a column with its type taken apart.
type parsed struct {
	Column
	kind kind
}

// writer collects a text.
type writer struct {
	strings.Builder
	table   Table
	columns []parsed
}

func (w *writer) line(format string, args ...any) { fmt.Fprintf(w, format+"\n", args...) }

// head says what the statements are of.
func (w *writer) head(what string) {
	w.line("-- %s, schema version %d: %s", w.table.Operation, w.table.Version, what)
}

// list writes the columns of a CREATE TABLE, each made by one, and partitions
// behind them.
func (w *writer) list(one func(parsed) string, partitions ...string) {
	lines := make([]string, 0, len(w.columns)+len(partitions))
	for _, c := range w.columns {
		lines = append(lines, "  "+one(c))
	}
	for _, p := range partitions {
		lines = append(lines, "  "+p)
	}
	w.line("%s", strings.Join(lines, ",\n"))
}

// required is what a column without nulls has behind its type.
func (c parsed) required() string {
	if c.Nullable {
		return ""
	}
	return " NOT NULL"
}

// about is what a column's comment says.
func (c parsed) about() string {
	text := c.Meaning
	if c.Unit != "" {
		text += " (" + c.Unit + ")"
	}
	if c.Null != "" {
		text += "; null when " + c.Null
	}
	return text
}

// literal is a string in SQL that doubles quotes.
func literal(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// backslashed is a string in SQL that has backslashes before quotes.
func backslashed(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`, "\n", `\n`).Replace(s) + "'"
}

func doubleQuoted(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

func backquoted(name string) string { return "`" + strings.ReplaceAll(name, "`", "``") + "`" }
