package sqlite

import (
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/service/state"
)

const selectBalance = "SELECT available, reserved FROM organizations WHERE id = ?"

// account is an organization's sums as a group sees them: read once, written
// once at its end.
type account struct {
	state.Balance
	changed bool
}

// entry is an Entry on its way into the ledger.
type entry struct {
	organization int64
	kind         state.Kind
	credits      int64
	reserved     bool // a capture takes reserved credits, not available ones
	of           uuid.UUID
	operation    resolution.Operation
	note         string
	at           time.Time
}

// changes is the arithmetic of credits, all of it.
func (e entry) changes() (available, reserved int64) {
	switch e.kind {
	case state.Grant, state.Adjust:
		return e.credits, 0
	case state.Reserve:
		return -e.credits, e.credits
	case state.Capture:
		if e.reserved {
			return 0, -e.credits
		}
		return -e.credits, 0
	case state.Release:
		return e.credits, -e.credits
	}
	panic("state: no kind of entry: " + string(e.kind))
}

// enter is the only way into the ledger: the entry and its organization's
// sums change together, or neither does. An entry of 0 credits is none.
// Errors, with nothing written: *InsufficientError, ErrNotFound,
// resolution.ErrInvalid.
func (t *tx) enter(e entry) error {
	if e.credits == 0 {
		return nil
	}
	a, err := t.account(e.organization)
	if err != nil {
		return err
	}
	available, reserved := e.changes()
	var open int64 // of the resolution's reservation
	if reserved != 0 {
		if open, err = t.openReservation(e.of); err != nil {
			return err
		}
	}
	switch {
	case a.Available+available < 0:
		return &state.InsufficientError{Required: -available, Balance: a.Available}
	case open+reserved < 0:
		return fmt.Errorf("%w: %s of more than is reserved", resolution.ErrInvalid, e.kind)
	case available+reserved > 0 && a.Available+a.Reserved+available+reserved > creditLimit:
		return fmt.Errorf("%w: a balance is at most %d credits", resolution.ErrInvalid, int64(creditLimit))
	}
	a.Available += available
	a.Reserved += reserved
	a.changed = true
	if reserved != 0 {
		t.reservations[e.of] = open + reserved
	}
	t.sql.Wrote = true
	t.ledger.Add(millis(e.at), e.organization, string(e.kind), e.credits, available, reserved, orNull(e.of[:], e.of == uuid.Nil),
		orNull(string(e.operation), e.operation == ""), orNull(e.note, e.note == ""))
	return nil
}

func orNull[T any](v T, null bool) any {
	if null {
		return nil
	}
	return v
}

// account finds an organization's sums; ErrNotFound when there is none.
func (t *tx) account(organization int64) (*account, error) {
	if a := t.accounts[organization]; a != nil {
		return a, nil
	}
	a := &account{}
	found, err := t.sql.Row(selectBalance, []any{organization}, &a.Available, &a.Reserved)
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, fmt.Errorf("organization: %w", state.ErrNotFound)
	}
	t.accounts[organization] = a
	return a, nil
}

// available is what an organization has left; ErrNotFound when there is none.
func (t *tx) available(organization int64) (int64, error) {
	a, err := t.account(organization)
	if err != nil {
		return 0, err
	}
	return a.Available, nil
}

// openReservation is what is still reserved for a resolution.
func (t *tx) openReservation(of uuid.UUID) (int64, error) {
	if open, known := t.reservations[of]; known {
		return open, nil
	}
	var open int64
	if _, err := t.sql.Row("SELECT coalesce(sum(reserved), 0) FROM ledger WHERE resolution = ? AND reserved <> 0", []any{of[:]}, &open); err != nil {
		return 0, err
	}
	t.reservations[of] = open
	return open, nil
}

// writeAccounts writes the sums that changed.
func (t *tx) writeAccounts() error {
	for id, a := range t.accounts {
		if !a.changed {
			continue
		}
		if err := t.sql.Exec("UPDATE organizations SET available = ?, reserved = ? WHERE id = ?", a.Available, a.Reserved, id); err != nil {
			return err
		}
	}
	return nil
}
