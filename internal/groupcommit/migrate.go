package groupcommit

import (
	"context"
	"errors"
	"fmt"
)

// ErrNewer means that a later version of the program wrote the database. The
// database is not changed.
var ErrNewer = errors.New("written by a later version")

// ErrEmpty means that a file that should hold a database is empty.
var ErrEmpty = errors.New("the database is empty")

// migrate applies the migrations that the database lacks. Its version is
// SQLite's user_version. If two processes open it at once, only one migrates; a
// migration that fails changes nothing. begun refuses an empty database.
func (c *Conn) migrate(ctx context.Context, migrations []string, begun bool) (err error) {
	if err := c.Begin(); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_, _ = c.ExecContext(ctx, "ROLLBACK") // the first error is the one to return
		}
	}()
	var version int
	if err := c.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version); err != nil {
		return err
	}
	if version == 0 && begun {
		return ErrEmpty
	}
	if version > len(migrations) {
		return fmt.Errorf("%w: version %d, and this program knows %d: use the program that wrote it, or one after it", ErrNewer, version, len(migrations))
	}
	for _, m := range migrations[version:] {
		if _, err := c.ExecContext(ctx, m); err != nil {
			return err
		}
	}
	if version < len(migrations) {
		if _, err := c.ExecContext(ctx, fmt.Sprintf("PRAGMA user_version = %d", len(migrations))); err != nil {
			return err
		}
	}
	_, err = c.ExecContext(ctx, "COMMIT")
	return err
}
