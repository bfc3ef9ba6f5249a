package verify

import (
	"errors"
	"fmt"

	"github.com/xitongsys/parquet-go/layout"
)

// comparison compares the values of the second implementation with those of the first,
// in order.
type comparison struct {
	leaf  *leaf
	at    int   // values and nulls compared
	there int   // values compared
	row   int64 // begun rows of the row group
}

// differError ends a comparison that found a difference.
type differError struct {
	row     int64 // of the row group, from 1
	problem string
}

func (e *differError) Error() string { return e.problem }

// compare reads a column chunk with the second implementation. A difference is a
// *differError.
func compare(l *leaf, r secondReader, rowGroup, i int) error {
	c := &comparison{leaf: l}
	if err := r.pages(rowGroup, i, c.page); err != nil {
		return err
	}
	if c.at != l.count {
		return &differError{c.row, fmt.Sprintf("the second reader finds %d values and nulls, Arrow's %d", c.at, l.count)}
	}
	return nil
}

func (c *comparison) page(t *layout.Table) error {
	l := c.leaf
	if len(t.Values) > l.count-c.at {
		return &differError{c.row, "the second reader finds more values than Arrow's"}
	}
	if len(t.DefinitionLevels) != len(t.Values) || len(t.RepetitionLevels) != len(t.Values) {
		return errors.New("the numbers of levels and values of a page differ")
	}
	for i, value := range t.Values {
		definition, repetition := l.maxDefinition, int16(0)
		if l.definition != nil {
			definition = l.definition[c.at]
		}
		if l.repetition != nil {
			repetition = l.repetition[c.at]
		}
		if repetition == 0 {
			c.row++
		}
		switch {
		case int32(definition) != t.DefinitionLevels[i] || int32(repetition) != t.RepetitionLevels[i]:
			return &differError{c.row, "the two readers disagree on what is null, or where a list ends"}
		case definition < l.maxDefinition:
			if value != nil {
				return &differError{c.row, "the second reader finds a value where Arrow's finds a null"}
			}
		case !l.is(c.there, value):
			return &differError{c.row, "the two readers find different values"}
		default:
			c.there++
		}
		c.at++
	}
	return nil
}

// is reports whether value i of the leaf is this value.
func (l *leaf) is(i int, value any) bool {
	switch v := value.(type) {
	case string:
		return i < len(l.texts) && string(l.texts[i]) == v
	case int64:
		return i < len(l.numbers) && l.numbers[i] == v
	case int32:
		return i < len(l.numbers) && l.numbers[i] == int64(v)
	case float64:
		return i < len(l.floats) && (l.floats[i] == v || l.floats[i] != l.floats[i] && v != v)
	case bool:
		return i < len(l.booleans) && l.booleans[i] == v
	}
	return false
}

// rows counts the rows of a leaf.
func (l *leaf) rows() (n int64) {
	if l.repetition == nil {
		return int64(l.count)
	}
	for _, r := range l.repetition {
		if r == 0 {
			n++
		}
	}
	return n
}
