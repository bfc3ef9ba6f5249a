package parquet

import (
	"github.com/apache/arrow/go/v17/parquet"
	"github.com/apache/arrow/go/v17/parquet/schema"
)

// fieldIDs numbers the fields of a schema from 1, each before what is in it. So
// a table of Iceberg knows the columns of a file by their numbers and not only
// by their names. iceberg-go numbers the columns of a new table in this order,
// and can register the files in it. Others number all columns before what is in
// them; cmd/leadetl-iceberg gives tables the numbers of the files.
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
	fields := make(schema.FieldList, g.NumFields())
	for i := range fields {
		number := int32(-1)
		if g.Field(i).RepetitionType() != parquet.Repetitions.Repeated { // the group between a list and its items is no field
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
