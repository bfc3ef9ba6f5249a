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
	fields    map[string]int // columns of a batch
	otherwise map[string]string
	today     time.Time
	count     bool
}

func (s *state) newSearchReader() searchReader {
	return searchReader{s.fields, s.Job.SearchDefaults, s.asOf, s.Job.Operation == resolution.KeywordToLeadCount}
}

// read makes a search of a row of a batch. One that cannot be asked for has a
// reason. Nothing of it is the batch's memory.
func (r searchReader) read(in *sources.Batch, row int) (q search.Query, reason string) {
	return search.DefaultLimits().Read(func(name string) string {
		at, ok := r.fields[name]
		if !ok || in.Columns[at].IsNull(row) || search.IsEmpty(in.Columns[at].Value(row)) {
			return r.otherwise[name]
		}
		return strings.Clone(in.Columns[at].Value(row))
	}, r.today, r.count)
}
