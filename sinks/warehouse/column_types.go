package warehouse

import (
	"fmt"
	"regexp"
	"strings"
)

var datePattern = regexp.MustCompile(`^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])$`)

// kind is a parsed type: a plain one, a list, or a struct.
type kind struct {
	plain   string // "STRING", "INT64" …; "" for others
	element *kind  // of a list
	members []member
}

type member struct {
	name string
	kind kind
}

// parseType parses a type of a manifest.
func parseType(s string) (kind, error) {
	if inner, ok := inside(s, "LIST<"); ok {
		element, err := parseType(inner)
		return kind{element: &element}, err
	}
	if inner, ok := inside(s, "STRUCT<"); ok {
		var k kind
		for _, part := range strings.Split(inner, ", ") { // members are plain
			name, typeName, _ := strings.Cut(part, " ")
			m, err := parseType(typeName)
			if err != nil {
				return kind{}, err
			}
			k.members = append(k.members, member{name, m})
		}
		return k, nil
	}
	if _, known := plainTypes[DuckDB][s]; !known {
		return kind{}, fmt.Errorf("unknown type %q", s)
	}
	return kind{plain: s}, nil
}

func inside(s, opening string) (string, bool) {
	inner, ok := strings.CutPrefix(s, opening)
	return strings.TrimSuffix(inner, ">"), ok && strings.HasSuffix(inner, ">")
}

const timestamp = "TIMESTAMP(MICROS, UTC)"

// plainTypes are the names of plain types in the warehouses.
var plainTypes = map[Dialect]map[string]string{
	DuckDB: {"STRING": "VARCHAR", "INT32": "INTEGER", "INT64": "BIGINT", "DOUBLE": "DOUBLE", "BOOLEAN": "BOOLEAN",
		"DATE": "DATE", timestamp: "TIMESTAMP WITH TIME ZONE"},
	Snowflake: {"STRING": "VARCHAR", "INT32": "INTEGER", "INT64": "BIGINT", "DOUBLE": "DOUBLE", "BOOLEAN": "BOOLEAN",
		"DATE": "DATE", timestamp: "TIMESTAMP_LTZ"},
	BigQuery: {"STRING": "STRING", "INT32": "INT64", "INT64": "INT64", "DOUBLE": "FLOAT64", "BOOLEAN": "BOOL",
		"DATE": "DATE", timestamp: "TIMESTAMP"},
	Redshift: {"STRING": "VARCHAR(65535)", "INT32": "INTEGER", "INT64": "BIGINT", "DOUBLE": "DOUBLE PRECISION", "BOOLEAN": "BOOLEAN",
		"DATE": "DATE", timestamp: "TIMESTAMP"},
	Postgres: {"STRING": "text", "INT32": "integer", "INT64": "bigint", "DOUBLE": "double precision", "BOOLEAN": "boolean",
		"DATE": "date", timestamp: "timestamp with time zone"},
	Athena: {"STRING": "string", "INT32": "int", "INT64": "bigint", "DOUBLE": "double", "BOOLEAN": "boolean",
		"DATE": "date", timestamp: "timestamp"},
	Spark: {"STRING": "STRING", "INT32": "INT", "INT64": "BIGINT", "DOUBLE": "DOUBLE", "BOOLEAN": "BOOLEAN",
		"DATE": "DATE", timestamp: "TIMESTAMP"},
}

// in returns the type in a dialect.
func (k kind) in(d Dialect) string {
	switch {
	case k.plain != "":
		return plainTypes[d][k.plain]
	case d == Redshift:
		return "SUPER"
	case d == Snowflake && k.element != nil:
		return "VARIANT"
	case d == Postgres && (k.element == nil || !k.element.isPlain()):
		return "jsonb"
	case k.element != nil && (d == DuckDB || d == Postgres):
		return k.element.in(d) + "[]"
	case k.element != nil && d == Athena:
		return "array<" + k.element.in(d) + ">"
	case k.element != nil:
		return "ARRAY<" + k.element.in(d) + ">"
	}
	return k.structIn(d)
}

func (k kind) structIn(d Dialect) string {
	form := map[Dialect][4]string{ // opening, before and after a name, closing
		DuckDB:   {"STRUCT(", `"`, `" `, ")"},
		BigQuery: {"STRUCT<", "`", "` ", ">"},
		Athena:   {"struct<", "`", "`:", ">"},
		Spark:    {"STRUCT<", "`", "`: ", ">"},
	}[d]
	members := make([]string, len(k.members))
	for i, m := range k.members {
		members[i] = form[1] + m.name + form[2] + m.kind.in(d)
	}
	return form[0] + strings.Join(members, ", ") + form[3]
}

// isPlain reports whether a type is neither a list nor a struct.
func (k kind) isPlain() bool { return k.plain != "" }
