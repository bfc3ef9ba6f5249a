package keys

import (
	"slices"

	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"

	"github.com/leadetl/leadetl/internal/rows"
	"github.com/leadetl/leadetl/pipeline/columns"
	"github.com/leadetl/leadetl/sources"
	"github.com/leadetl/leadetl/transforms/ipaddr"
	"github.com/leadetl/leadetl/transforms/suppression"
)

// Multiple says what becomes of a cell with several identifiers.
type Multiple string

// The choices. Without one, such a cell is rejected.
const (
	First       Multiple = "first"
	Last        Multiple = "last"
	Each        Multiple = "each"         // a row for each identifier
	FirstPublic Multiple = "first-public" // the first IP address that is looked up
)

// MaxValues is the most identifiers of a cell that become rows. A cell with more is rejected.
const MaxValues = 50

// of returns the identifiers of a cell that become rows, of those that it has; nil if the cell
// itself does.
func (m Multiple) of(cell string, values []string) []string {
	switch n := len(values); {
	case n == 1 && values[0] != cell:
		return values // a list with one value, or none
	case n < 2:
	case m == First:
		return values[:1]
	case m == Last:
		return values[n-1:]
	case m == FirstPublic:
		return []string{ipaddr.FirstPublic(values)}
	case m == Each && n <= MaxValues:
		return values
	}
	return nil
}

// spread has the rows of a batch, of which each has one identifier.
type spread struct {
	identifiers *array.String
	isCut       []bool  // the row's cell has several; nil if none has
	from        []int   // the row of the batch, of each row; nil if they are the same
	parts       []int32 // which identifier of its cell a row has, from 1; nil without Each
}

// spread cuts the cells of a batch that have several identifiers. A list with one value becomes
// that value, whatever Multiple says.
func (k keyer) spread(in *sources.Batch, cells *array.String) spread {
	all := spread{identifiers: cells}
	if k.reading.Multiple == "" && !mayHaveList(cells) {
		return all
	}
	values := array.NewStringBuilder(memory.DefaultAllocator)
	defer values.Release()
	any := false
	for i := range in.Len() {
		chosen := k.reading.Multiple.of(cells.Value(i), suppression.Values(suppression.Kind(k.operation.Identifier()), cells.Value(i)))
		several := chosen != nil
		if any = any || several; !several {
			chosen = []string{cells.Value(i)}
		}
		for part, value := range chosen {
			if cells.IsNull(i) {
				values.AppendNull()
			} else {
				values.Append(value)
			}
			all.isCut, all.from, all.parts = append(all.isCut, several), append(all.from, i), append(all.parts, int32(part+1))
		}
	}
	if any {
		all.identifiers = values.NewStringArray()
	} else {
		all.isCut = nil
	}
	if len(all.from) == in.Len() {
		all.from = nil
	}
	if k.reading.Multiple != Each {
		all.parts = nil
	}
	return all
}

// mayHaveList reports whether a cell begins as a list in JSON does.
func mayHaveList(cells *array.String) bool {
	values, offsets := cells.ValueBytes(), cells.ValueOffsets()
	for i, to := range offsets[1:] {
		if from := offsets[i]; from < to && values[from-offsets[0]] == '[' {
			return true
		}
	}
	return false
}

// begin sets b to the rows, without keys. An identifier column that is kept has the identifier of
// the row, where its cell became several rows.
func (s spread) begin(b *columns.Batch, in *sources.Batch, kept []*array.String, keepsIdentifier bool, identifier int) {
	numbers := in.Rows
	if s.from != nil {
		numbers = make([]int64, len(s.from))
		for i, from := range s.from {
			numbers[i] = in.Rows[from]
		}
	}
	b.Reset(len(numbers))
	b.Source, b.Rows, b.Kept, b.Parts = in.Source, numbers, kept, s.parts
	if s.from == nil {
		return
	}
	b.Kept = slices.Clone(b.Kept)
	for i, c := range b.Kept {
		if keepsIdentifier && i == identifier {
			b.Kept[i] = s.identifiers
		} else {
			b.Kept[i] = rows.Pick(c, s.from)
		}
	}
}
