package warehouse

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/leadetl/leadetl/sinks/schema"
)

// Issue is a problem of a warehouse with a dataset, or a note about loading it.
type Issue struct {
	Column string `json:"column,omitempty"`
	// Fails says that a load with the statements of Write fails or loses data; else
	// it is a note.
	Fails   bool   `json:"fails"`
	Problem string `json:"problem"`
	// Advice is how a run avoids it; "" if that is not known.
	Advice string `json:"advice,omitempty"`
}

func (t Issue) String() string {
	if t.Column == "" {
		return t.Problem
	}
	return "column " + t.Column + ": " + t.Problem
}

// rules are the limits of a warehouse by its documentation.
type rules struct {
	columns    int   // of a table; 0 for no limit
	nameBytes  int   // of the name of a column
	text       int64 // bytes of a text; 0 for no limit
	list       int64 // bytes of a list
	row        int64 // bytes of a row, compared with its largest value
	plainNames bool  // letters, digits and underscores only
	note       string
}

// limits are the limits that a dataset can exceed.
//
// Sources: Snowflake documentation, "String & binary data types" and
// "Identifier requirements"; BigQuery documentation, "Quotas and limits" and
// "Specify a schema"; Amazon Redshift Database Developer Guide, "Character
// types", "SUPER type", "Quotas and limits" and "Names and identifiers"; Amazon
// Athena User Guide, "Name databases, tables, and columns", "MSCK REPAIR TABLE" and
// "Service quotas"; PostgreSQL documentation, "PostgreSQL Limits".
var limits = map[Dialect]rules{
	DuckDB: {},
	Snowflake: {nameBytes: 255, text: 16 << 20, list: 16 << 20,
		note: "lists are VARIANT arrays"},
	BigQuery: {columns: 10_000, nameBytes: 300, row: 50_000_000, plainNames: true,
		note: "lists are arrays where the load says enable_list_inference, as the statement of leadetl schema does; a null list is an empty one"},
	Redshift: {columns: 1_600, nameBytes: 127, text: 65_535, list: 16 << 20,
		note: "lists are SUPER, and COPY needs SERIALIZETOJSON, as the statement of leadetl schema has it"},
	Postgres: {columns: 1_600, nameBytes: 63, text: 1 << 30, list: 1 << 30,
		note: "lists of texts are arrays, and lists of pairs jsonb"},
	Athena: {nameBytes: 255, row: 32 << 20, plainNames: true},
	Spark:  {},
	DBT:    {},
}

// bigQueryPrefixes are prefixes that names of columns must not have.
// Source: BigQuery documentation, "Specify a schema".
var bigQueryPrefixes = []string{"_TABLE_", "_FILE_", "_PARTITION", "_ROW_TIMESTAMP", "__ROOT__", "_COLIDENTIFIER"}

// systemColumns are names that every table has already, in quotes too.
// Sources: Amazon Redshift Database Developer Guide, "Names and identifiers"; PostgreSQL
// documentation, "System Columns".
var systemColumns = map[Dialect][]string{
	Redshift: {"oid", "tableoid", "xmin", "cmin", "xmax", "cmax", "ctid"},
	Postgres: {"tableoid", "xmin", "cmin", "xmax", "cmax", "ctid"},
}

// Issues lists the problems of a warehouse with a table. longest has the bytes of the
// longest value of each column, for a list of all its values together. It is nil for a
// table without rows.
func Issues(d Dialect, t Table, longest []int64) ([]Issue, error) {
	limit, known := limits[d]
	if !known {
		return nil, fmt.Errorf("unknown warehouse %q", d)
	}
	var issues []Issue
	fails := func(column, format string, args ...any) *Issue {
		issues = append(issues, Issue{Column: column, Fails: true, Problem: fmt.Sprintf(format, args...)})
		return &issues[len(issues)-1]
	}
	if limit.columns > 0 && len(t.Columns)+len(t.partitions()) > limit.columns {
		fails("", "a table has at most %d columns, and the dataset %d", limit.columns, len(t.Columns)+len(t.partitions()))
	}
	parts := strings.Split(t.Name, ".")
	if len(parts) > 3 || t.Name != "" && slices.Contains(parts, "") {
		fails("", "the name of a table is NAME, SCHEMA.NAME or DATABASE.SCHEMA.NAME")
	}
	// A warehouse that cuts a longer name takes two tables for one.
	if most := limit.nameBytes - len(changesSuffix); limit.nameBytes > 0 && slices.ContainsFunc(parts, func(part string) bool { return len(part) > most }) {
		fails("", "the name of a table has at most %d bytes, for what comes behind it in the statements", most)
	}
	lists := false
	seen := map[string]string{}
	checkName := func(name, advice string) {
		folded := strings.ToLower(name)
		if problem := nameProblem(d, limit, name); problem != "" {
			fails(name, "%s", problem).Advice = advice
		}
		if other, twice := seen[folded]; twice {
			fails(name, "%s is the same name there: case is ignored", other)
		}
		seen[folded] = name
	}
	for i, c := range t.Columns {
		checkName(c.Name, otherName(d, limit, i+1, c.Name))
		k, err := parseType(c.Type)
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", c.Name, err)
		}
		lists = lists || !k.isPlain()
		if i < len(longest) {
			if problem := limit.sizeProblem(k, longest[i]); problem != "" {
				fails(c.Name, "%s", problem)
			}
		}
	}
	for _, p := range t.partitions() {
		advice := "run it with another name in --partition-by"
		if p.varies {
			advice = otherName(d, limit, 1, p.Name)
		}
		checkName(p.Name, advice)
		if d == Athena && p.varies && p.Name != strings.ToLower(p.Name) {
			fails(p.Name, "MSCK REPAIR TABLE finds only folders whose names are in lower case").Advice = advice
		}
	}
	if lists && limit.note != "" {
		issues = append(issues, Issue{Problem: limit.note})
	}
	return issues, nil
}

// nameProblem describes what is wrong with the name of a column; "" if nothing is.
func nameProblem(d Dialect, limit rules, name string) string {
	switch {
	case name == "":
		return "a column needs a name"
	case limit.nameBytes > 0 && len(name) > limit.nameBytes:
		return fmt.Sprintf("a name has at most %d bytes", limit.nameBytes)
	case limit.plainNames && !plainName.MatchString(name):
		return "a name has letters, digits and underscores only, and does not begin with a digit"
	case d == BigQuery && slices.ContainsFunc(bigQueryPrefixes, func(p string) bool { return strings.HasPrefix(strings.ToUpper(name), p) }):
		return "BigQuery reserves names with this prefix"
	case slices.Contains(systemColumns[d], strings.ToLower(name)):
		return "every table there has a column of its own with this name"
	case d == Redshift && strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }):
		return "a name has printable characters only"
	case d == DBT && strings.Contains(name, "{"):
		return "dbt may take it for an expression"
	case d == Spark && strings.ContainsAny(name, " ,;{}()\n\t="):
		return "Spark before 3.3 reads no name with spaces or any of ,;{}()="
	}
	return ""
}

// otherName is the advice to give the nth column a name that the warehouse takes.
func otherName(d Dialect, limit rules, n int, name string) string {
	snake := schema.Snake(name, n)
	if snake == name || nameProblem(d, limit, snake) != "" {
		return "run it with --rename " + shellQuoted(name+"=NEW")
	}
	return "run it with --normalize-names snake, or --rename " + shellQuoted(name+"="+snake)
}

// sizeProblem describes what is wrong with the largest value of a column.
func (limit rules) sizeProblem(k kind, longest int64) string {
	most, what := limit.text, "a text"
	if !k.isPlain() {
		most, what = limit.list, "a list"
	}
	if most > 0 && longest > most {
		return fmt.Sprintf("%s has at most %d bytes there, and the longest here %d", what, most, longest)
	}
	if limit.row > 0 && longest > limit.row {
		return fmt.Sprintf("a row has at most %d bytes there, and one value here %d", limit.row, longest)
	}
	return ""
}
