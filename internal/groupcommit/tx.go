package groupcommit

import (
	"context"
	"database/sql"
	"errors"
)

// Tx is the transaction of one group. Its methods remember the first database
// error, which rolls back the whole group.
type Tx struct {
	// Wrote means that the current change wrote, or held back rows for Flush. The
	// methods of Tx set it; a Group that holds a row back sets it too.
	Wrote  bool
	conn   *Conn
	broken error
}

func (t *Tx) begin() error {
	t.broken, t.Wrote = nil, false
	return t.mark(t.conn.Begin())
}

func (t *Tx) commit() error { return t.Exec("COMMIT") }

// rollback undoes the group. If it fails, SQLite has already ended the
// transaction, or the next begin reports the error.
func (t *Tx) rollback() {
	_, _ = t.conn.ExecContext(context.Background(), "ROLLBACK")
}

// Exec runs a statement that changes something. Each statement stays prepared,
// so its text must be a constant.
func (t *Tx) Exec(statement string, args ...any) error {
	_, err := t.run(statement, args)
	return err
}

// Insert is Exec for one new row, and returns its row id.
func (t *Tx) Insert(statement string, args ...any) (id int64, err error) {
	r, err := t.run(statement, args)
	if err != nil {
		return 0, err
	}
	id, err = r.LastInsertId()
	return id, t.mark(err)
}

// Update is Exec that returns how many rows it changed.
func (t *Tx) Update(statement string, args ...any) (rows int64, err error) {
	r, err := t.run(statement, args)
	if err != nil {
		return 0, err
	}
	rows, err = r.RowsAffected()
	return rows, t.mark(err)
}

func (t *Tx) run(statement string, args []any) (sql.Result, error) {
	t.Wrote = true
	s, err := t.conn.prepare(statement)
	if err != nil {
		return nil, t.mark(err)
	}
	r, err := s.ExecContext(context.Background(), args...)
	return r, t.mark(err)
}

// Row reads one row; found is false without one. It sees what the group
// wrote, but not the rows that the group holds back.
func (t *Tx) Row(query string, args []any, into ...any) (found bool, err error) {
	s, err := t.conn.prepare(query)
	if err != nil {
		return false, t.mark(err)
	}
	err = s.QueryRowContext(context.Background(), args...).Scan(into...)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, t.mark(err)
}

func (t *Tx) mark(err error) error {
	if err != nil && t.broken == nil {
		t.broken = err
	}
	return err
}
