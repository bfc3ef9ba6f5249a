package verify

import (
	"errors"
	"fmt"
	"io"

	"github.com/apache/thrift/lib/go/thrift"
	"github.com/xitongsys/parquet-go/layout"
	"github.com/xitongsys/parquet-go/parquet"

	"github.com/leadetl/leadetl/sinks/typed"
)

// decodedComparison compares levels and values that the second implementation has
// decoded itself, into an interface each. That takes ten times as long as comparison, so
// only decodedPages of a chunk in the first row group of a file are compared this way.
// Tests compare whole files this way, and both comparisons with each other.
type decodedComparison struct {
	leaf  *leaf
	at    int
	there int
	row   int64
}

// decodedPages is how many pages with values the second implementation decodes, of each
// column of the first row group of a file.
const decodedPages = 1

// compareDecoded is compare by a decodedComparison, of at most so many pages.
func compareDecoded(l *leaf, r secondReader, rowGroup, i, pages int) (err error) {
	defer typed.Contain(&err)
	meta := r.meta.RowGroups[rowGroup].Columns[i].MetaData
	in := thrift.NewTBufferedTransport(thrift.NewStreamTransportR(io.NewSectionReader(r.file, firstPage(meta), meta.TotalCompressedSize)), 1<<12)
	c := &decodedComparison{leaf: l}
	var dictionary *layout.Page
	for seen := int64(0); seen < meta.NumValues; {
		if pages == 0 {
			return nil
		}
		page, n, _, err := layout.ReadPage(in, r.schema, meta)
		if err != nil {
			return err
		}
		if page.Header.GetType() == parquet.PageType_DICTIONARY_PAGE {
			dictionary = page
			continue
		}
		page.Decode(dictionary)
		if err := c.page(page.DataTable); err != nil {
			return err
		}
		seen, pages = seen+n, pages-1
	}
	if c.at != l.Count {
		return &differError{c.row, fmt.Sprintf("the second reader finds %d values and nulls, Arrow's %d", c.at, l.Count)}
	}
	return nil
}

func (c *decodedComparison) page(t *layout.Table) error {
	l := c.leaf
	if len(t.Values) > l.Count-c.at {
		return &differError{c.row, "the second reader finds more values than Arrow's"}
	}
	if len(t.DefinitionLevels) != len(t.Values) || len(t.RepetitionLevels) != len(t.Values) {
		return errors.New("the numbers of levels and values of a page differ")
	}
	for i, value := range t.Values {
		definition, repetition := l.MaxDefinition, int16(0)
		if l.Definition != nil {
			definition = l.Definition[c.at]
		}
		if l.Repetition != nil {
			repetition = l.Repetition[c.at]
		}
		if repetition == 0 {
			c.row++
		}
		switch {
		case l.Definition != nil && int32(definition) != t.DefinitionLevels[i] || int32(repetition) != t.RepetitionLevels[i]:
			return &differError{c.row, "the two readers disagree on what is null, or where a list ends"}
		case definition < l.MaxDefinition:
			if value != nil {
				return errors.New("a null has a value")
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
		return i < len(l.Texts) && string(l.Texts[i]) == v
	case int64:
		return i < len(l.Numbers) && l.Numbers[i] == v
	case int32:
		return i < len(l.Numbers) && l.Numbers[i] == int64(v)
	case float64:
		return i < len(l.Floats) && l.Floats[i] == v
	case bool:
		return i < len(l.Booleans) && l.Booleans[i] == v
	}
	return false
}
