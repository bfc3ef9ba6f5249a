package parquet

import (
	"github.com/apache/arrow/go/v17/parquet"
	"github.com/apache/arrow/go/v17/parquet/schema"
)

// fieldIDs numbers the fields of a schema from 1, each before its children. So
// an Iceberg table knows the columns of a file by number, and not only by name.
// iceberg-go numbers the columns of a new table in this order, and can register
// the files. Other programs number all columns before their children; for them,
// cmd/leadetl-iceberg gives tables the numbers of the files.
// Source: Apache Iceberg specification, "Column Projection" and "Parquet".
type fieldIDs struct{ last int32 }

func withFieldIDs(s *schema.Schema) (*schema.Schema, error) {
	root, err := new(fieldIDs).group(s.Root(), -1)
	if err != nil {
		return nil, err
	}
	return schema.NewSchema(root), nil
}

// group numbers the children of a group.
func (ids *fieldIDs) group(g *schema.GroupNode, id int32) (*schema.GroupNode, error) {
	fields := make(schema.FieldList, g.NumFields())
	for i := range fields {
		number := int32(-1)
		if g.Field(i).RepetitionType() != parquet.Repetitions.Repeated { // the group between a list and its items is not a field
			ids.last++
			number = ids.last
		}
		var err error
		switch f := g.Field(i).(type) {
		case *schema.GroupNode:
			fields[i], err = ids.group(f, number)
		case *schema.PrimitiveNode:
			fields[i], err = schema.NewPrimitiveNodeLogical(f.Name(), f.RepetitionType(), f.LogicalType(), f.PhysicalType(), f.TypeLength(), number)
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
