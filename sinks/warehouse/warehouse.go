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

	"github.com/leadetl/leadetl/sinks/schema"
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
	return "", fmt.Errorf("unknown dialect %q; it is one of %s", name, strings.Join(Names(among), ", "))
}

// Names are the names of dialects.
func Names(dialects []Dialect) (names []string) {
	for _, d := range dialects {
		names = append(names, string(d))
	}
	return names
}

// Table is a table to be made of a dataset.
type Table struct {
	Name       string // empty for the operation's
	Operation  string
	Version    int // of the schema
	Columns    []schema.Column
	Partitions []schema.Partition // columns in the path of the dataset
	// PartitionBy is the column whose values are folders of the dataset. Rows
	// without a value are in the folder of schema.DefaultPartition. Empty when
	// there is none.
	PartitionBy string
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

// partition is a column that is in the paths of a table's files, and not in
// the files.
type partition struct {
	schema.Partition
	varies bool // each value that rows have is a folder
}

// partitions are those of the table, from the outermost inwards.
func (t Table) partitions() (all []partition) {
	for _, p := range t.Partitions {
		all = append(all, partition{p, false})
	}
	if t.PartitionBy != "" {
		all = append(all, partition{schema.Partition{Name: t.PartitionBy}, true})
	}
	return all
}

// isDate reports whether a partition's value is a day.
func (p partition) isDate() bool { return datePattern.MatchString(p.Value) }

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
	if len(t.Partitions) == 0 {
		return t.location(scheme)
	}
	return t.location(scheme) + "/" + schema.PartitionPath(t.Partitions)
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
	schema.Column
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
	text := c.Meaning.Text
	if c.Meaning.Unit != "" {
		text += " (" + c.Meaning.Unit + ")"
	}
	if c.Meaning.Null != "" {
		text += "; null when " + c.Meaning.Null
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
