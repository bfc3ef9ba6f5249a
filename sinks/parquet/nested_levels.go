package parquet

import (
	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
)

// leaf is one leaf column of an array: its values and, where something above
// or in it can be missing, how far down each value is there and which list it
// continues. Source: Apache Parquet format, "Nested Encoding".
type leaf struct {
	values                 arrow.Array // to be released
	definition, repetition []int16
	nullable               bool
}

// leafCount is the number of leaf columns of a type: a list of structs has
// one a member, a list of values one, and everything else we write is flat.
func leafCount(t arrow.DataType) int {
	if l, ok := t.(*arrow.ListType); ok {
		if members, ok := l.Elem().(*arrow.StructType); ok {
			return members.NumFields()
		}
	}
	return 1
}

// leafOf is leaf i of a.
func leafOf(a arrow.Array, i int, nullable bool) leaf {
	if list, ok := a.(*array.List); ok {
		return listLeaf(list, i)
	}
	a.Retain()
	l := leaf{values: a, nullable: nullable}
	if nullable {
		l.definition = make([]int16, a.Len())
		for i := range l.definition {
			if a.IsValid(i) {
				l.definition[i] = 1
			}
		}
	}
	return l
}

// The definition levels of a nullable list. A value in it is one level below
// its list, in a struct two; a null is at the level above that.
const (
	listNull     = 0
	listEmpty    = 1
	elementValue = 3
	memberValue  = 4
)

// listLeaf takes a list of nullable values, or of nullable structs of nullable
// members, as builders make them: a null list has no members, and no struct is
// null. The list may be a slice of a longer one.
func listLeaf(list *array.List, i int) leaf {
	values, there := list.ListValues(), int16(elementValue)
	if members, ok := values.(*array.Struct); ok {
		values, there = members.Field(i), memberValue
	}
	first, last := int64(0), int64(0)
	if n := list.Len(); n > 0 {
		first, _ = list.ValueOffsets(0)
		_, last = list.ValueOffsets(n - 1)
	}
	l := leaf{values: array.NewSlice(values, first, last), nullable: true}
	for row := range list.Len() {
		from, to := list.ValueOffsets(row)
		from, to = from-first, to-first
		switch {
		case list.IsNull(row):
			l.definition, l.repetition = append(l.definition, listNull), append(l.repetition, 0)
		case from == to:
			l.definition, l.repetition = append(l.definition, listEmpty), append(l.repetition, 0)
		}
		for v := from; v < to && list.IsValid(row); v++ {
			level, continues := there-1, int16(1)
			if l.values.IsValid(int(v)) {
				level = there
			}
			if v == from {
				continues = 0
			}
			l.definition, l.repetition = append(l.definition, level), append(l.repetition, continues)
		}
	}
	return l
}
