package sinks

import (
	"fmt"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"

	"github.com/leadetl/leadetl/sinks/schema"
)

// everyKind is a table with a column of text, of words and of numbers; package
// parquet tests all the others.
var everyKind = Table{
	Columns: []Column{
		schema.New("text", arrow.BinaryTypes.String, true),
		repeating(schema.New("word", arrow.BinaryTypes.String, false)),
		schema.New("row", arrow.PrimitiveTypes.Int64, false),
	},
	Metadata: map[string]string{"leadetl.operation": "test"},
}

func repeating(c Column) Column { c.Repeats = true; return c }

// someRecord is a record of everyKind.
func someRecord(rows int) arrow.Record {
	texts, words := array.NewStringBuilder(memory.DefaultAllocator), array.NewStringBuilder(memory.DefaultAllocator)
	numbers := array.NewInt64Builder(memory.DefaultAllocator)
	for i := range rows {
		if i%3 == 0 {
			texts.AppendNull()
		} else {
			texts.Append(fmt.Sprint("t", i))
		}
		words.Append(fmt.Sprint("w", i%2))
		numbers.Append(int64(i + 1))
	}
	return array.NewRecord(everyKind.Schema(), []arrow.Array{texts.NewArray(), words.NewArray(), numbers.NewArray()}, int64(rows))
}

// textTable has one column of text.
var textTable = Table{Columns: []Column{schema.New("text", arrow.BinaryTypes.String, false)}, Compression: Snappy}

// textRecord is a record of textTable with one row.
func textRecord(value string) arrow.Record {
	texts := array.NewStringBuilder(memory.DefaultAllocator)
	texts.Append(value)
	return array.NewRecord(textTable.Schema(), []arrow.Array{texts.NewArray()}, 1)
}
