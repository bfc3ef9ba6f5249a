package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/service/state"
)

// creditLimit bounds one entry and one balance, so that sums stay far from
// the ends of an int64 and exact in JSON.
const creditLimit = 1_000_000_000_000

// Grant gives an organization credits, at least one. The note says why, for
// those who read the ledger.
func (s *Store) Grant(ctx context.Context, organization, credits int64, note string, now time.Time) (state.Balance, error) {
	if err := checkGrant(credits); err != nil {
		return state.Balance{}, err
	}
	return s.enter(ctx, entry{organization: organization, kind: state.Grant, credits: credits, note: note, at: now})
}

// Adjust corrects an organization's available credits upwards or downwards.
// Taking more than is available is an *InsufficientError.
func (s *Store) Adjust(ctx context.Context, organization, credits int64, note string, now time.Time) (state.Balance, error) {
	if credits == 0 || credits > creditLimit || credits < -creditLimit {
		return state.Balance{}, fmt.Errorf("%w: an adjustment is not 0 and at most %d credits", resolution.ErrInvalid, int64(creditLimit))
	}
	return s.enter(ctx, entry{organization: organization, kind: state.Adjust, credits: credits, note: note, at: now})
}

func checkGrant(credits int64) error {
	if credits < 1 || credits > creditLimit {
		return fmt.Errorf("%w: a grant is 1 to %d credits", resolution.ErrInvalid, int64(creditLimit))
	}
	return nil
}

func (s *Store) enter(ctx context.Context, e entry) (b state.Balance, err error) {
	err = s.writer.Write(ctx, func(t *tx) error {
		if err := t.enter(e); err != nil {
			return err
		}
		a, err := t.account(e.organization)
		if err != nil {
			return err
		}
		b = a.Balance
		return nil
	})
	if err != nil {
		return state.Balance{}, err
	}
	return b, nil
}

// Balance reads what an organization has.
func (s *Store) Balance(ctx context.Context, organization int64) (b state.Balance, err error) {
	err = s.reads.QueryRowContext(ctx, selectBalance, organization).Scan(&b.Available, &b.Reserved)
	if errors.Is(err, sql.ErrNoRows) {
		return state.Balance{}, fmt.Errorf("organization: %w", state.ErrNotFound)
	}
	return b, unavailable(err)
}

// Ledger reads up to limit entries of an organization, in order, from the one
// that follows the entry with the number after; 0 is before the first.
func (s *Store) Ledger(ctx context.Context, organization, after int64, limit int) ([]state.Entry, error) {
	return collect(ctx, s.reads, scanEntry,
		"SELECT seq, at, kind, credits, available, reserved, resolution, operation, note FROM ledger WHERE organization = ? AND seq > ? ORDER BY seq LIMIT ?",
		organization, after, limit)
}

func scanEntry(row interface{ Scan(...any) error }) (e state.Entry, err error) {
	var at int64
	var of []byte
	var operation, note sql.NullString
	err = row.Scan(&e.Seq, &at, &e.Kind, &e.Credits, &e.Available, &e.Reserved, &of, &operation, &note)
	copy(e.Resolution[:], of)
	e.At, e.Operation, e.Note = moment(at), resolution.Operation(operation.String), note.String
	return e, err
}

// Settle takes what a finished call costs and keeps what it leaves, in one
// transaction: the capture of its credits, its stored reply, its callback. It
// returns the credits available afterwards.
//
// Errors: *InsufficientError, ErrReplyStored, ErrNotFound for an unknown
// organization; nothing was changed then. A charge of nothing that leaves
// nothing is only a look at the balance.
func (s *Store) Settle(ctx context.Context, c state.Charge) (available int64, err error) {
	if c.Credits < 0 || c.Credits > creditLimit {
		return 0, fmt.Errorf("%w: a charge is 0 to %d credits", resolution.ErrInvalid, int64(creditLimit))
	}
	if c.Callback != nil && c.Callback.Organization != c.Organization {
		return 0, fmt.Errorf("%w: the callback is another organization's", resolution.ErrInvalid)
	}
	if c.Credits == 0 && c.Reply == nil && c.Callback == nil {
		b, err := s.Balance(ctx, c.Organization)
		return b.Available, err
	}
	err = s.writer.Write(ctx, func(t *tx) error {
		a, err := t.account(c.Organization)
		if err != nil {
			return err
		}
		if err := t.mayStore(c.Reply, c.At); err != nil {
			return err
		}
		err = t.enter(entry{organization: c.Organization, kind: state.Capture, credits: c.Credits, of: c.Resolution, operation: c.Operation, at: c.At})
		if err != nil {
			return err
		}
		t.store(c.Reply, c.At)
		if c.Callback != nil {
			if err := t.post(*c.Callback); err != nil {
				return err
			}
		}
		available = a.Available
		return nil
	})
	if err != nil {
		return 0, err
	}
	return available, nil
}
