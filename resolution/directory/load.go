package directory

import (
	"context"
	"errors"
)

// loading is how one kind becomes a database file.
type loading struct {
	want   columns
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
func (im *importer) load(ctx context.Context, r *KindReport, l loading, each func(row row, into []*inserter, sum *content) error) (_ entry, err error) {
	b, err := buildSQLite(im.path(r.Kind, "sqlite"), l.schema)
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
	sum := newContent()
	if err := readTable(ctx, r.Source, l.want, func(row row) error { return each(row, into, sum) }); err != nil {
		return entry{}, err
	}
	if err := im.enough(r); err != nil {
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
	e.Rows, e.Keys, e.Content = r.Rows, keys, sum.sum()
	return e, err
}

// take counts a row and says whether there is something in it.
func (r *KindReport) take(row row) bool {
	if row.bad == "" {
		r.Lines++
		return true
	}
	r.Lines += row.spoiled
	r.bad(row.line, row.bad)
	r.Bad += row.spoiled - 1
	return false
}
