package directory

import (
	"context"
	"errors"

	"github.com/leadetl/leadetl/internal/tabular"
	"github.com/leadetl/leadetl/resolution/directory/imports"
)

// loading is how one kind becomes a database file.
type loading struct {
	want   tabular.Columns
	schema string // makes the tables
	tables []tableColumns
	index  string // run after the rows: a sorted load beats a sorted table
	keys   string // counts the distinct keys
}

type tableColumns struct {
	name    string
	columns []string
}

// load reads r.Source and gives every row to each, which adds to the tables
// (in the order of l.tables) and to the content what it takes over.
func (im *importer) load(ctx context.Context, k Kind, r *imports.Report, l loading, each func(row tabular.Row, into []*inserter, sum *imports.Content) error) (_ entry, err error) {
	b, err := buildSQLite(im.path(k, "sqlite"), l.schema)
	if err != nil {
		return entry{}, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.abort())
		}
	}()
	tx, err := b.db.Begin()
	if err != nil {
		return entry{}, err
	}
	defer tx.Rollback()
	into := make([]*inserter, len(l.tables))
	for i, t := range l.tables {
		if into[i], err = newInserter(tx, t.name, t.columns...); err != nil {
			return entry{}, err
		}
	}
	sum := imports.NewContent()
	if err := im.settings.Read(ctx, r, l.want, func(row tabular.Row) error { return each(row, into, sum) }); err != nil {
		return entry{}, err
	}
	for _, in := range into {
		if err := in.flush(); err != nil {
			return entry{}, err
		}
	}
	if err := tx.Commit(); err != nil {
		return entry{}, err
	}
	if err := b.run(ctx, l.index); err != nil {
		return entry{}, err
	}
	keys, err := b.count(l.keys)
	if err != nil {
		return entry{}, err
	}
	e, err := b.seal()
	e.Rows, e.Keys, e.Content = r.Rows, keys, sum.Sum()
	return e, err
}

// micros is a time as the database keeps it; nil for an empty cell. ok is
// false when there is something else in it.
func micros(cell string) (value any, ok bool) {
	if cell == "" {
		return nil, true
	}
	t, ok := imports.Time(cell)
	if !ok {
		return nil, false
	}
	return t.UnixMicro(), true
}
