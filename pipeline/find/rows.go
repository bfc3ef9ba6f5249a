package find

import (
	"github.com/apache/arrow/go/v17/arrow"

	"github.com/leadetl/leadetl/sinks"
	"github.com/leadetl/leadetl/transforms/suppression"
)

// Rows tells which rows of a dataset name somebody on lists. One goroutine uses it.
type Rows struct {
	columns []looked
	lookers lookers
}

// NewRows looks at all columns of a dataset that have identifiers.
func NewRows(m *sinks.Manifest, who *suppression.Set) *Rows {
	r, of := &Rows{lookers: (&Subjects{set: who}).lookers()}, newColumnsOf(m)
	for _, c := range m.AllColumns() {
		if look := of.of("", c.Name); look != nil && hasTexts(c) {
			r.columns = append(r.columns, looked{c, look})
		}
	}
	return r
}

// Columns are the columns that are looked at.
func (r *Rows) Columns() (columns []sinks.Column) {
	for _, c := range r.columns {
		columns = append(columns, c.Column)
	}
	return columns
}

// Named reports which of n rows, of which a batch has these columns, name somebody.
func (r *Rows) Named(batch []arrow.Array, n int) []bool {
	named := make([]bool, n)
	r.lookers.each(n, func(l *Looker, row int) []Hit {
		for i, c := range r.columns {
			if !named[row] && !batch[i].IsNull(row) {
				eachText(batch[i], row, func(text string) { named[row] = named[row] || text != "" && c.look(l, text) })
			}
		}
		return nil
	})
	return named
}
