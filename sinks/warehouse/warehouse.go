// Package warehouse writes statements that load a dataset into a data warehouse: the
// table for its columns, the load, and the problems that the warehouse would have.
//
// The one thing to know before using it: nothing here connects to anything. The results
// are texts for people and their tools.
package warehouse

import (
	"fmt"
	"slices"
	"strings"

	"github.com/leadetl/leadetl/internal/suggest"
	"github.com/leadetl/leadetl/sinks/schema"
)

// Dialect is a warehouse, a source of dbt, or Markdown for people.
type Dialect string

// The dialects.
const (
	DuckDB    Dialect = "duckdb"
	Snowflake Dialect = "snowflake"
	BigQuery  Dialect = "bigquery"
	Redshift  Dialect = "redshift"
	Postgres  Dialect = "postgres"
	Athena    Dialect = "athena"
	Spark     Dialect = "spark"
	DBT       Dialect = "dbt"
	Markdown  Dialect = "markdown"
)

// Warehouses are the dialects of warehouses.
var Warehouses = []Dialect{DuckDB, Snowflake, BigQuery, Redshift, Postgres, Athena, Spark}

// Dialects are all dialects of Write.
var Dialects = append(slices.Clone(Warehouses), DBT, Markdown)

// Parse returns the dialect with a name among some.
func Parse(name string, among []Dialect) (Dialect, error) {
	if d := Dialect(strings.ToLower(name)); slices.Contains(among, d) {
		return d, nil
	}
	return "", fmt.Errorf("unknown dialect %q%s", name, suggest.OneOf(name, Names(among)))
}

// Names are the names of dialects.
func Names(dialects []Dialect) (names []string) {
	for _, d := range dialects {
		names = append(names, string(d))
	}
	return names
}

// Table is a table for a dataset.
type Table struct {
	Name       string // may begin with a schema: crm.leads; "" means that of the operation
	Operation  string
	Version    int // of the schema
	Columns    []schema.Column
	Partitions []schema.Partition // columns in the path of the dataset
	// PartitionBy is the column whose values are folders of the dataset; "" without
	// one. Rows with null are in the folder of schema.DefaultPartition.
	PartitionBy string
	// Location is the folder or URI of the dataset, or, with partitions, the folder
	// that has their folders. "" writes a placeholder.
	Location string
	// Replace loads a dataset in place of the rows of the table with the same Partitions, which
	// without any are all. Otherwise its rows come to those of the table.
	Replace bool
}

func (t Table) name() string {
	if t.Name == "" {
		return t.Operation
	}
	return t.Name
}

// partition is a column that is in the paths of the files, and not in the files.
type partition struct {
	schema.Partition
	varies bool // each value has a folder
}

// partitions returns the partitions of the table, the outermost first.
func (t Table) partitions() (all []partition) {
	for _, p := range t.Partitions {
		all = append(all, partition{p, false})
	}
	if t.PartitionBy != "" {
		all = append(all, partition{schema.Partition{Name: t.PartitionBy}, true})
	}
	return all
}

// isDate reports whether the value of a partition is a day.
func (p partition) isDate() bool { return datePattern.MatchString(p.Value) }

// location returns where the files are; with a placeholder if that is unknown.
func (t Table) location(scheme string) string {
	if t.Location == "" {
		return scheme + "BUCKET/PREFIX"
	}
	return strings.TrimSuffix(t.Location, "/")
}

// Folder returns the folder of the dataset. The table must have a Location.
func (t Table) Folder() string { return t.folder("") }

// folder is Folder, with a placeholder without a Location.
func (t Table) folder(scheme string) string {
	if len(t.Partitions) == 0 {
		return t.location(scheme)
	}
	return t.location(scheme) + "/" + schema.PartitionPath(t.Partitions)
}

// Write writes the table and the statement that loads it.
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
	case Postgres:
		w.postgres()
	case Athena:
		w.athena()
	case Spark:
		w.spark()
	case DBT:
		w.dbt()
	case Markdown:
		w.markdown()
	default:
		return "", fmt.Errorf("unknown dialect %q", d)
	}
	return w.String(), nil
}

// parsed is a column with its parsed type.
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

// head describes the statements.
func (w *writer) head(what string) {
	w.line("-- %s, schema version %d: %s", w.table.Operation, w.table.Version, what)
}

// list writes the columns of a CREATE TABLE, and partitions after them.
func (w *writer) list(one func(parsed) string, partitions ...string) {
	lines := make([]string, 0, len(w.columns)+len(partitions))
	for _, c := range w.columns {
		lines = append(lines, "  "+one(c))
	}
	for _, p := range partitions {
		lines = append(lines, "  "+p)
	}
	w.lines(lines)
}

func (w *writer) lines(all []string) { w.line("%s", strings.Join(all, ",\n")) }

// replaced is the condition of rows whose place a dataset takes.
func (t Table) replaced(name, text func(string) string) string {
	all := []string{"TRUE"}
	for i, p := range t.Partitions {
		all = append(all[:i], name(p.Name)+" = "+text(p.Value))
	}
	return strings.Join(all, " AND ")
}

// meanings writes what the columns mean, behind the table.
func (w *writer) meanings(name func(string) string) {
	for _, c := range w.columns {
		w.line("COMMENT ON COLUMN %s.%s IS %s;", qualified(w.table.name(), doubleQuoted), name(c.Name), literal(c.about()))
	}
}

// required is what follows the type of a column without nulls.
func (c parsed) required() string {
	if c.Nullable {
		return ""
	}
	return " NOT NULL"
}

// about returns the comment of a column.
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

// literal writes a string in SQL with doubled quotes.
func literal(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// backslashed writes a string in SQL with backslashes before quotes.
func backslashed(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`, "\n", `\n`).Replace(s) + "'"
}

func doubleQuoted(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

func backquoted(name string) string { return "`" + strings.ReplaceAll(name, "`", "``") + "`" }
