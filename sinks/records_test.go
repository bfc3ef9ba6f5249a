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
		schema.New("word", &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int32, ValueType: arrow.BinaryTypes.String}, false),
		schema.New("row", arrow.PrimitiveTypes.Int64, false),
	},
	Metadata: map[string]string{"leadetl.operation": "test"},
}

// someRecord is a record of everyKind.
func someRecord(rows int) arrow.Record {
	texts, numbers := array.NewStringBuilder(memory.DefaultAllocator), array.NewInt64Builder(memory.DefaultAllocator)
	words := array.NewDictionaryBuilder(memory.DefaultAllocator, everyKind.Columns[1].Arrow.(*arrow.DictionaryType)).(*array.BinaryDictionaryBuilder)
	for i := range rows {
		if i%3 == 0 {
			texts.AppendNull()
		} else {
			texts.Append(fmt.Sprint("t", i))
		}
		if err := words.AppendString(fmt.Sprint("w", i%2)); err != nil {
			panic(err) // the dictionary has two words
		}
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
