package parquet

import (
	"github.com/apache/arrow/go/v17/parquet"
	"github.com/apache/arrow/go/v17/parquet/schema"
)

// fieldIDs numbers the fields of a schema as a new Iceberg table does: all
// columns from 1, and then what is in them, column by column. So a table knows
// the columns of a file by their numbers and not only by their names.
// Source: Apache Iceberg specification, "Column Projection" and "Parquet".
type fieldIDs struct{ last int32 }

func withFieldIDs(s *schema.Schema) (*schema.Schema, error) {
	root, err := new(fieldIDs).group(s.Root(), -1)
	if err != nil {
		return nil, err
	}
	return schema.NewSchema(root), nil
}

// group numbers what is in a group.
func (ids *fieldIDs) group(g *schema.GroupNode, id int32) (*schema.GroupNode, error) {
	numbers := make([]int32, g.NumFields())
	for i := range numbers {
		if numbers[i] = -1; g.Field(i).RepetitionType() != parquet.Repetitions.Repeated { // the group between a list and its items is no field
			ids.last++
			numbers[i] = ids.last
		}
	}
	fields := make(schema.FieldList, g.NumFields())
	for i := range fields {
		var err error
		switch f := g.Field(i).(type) {
		case *schema.GroupNode:
			fields[i], err = ids.group(f, numbers[i])
		case *schema.PrimitiveNode:
			fields[i], err = schema.NewPrimitiveNodeLogical(f.Name(), f.RepetitionType(), f.LogicalType(), f.PhysicalType(), f.TypeLength(), numbers[i])
		}
		if err != nil {
			return nil, err
		}
	}
	if g.LogicalType().IsNone() {
		return schema.NewGroupNode(g.Name(), g.RepetitionType(), fields, id)
	}
	return schema.NewGroupNodeLogical(g.Name(), g.RepetitionType(), fields, g.LogicalType(), id)
}
