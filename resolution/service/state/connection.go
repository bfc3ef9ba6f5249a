package state

import (
	"context"
	"database/sql"
	"errors"
)

// connection is the writer's: one connection to the database, with the
// statements it has prepared. The texts are constants of this package, so
// there are few.
type connection struct {
	*sql.Conn
	db       *sql.DB
	prepared map[string]*sql.Stmt
}

// settings of the writer: a commit returns after its fsync; references hold;
// 32 MiB of pages are kept in memory; and the log goes back into the database
// after 16 MiB.
const settings = "_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=foreign_keys(1)" +
	"&_pragma=cache_size(-32768)&_pragma=wal_autocheckpoint(4000)"

func connect(path string) (_ *connection, err error) {
	db, err := sql.Open("sqlite", uri(path, settings))
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	c := &connection{db: db, prepared: map[string]*sql.Stmt{}}
	if c.Conn, err = db.Conn(context.Background()); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return c, nil
}

func (c *connection) prepare(statement string) (*sql.Stmt, error) {
	if s := c.prepared[statement]; s != nil {
		return s, nil
	}
	s, err := c.PrepareContext(context.Background(), statement)
	if err == nil {
		c.prepared[statement] = s
	}
	return s, err
}

// Close gives everything back, whatever state it is in.
func (c *connection) Close() error {
	var errs []error
	for _, s := range c.prepared {
		errs = append(errs, s.Close())
	}
	return errors.Join(append(errs, c.Conn.Close(), c.db.Close())...)
}
