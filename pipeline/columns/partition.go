package columns

import (
	"strings"

	"github.com/apache/arrow/go/v17/arrow/array"
)

// Partitioned are rows of a batch that go to one folder.
type Partitioned struct {
	Value string // of the partition column; empty for null
	*Batch
}

// ByPartition splits the rows of a batch by the value of the column Layout.Partition,
// which is null for suppressed people. The values are in the order of their first rows.
// The layout must have such a column.
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

// PartitionValues are the values by which ByPartition splits the rows of a batch.
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
			value = strings.Clone(value) // the memory of the cell is used again
			values = append(values, value)
		}
		rows[value] = append(places, i)
	}
	return values, rows
}
