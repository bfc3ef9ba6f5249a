package pipeline

import (
	"slices"
	"strings"
	"time"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/sources"
	"github.com/leadetl/leadetl/transforms/search"
)

// keywordsColumn is what keyword operations are asked about unless Job.Column
// names another.
const keywordsColumn = "keywords"

// chooseSearchColumns finds the columns that hold a search's fields, by the
// fields' names, in whichever file has one: a filter must not be lost because
// another file goes without it.
func (s *state) chooseSearchColumns() {
	s.fields = map[string]int{keywordsColumn: s.identifier}
	for _, field := range search.Fields {
		if field == keywordsColumn {
			continue
		}
		for _, f := range s.Input.Files() {
			if name := matchFold(f.Columns, field); containsFold(f.Columns, field) {
				s.fields[field] = s.readColumn(name)
				break
			}
		}
	}
}

// readColumn is the place of a column among those that are read, and has it
// read if it is not.
func (s *state) readColumn(name string) int {
	name = matchFold(s.read, name)
	at := slices.Index(s.read, name)
	if at < 0 {
		at = len(s.read)
		s.read = append(s.read, name)
	}
	return at
}

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
