package sqlite

import (
	"context"
	"database/sql"
)

// queryer is a pool of reading connections, or one reading transaction.
type queryer interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// collect reads all rows of a query. Its error is of the class
// resolution.ErrUnavailable, or the context's.
func collect[T any](ctx context.Context, from queryer, scan func(interface{ Scan(...any) error }) (T, error), query string, args ...any) (all []T, err error) {
	rows, err := from.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, unavailable(err)
	}
	defer rows.Close() // after the last row there is nothing left to fail
	for rows.Next() {
		one, err := scan(rows)
		if err != nil {
			return nil, unavailable(err)
		}
		all = append(all, one)
	}
	return all, unavailable(rows.Err())
}
