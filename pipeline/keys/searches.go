package keys

import (
	"strings"
	"time"

	"github.com/leadetl/leadetl/sources"
	"github.com/leadetl/leadetl/transforms/search"
)

// SearchReader makes searches of input rows.
type SearchReader struct {
	Fields   map[string]int    // the columns of the fields of searches
	Defaults map[string]string // for empty fields
	Today    time.Time
	Count    bool // the searches are counted
}

// Read makes a search of a row of a batch. A reason says why it is invalid. The search shares
// no memory with the batch.
func (r SearchReader) Read(in *sources.Batch, row int) (q search.Query, reason string) {
	return search.DefaultLimits().Read(func(name string) string {
		at, ok := r.Fields[name]
		if !ok || in.Columns[at].IsNull(row) || search.IsEmpty(in.Columns[at].Value(row)) {
			return r.Defaults[name]
		}
		return strings.Clone(in.Columns[at].Value(row))
	}, r.Today, r.Count)
}
