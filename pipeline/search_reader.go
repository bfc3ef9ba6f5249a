package pipeline

import (
	"strings"
	"time"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/sources"
	"github.com/leadetl/leadetl/transforms/search"
)

// searchReader makes searches of input rows.
type searchReader struct {
	fields   map[string]int // columns of a batch
	defaults map[string]string
	today    time.Time
	count    bool
}

func (d *decision) newSearchReader() searchReader {
	return searchReader{d.columns.fields, d.run.Job.SearchDefaults, d.asOf, d.run.Job.Operation == resolution.KeywordToLeadCount}
}

// read makes a search of a row of a batch. A reason says why it cannot be asked
// for. The search shares no memory with the batch.
func (r searchReader) read(in *sources.Batch, row int) (q search.Query, reason string) {
	return search.DefaultLimits().Read(func(name string) string {
		at, ok := r.fields[name]
		if !ok || in.Columns[at].IsNull(row) || search.IsEmpty(in.Columns[at].Value(row)) {
			return r.defaults[name]
		}
		return strings.Clone(in.Columns[at].Value(row))
	}, r.today, r.count)
}
