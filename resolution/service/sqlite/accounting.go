package sqlite

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/google/uuid"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/service/state"
)

const selectBalance = "SELECT available, reserved FROM organizations WHERE id = ? AND deleted IS NULL"

// account is an organization's balance within one group: read once, and written
// once at the end of the group.
type account struct {
	balance state.Balance
	changed bool
}

// entry is a ledger entry that is about to be written.
type entry struct {
	organization int64
	kind         state.Kind
	credits      int64
	key          int64 // API key of the call, 0 for none
	reserved     bool  // a capture takes reserved credits, not available ones
	resolution   uuid.UUID
	operation    resolution.Operation
	note         string
	at           time.Time
}

// changes returns what the entry adds to the available and to the reserved
// credits. No other code computes credits.
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
	panic("sqlite: unknown kind of ledger entry: " + string(e.kind))
}

// enter is the only way to write to the ledger: the entry and its organization's
// balance change together, or neither does. An entry of 0 credits is ignored.
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
	var open int64 // what is still reserved for the resolution
	if reserved != 0 {
		if open, err = t.openReservation(e.resolution); err != nil {
			return err
		}
	}
	k, err := t.spender(e.key)
	if err != nil {
		return err
	}
	if left := k.left(); available < 0 && -available > left {
		return &state.InsufficientError{Required: -available, Balance: max(left, 0), OfKey: true}
	}
	switch {
	case a.balance.Available+available < 0:
		return &state.InsufficientError{Required: -available, Balance: a.balance.Available}
	case open+reserved < 0:
		return fmt.Errorf("%w: %s of more credits than are reserved", resolution.ErrInvalid, e.kind)
	case available+reserved > 0 && a.balance.Available+a.balance.Reserved+available+reserved > creditLimit:
		return fmt.Errorf("%w: a balance is at most %d credits", resolution.ErrInvalid, int64(creditLimit))
	}
	a.balance.Available += available
	a.balance.Reserved += reserved
	a.changed = true
	for ; k != nil; k = k.maker {
		k.spent -= available
	}
	if reserved != 0 {
		t.reservations[e.resolution] = open + reserved
	}
	t.sql.Wrote = true
	t.ledger.Add(millis(e.at), e.organization, string(e.kind), e.credits, available, reserved, orNull(e.resolution[:], e.resolution == uuid.Nil),
		orNull(string(e.operation), e.operation == ""), orNull(e.note, e.note == ""), orNull(e.key, e.key == 0))
	if e.kind == state.Capture {
		t.use(usageRow{e.organization, day(e.at), string(e.operation), e.key}, usageSum{charges: 1, credits: e.credits})
	}
	return nil
}

func orNull[T any](v T, null bool) any {
	if null {
		return nil
	}
	return v
}

// account returns the account of an organization, or ErrNotFound.
func (t *tx) account(organization int64) (*account, error) {
	if a := t.accounts[organization]; a != nil {
		return a, nil
	}
	a := &account{}
	found, err := t.sql.Row(selectBalance, []any{organization}, &a.balance.Available, &a.balance.Reserved)
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, fmt.Errorf("organization: %w", state.ErrNotFound)
	}
	t.accounts[organization] = a
	return a, nil
}

// spender is what a key has spent within one group, and the most it may.
type spender struct {
	limit *int64 // nil for any number
	spent int64
	maker *spender // for which it counts too; nil without one
}

// left is how many credits the key may still spend, by its limit and those of its makers.
func (k *spender) left() int64 {
	least := int64(math.MaxInt64)
	for ; k != nil; k = k.maker {
		if k.limit != nil {
			least = min(least, *k.limit-k.spent)
		}
	}
	return least
}

// spender returns the spender of a key. That of 0, or of a key that is gone, has no
// limit and is not written.
func (t *tx) spender(key int64) (*spender, error) {
	if k := t.spenders[key]; k != nil {
		return k, nil
	}
	k := &spender{}
	if key != 0 {
		var maker int64
		if _, err := t.sql.Row("SELECT k.spending_limit, k.spent, coalesce("+makerOf+", 0) FROM keys k WHERE k.id = ?", []any{key}, &k.limit, &k.spent, &maker); err != nil {
			return nil, err
		}
		if maker != 0 {
			var err error
			if k.maker, err = t.spender(maker); err != nil {
				return nil, err
			}
		}
		t.spenders[key] = k
	}
	return k, nil
}

func (t *tx) writeSpenders() error {
	for key, k := range t.spenders {
		if err := t.sql.Exec("UPDATE keys SET spent = ? WHERE id = ? AND spent <> ?", k.spent, key, k.spent); err != nil {
			return err
		}
	}
	return nil
}

// available returns the available credits of an organization, or ErrNotFound.
func (t *tx) available(organization int64) (int64, error) {
	a, err := t.account(organization)
	if err != nil {
		return 0, err
	}
	return a.balance.Available, nil
}

// openReservation returns the credits that are still reserved for a resolution.
func (t *tx) openReservation(id uuid.UUID) (int64, error) {
	if open, known := t.reservations[id]; known {
		return open, nil
	}
	var open int64
	if _, err := t.sql.Row("SELECT coalesce(sum(reserved), 0) FROM ledger WHERE resolution = ? AND reserved <> 0", []any{id[:]}, &open); err != nil {
		return 0, err
	}
	t.reservations[id] = open
	return open, nil
}

// writeAccounts writes the balances that changed.
func (t *tx) writeAccounts() error {
	for id, a := range t.accounts {
		if !a.changed {
			continue
		}
		if err := t.sql.Exec("UPDATE organizations SET available = ?, reserved = ? WHERE id = ?", a.balance.Available, a.balance.Reserved, id); err != nil {
			return err
		}
	}
	return nil
}

// usageRow is the primary key of a row of usage.
type usageRow struct {
	organization, day int64
	operation         string
	key               int64
}

type usageSum struct{ requests, limited, charges, credits int64 }

// day is the number of a day, counted from 1970 UTC.
func day(t time.Time) int64 { return t.Unix() / (24 * 60 * 60) }

// use adds to a row of usage; the group writes it when it ends.
func (t *tx) use(r usageRow, more usageSum) {
	t.sql.Wrote = true
	sum := t.usage[r]
	sum.requests += more.requests
	sum.limited += more.limited
	sum.charges += more.charges
	sum.credits += more.credits
	t.usage[r] = sum
}

func (t *tx) writeUsage() error {
	for r, sum := range t.usage {
		err := t.sql.Exec(`INSERT INTO usage(organization, day, operation, key, requests, limited, charges, credits) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
			ON CONFLICT(organization, day, operation, key) DO UPDATE SET requests = requests + excluded.requests, limited = limited + excluded.limited,
				charges = charges + excluded.charges, credits = credits + excluded.credits`,
			r.organization, r.day, r.operation, r.key, sum.requests, sum.limited, sum.charges, sum.credits)
		if err != nil {
			return err
		}
	}
	return nil
}

// CountRequests adds to the requests that Usage returns. Counts of an
// organization that is gone are dropped.
func (s *Credits) CountRequests(ctx context.Context, counts []state.Requests) error {
	return s.db.writer.Write(ctx, func(t *tx) error {
		for _, c := range counts {
			known, err := t.sql.Row("SELECT 1 FROM organizations WHERE id = ?", []any{c.Organization}, new(int))
			if err != nil {
				return err
			}
			if known {
				t.use(usageRow{c.Organization, c.Day, c.Operation, c.Key}, usageSum{requests: c.Total, limited: c.Limited})
			}
		}
		return nil
	})
}

// Usage reads what an organization used between two days, both included, by day,
// operation and key.
func (s *Credits) Usage(ctx context.Context, organization int64, from, to time.Time) ([]state.Usage, error) {
	scan := func(row interface{ Scan(...any) error }) (u state.Usage, err error) {
		var day int64
		err = row.Scan(&day, &u.Operation, &u.Key, &u.KeyLabel, &u.Requests, &u.Limited, &u.Charges, &u.Credits)
		u.Day = time.Unix(day*24*60*60, 0).UTC()
		return u, err
	}
	return collect(ctx, s.db.reads, scan, `SELECT u.day, u.operation, coalesce(k.public, ''), coalesce(k.label, ''), u.requests, u.limited, u.charges, u.credits
		FROM usage u LEFT JOIN keys k ON k.id = u.key WHERE u.organization = ? AND u.day BETWEEN ? AND ? ORDER BY u.day, u.operation, u.key`,
		organization, day(from), day(to))
}

// UsageOfAll reads what each organization used between two days, both included, by
// day. That of test keys is left out.
func (s *Credits) UsageOfAll(ctx context.Context, from, to time.Time) ([]state.Usage, error) {
	scan := func(row interface{ Scan(...any) error }) (u state.Usage, err error) {
		var day int64
		err = row.Scan(&day, &u.Organization, &u.Requests, &u.Limited, &u.Charges, &u.Credits)
		u.Day = time.Unix(day*24*60*60, 0).UTC()
		return u, err
	}
	return collect(ctx, s.db.reads, scan, `SELECT u.day, u.organization, sum(u.requests), sum(u.limited), sum(u.charges), sum(u.credits)
		FROM usage u JOIN organizations o ON o.id = u.organization WHERE o.test_of IS NULL AND u.day BETWEEN ? AND ? GROUP BY 1, 2 ORDER BY 1, 2`, day(from), day(to))
}
