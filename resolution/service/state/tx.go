package state

import (
	"context"
	"database/sql"
	"errors"

	"github.com/google/uuid"
)

// tx is the transaction of one group. Its methods remember the first error of
// the database: after it nothing of the group counts.
//
// Organizations' sums, ledger entries and replies are held back and written
// together when the group ends, so account, enter, mayStore and store are the
// only way to them inside a group; a query of those tables would not see what
// the group did.
type tx struct {
	conn   *connection
	broken error
	wrote  bool // since it was last set to false

	accounts     map[int64]*account
	reservations map[uuid.UUID]int64 // what is open, of those looked at
	ledger       *batch
	keys         map[[32]byte]bool // of the replies below
	replies      *batch
}

func newTx(conn *connection) *tx {
	return &tx{
		conn:         conn,
		accounts:     map[int64]*account{},
		reservations: map[uuid.UUID]int64{},
		ledger:       newBatch("INSERT INTO ledger(at, organization, kind, credits, available, reserved, resolution, operation, note)", 9),
		keys:         map[[32]byte]bool{},
		replies:      newBatch("INSERT OR REPLACE INTO replies(at, key, fingerprint, status, body)", 5),
	}
}

// begin starts a group; what an earlier one left in t is forgotten.
func (t *tx) begin() error {
	t.broken, t.wrote = nil, false
	clear(t.accounts)
	clear(t.reservations)
	clear(t.keys)
	t.ledger.reset()
	t.replies.reset()
	return t.mark(t.conn.begin())
}

// flush writes what the group held back.
func (t *tx) flush() error {
	if err := t.replies.flush(t); err != nil {
		return err
	}
	if err := t.ledger.flush(t); err != nil {
		return err
	}
	return t.writeAccounts()
}

// commit puts the group on the disk.
func (t *tx) commit() error { return t.exec("COMMIT") }

// rollback undoes the group. Where it fails, SQLite has ended the transaction
// already, or the next begin says what is wrong.
func (t *tx) rollback() {
	_, _ = t.conn.ExecContext(context.Background(), "ROLLBACK")
}

// exec runs a statement that changes something.
func (t *tx) exec(statement string, args ...any) error {
	_, err := t.run(statement, args)
	return err
}

// insert is exec for one new row; it returns the row's number.
func (t *tx) insert(statement string, args ...any) (id int64, err error) {
	r, err := t.run(statement, args)
	if err != nil {
		return 0, err
	}
	id, err = r.LastInsertId()
	return id, t.mark(err)
}

// update is exec that says how many rows there were to change.
func (t *tx) update(statement string, args ...any) (rows int64, err error) {
	r, err := t.run(statement, args)
	if err != nil {
		return 0, err
	}
	rows, err = r.RowsAffected()
	return rows, t.mark(err)
}

func (t *tx) run(statement string, args []any) (sql.Result, error) {
	t.wrote = true
	s, err := t.conn.prepare(statement)
	if err != nil {
		return nil, t.mark(err)
	}
	r, err := s.ExecContext(context.Background(), args...)
	return r, t.mark(err)
}

// row reads one row; found is false when there is none.
func (t *tx) row(query string, args []any, into ...any) (found bool, err error) {
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

func (t *tx) mark(err error) error {
	if err != nil && t.broken == nil {
		t.broken = err
	}
	return err
}
