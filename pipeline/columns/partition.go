package columns

import (
	"strings"

	"github.com/apache/arrow/go/v17/arrow/array"
)

// Partitioned are rows of a batch that go to one folder.
type Partitioned struct {
	Value string // of the column that rows are partitioned by; empty for null too
	*Batch
}

// ByPartition parts the rows of a batch by the value that the column of
// Layout.Partition would have in the files: null where a person is suppressed.
// The values come in the order of their first rows. The layout has such a
// column.
func (l *Layout) ByPartition(b *Batch) []Partitioned {
	values, rows := l.partitionRows(b)
	if len(values) == 1 {
		return []Partitioned{{values[0], b}}
	}
	parts := make([]Partitioned, len(values))
	for i, value := range values {
		parts[i] = Partitioned{value, b.Pick(rows[value])}
	}
	return parts
}

// PartitionValues are the values that ByPartition would part the rows of a
// batch by.
func (l *Layout) PartitionValues(b *Batch) []string {
	values, _ := l.partitionRows(b)
	return values
}

func (l *Layout) partitionRows(b *Batch) (values []string, rows map[string][]int) {
	cells := l.keep(b, l.partition).(*array.String)
	defer cells.Release()
	rows = map[string][]int{}
	for i := range b.Len() {
		value := ""
		if cells.IsValid(i) {
			value = cells.Value(i)
		}
		places, seen := rows[value]
		if !seen {
			value = strings.Clone(value) // the cell's memory is used again
			values = append(values, value)
		}
		rows[value] = append(places, i)
	}
	return values, rows
}
