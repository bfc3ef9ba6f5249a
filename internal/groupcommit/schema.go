package groupcommit

import (
	"context"
	"errors"
	"fmt"

	"github.com/leadetl/leadetl/internal/format"
)

// ErrEmpty means that a file that should hold a database is empty.
var ErrEmpty = errors.New("the database is empty")

// begin makes the tables of a new database, and refuses one with another format. If two
// processes open a new one at once, only one makes the tables. A schema that fails
// changes nothing.
func (c *Conn) begin(ctx context.Context, o Options) (err error) {
	if err := c.Begin(); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_, _ = c.ExecContext(ctx, "ROLLBACK") // the first error is the one to return
		}
	}()
	found, isNew, err := c.format(ctx)
	switch {
	case err != nil:
		return err
	case !isNew:
		err = format.Check(o.Path, found, o.Format, o.Advice)
	case o.Begun:
		err = ErrEmpty
	default:
		_, err = c.ExecContext(ctx, o.Schema+fmt.Sprintf("; PRAGMA user_version = %d", o.Format))
	}
	if err != nil {
		return err
	}
	_, err = c.ExecContext(ctx, "COMMIT")
	return err
}

// format returns the number of a database's format. A new database has no tables either.
func (c *Conn) format(ctx context.Context) (number int, isNew bool, err error) {
	if err := c.QueryRowContext(ctx, "PRAGMA user_version").Scan(&number); err != nil || number != 0 {
		return number, false, err
	}
	var tables int
	err = c.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema").Scan(&tables)
	return 0, tables == 0, err
}
