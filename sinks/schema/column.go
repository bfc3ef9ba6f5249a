// Package schema describes the columns of a dataset.
//
// One Column serves everybody: the writer of Parquet files, the manifest,
// warehouses, verify, and people who read the data dictionary.
package schema

import (
	"strings"

	"github.com/apache/arrow/go/v17/arrow"
)

// Column is a column of a dataset. A manifest holds its name, type and
// nullability; the rest is known of the columns that this program defines.
type Column struct {
	Name string `json:"name"`
	// Type is the type as Parquet readers show it: "STRING", "INT64",
	// "LIST<STRUCT<email STRING, type STRING>>".
	Type     string `json:"type"`
	Nullable bool   `json:"nullable"`

	Arrow arrow.DataType `json:"-"` // how it is written
	// Statistics writes min and max. Never set it on a column that can hold
	// personal data: they are values in clear text.
	Statistics bool `json:"-"`
	// Random is for text, and for pairs of texts of which the first is, that cannot be
	// compressed: digests.
	Random bool `json:"-"`
	// Repeats is for text and numbers whose values come again and again, such
	// as cities: a row group holds each value once where that makes it smaller. Never set
	// it on identifiers and digests, for which trying is a waste.
	Repeats bool    `json:"-"`
	Meaning Meaning `json:"-"`
}

// Meaning tells people what a column holds, and verify what its values look
// like.
type Meaning struct {
	Text string // what it is
	Unit string // of numbers and times; empty without one
	Null string // when there is no value; empty where there always is
	From string // the rule that its values come from
	// Form is what every value looks like, in the words of package verify;
	// empty where any value of the type may be.
	Form string
}

// New is a column that is written with an Arrow type.
func New(name string, t arrow.DataType, nullable bool) Column {
	return Column{Name: name, Type: typeName(t), Nullable: nullable, Arrow: t}
}

// Field is the column in an Arrow schema.
func (c Column) Field() arrow.Field {
	return arrow.Field{Name: c.Name, Type: c.Arrow, Nullable: c.Nullable}
}

// Arrow is the Arrow schema of some columns.
func Arrow(columns []Column) *arrow.Schema {
	fields := make([]arrow.Field, len(columns))
	for i, c := range columns {
		fields[i] = c.Field()
	}
	return arrow.NewSchema(fields, nil)
}

// Names are the names of columns.
func Names(columns []Column) []string {
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = c.Name
	}
	return names
}

// Equal reports whether two columns are the same in a manifest.
func (c Column) Equal(other Column) bool {
	return c.Name == other.Name && c.Type == other.Type && c.Nullable == other.Nullable
}

// Declaration is the type with its nullability, such as "INT64 NOT NULL".
func (c Column) Declaration() string {
	if c.Nullable {
		return c.Type
	}
	return c.Type + " NOT NULL"
}

// typeName is a type as Parquet readers show it.
func typeName(t arrow.DataType) string {
	switch t := t.(type) {
	case *arrow.DictionaryType:
		return typeName(t.ValueType)
	case *arrow.StringType:
		return "STRING"
	case *arrow.BooleanType:
		return "BOOLEAN"
	case *arrow.TimestampType:
		return "TIMESTAMP(MICROS, UTC)"
	case *arrow.ListType:
		return "LIST<" + typeName(t.Elem()) + ">"
	case *arrow.StructType:
		members := make([]string, t.NumFields())
		for i, f := range t.Fields() {
			members[i] = f.Name + " " + typeName(f.Type)
		}
		return "STRUCT<" + strings.Join(members, ", ") + ">"
	case *arrow.Float64Type:
		return "DOUBLE"
	case *arrow.Date32Type:
		return "DATE"
	}
	return strings.ToUpper(t.Name())
}

// The types of columns that are not Arrow's own: times, lists of texts, and lists of texts with a
// type each, which Pairs returns.
var (
	Instant = &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}
	Words   = arrow.ListOfField(arrow.Field{Name: "element", Type: arrow.BinaryTypes.String, Nullable: true})
	Emails  = pairs("email")
	Phones  = pairs("phone")
)

func pairs(text string) *arrow.ListType {
	return arrow.ListOfField(arrow.Field{Name: "element", Type: arrow.StructOf(
		arrow.Field{Name: text, Type: arrow.BinaryTypes.String, Nullable: true},
		arrow.Field{Name: "type", Type: arrow.BinaryTypes.String, Nullable: true},
	), Nullable: true})
}

// Of is a column that may be null.
func Of(name string, t arrow.DataType) Column { return New(name, t, true) }

// Text is a column of texts.
func Text(name string) Column { return Of(name, arrow.BinaryTypes.String) }

// Number is a column with Statistics.
func Number(name string, t arrow.DataType) Column { return WithStatistics(Of(name, t)) }

// Repeating is a column of texts with few distinct values.
func Repeating(name string) Column { return Repeats(Text(name)) }

// Required is the column without null.
func Required(c Column) Column { c.Nullable = false; return c }

// Repeats is the column, in which few values stand for many rows.
func Repeats(c Column) Column { c.Repeats = true; return c }

// Random is the column, whose texts cannot be compressed.
func Random(c Column) Column { c.Random = true; return c }

// WithStatistics is the column with minima and maxima.
func WithStatistics(c Column) Column { c.Statistics = true; return c }

// Means is the column with a meaning.
func (c Column) Means(m Meaning) Column { c.Meaning = m; return c }
