package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/service/state"
)

// creditLimit bounds one entry and one balance, so that sums never overflow an
// int64 and are exact in JSON.
const creditLimit = 1_000_000_000_000

// ChangeCredits makes a grant, or an adjustment when the credits are negative,
// and stores its reply in the same transaction. Taking more than is available
// returns an *InsufficientError. Other errors, with nothing changed:
// resolution.ErrInvalid and ErrReplyStored.
func (s *Credits) ChangeCredits(ctx context.Context, c state.CreditChange) (state.Balance, error) {
	kind, credits := state.Grant, c.Credits
	if credits < 0 {
		kind, credits = state.Adjust, -credits
	}
	if err := checkCredits(credits); err != nil {
		return state.Balance{}, err
	}
	return s.enter(ctx, entry{organization: c.Organization, kind: kind, credits: c.Credits, note: c.Note, at: c.At}, c.Reply, c.Body)
}

func checkCredits(credits int64) error {
	if credits < 1 || credits > creditLimit {
		return fmt.Errorf("%w: a change of credits must be of 1 to %d", resolution.ErrInvalid, int64(creditLimit))
	}
	return nil
}

// enter writes one entry and stores a reply, if there is one, with the body made
// from the new balance.
func (s *Credits) enter(ctx context.Context, e entry, reply *state.Reply, body func(state.Balance) []byte) (b state.Balance, err error) {
	err = s.db.writer.Write(ctx, func(t *tx) error {
		if err := t.mayStore(reply, e.at); err != nil {
			return err
		}
		if err := t.enter(e); err != nil {
			return err
		}
		a, err := t.account(e.organization)
		if err != nil {
			return err
		}
		b = a.balance
		if reply != nil {
			stored := *reply
			stored.Body = body(b)
			t.store(state.Charge{Reply: &stored, At: e.at})
		}
		return nil
	})
	if err != nil {
		return state.Balance{}, err
	}
	return b, nil
}

// Balance reads the credits of an organization.
func (s *Credits) Balance(ctx context.Context, organization int64) (b state.Balance, err error) {
	err = s.db.reads.QueryRowContext(ctx, selectBalance, organization).Scan(&b.Available, &b.Reserved)
	if errors.Is(err, sql.ErrNoRows) {
		return state.Balance{}, fmt.Errorf("organization: %w", state.ErrNotFound)
	}
	return b, unavailable(err)
}

// Ledger reads up to limit entries of an organization in order, starting after
// the entry with number after; 0 starts with the first.
func (s *Credits) Ledger(ctx context.Context, organization, after int64, limit int) ([]state.Entry, error) {
	return collect(ctx, s.db.reads, scanEntry,
		entryColumns+" WHERE l.organization = ? AND l.seq > ? ORDER BY l.seq LIMIT ?", organization, after, limit)
}

// scannedEntries bounds the entries that LatestEntries looks at, so that what is rare in
// a long ledger takes no longer to ask for. A test lowers it.
var scannedEntries = 100_000

// LatestEntries reads up to limit entries of an organization, the newest first. older is
// the Before of the next page, 0 at the end of the ledger; a page may have fewer
// entries, or none, where many others are between them.
func (s *Credits) LatestEntries(ctx context.Context, organization int64, which state.Entries, limit int) (entries []state.Entry, older int64, err error) {
	if which.Before == 0 {
		which.Before = math.MaxInt64
	}
	err = s.db.reads.QueryRowContext(ctx, "SELECT coalesce((SELECT seq FROM ledger WHERE organization = ? AND seq < ? ORDER BY seq DESC LIMIT 1 OFFSET ?), 0)",
		organization, which.Before, scannedEntries-1).Scan(&older)
	if err != nil {
		return nil, 0, unavailable(err)
	}
	entries, err = collect(ctx, s.db.reads, scanEntry, entryColumns+` WHERE l.organization = ?1 AND l.seq < ?2 AND l.seq >= ?7 AND (?3 = '' OR l.kind = ?3)
		AND (?4 = '' OR l.operation = ?4) AND (NOT ?5 OR l.kind = 'capture' AND l.reserved = 0) ORDER BY l.seq DESC LIMIT ?6`,
		organization, which.Before, string(which.Kind), string(which.Operation), which.Single, limit+1, older)
	if len(entries) > limit {
		entries, older = entries[:limit], entries[limit-1].Seq
	}
	return entries, older, err
}

// Spent returns the credits that an organization has ever spent, by operation.
func (s *Credits) Spent(ctx context.Context, organization int64) ([]state.Usage, error) {
	return collect(ctx, s.db.reads, func(row interface{ Scan(...any) error }) (u state.Usage, err error) {
		return u, row.Scan(&u.Operation, &u.Charges, &u.Credits)
	}, "SELECT operation, sum(charges), sum(credits) FROM usage WHERE organization = ? GROUP BY operation HAVING sum(charges) > 0 ORDER BY operation", organization)
}

const entryColumns = `SELECT l.seq, l.at, l.kind, l.credits, l.available, l.reserved, l.resolution, l.operation, l.note,
	coalesce(k.public, ''), coalesce(k.label, '') FROM ledger l LEFT JOIN keys k ON k.id = l.key`

func scanEntry(row interface{ Scan(...any) error }) (e state.Entry, err error) {
	var at int64
	var of []byte
	var operation, note sql.NullString
	err = row.Scan(&e.Seq, &at, &e.Kind, &e.Credits, &e.Available, &e.Reserved, &of, &operation, &note, &e.Key, &e.KeyLabel)
	copy(e.Resolution[:], of)
	e.At, e.Operation, e.Note = moment(at), resolution.Operation(operation.String), note.String
	return e, err
}

// Settle charges a finished call in one transaction: it captures the credits,
// stores the reply and posts the callback. It returns the credits available
// afterwards. A charge without credits, reply and callback only reads the
// balance.
//
// Errors, with nothing changed: *InsufficientError, ErrReplyStored, ErrNotFound
// for an unknown organization.
func (s *Credits) Settle(ctx context.Context, c state.Charge) (available int64, err error) {
	if c.Credits < 0 || c.Credits > creditLimit {
		return 0, fmt.Errorf("%w: a charge must be 0 to %d credits", resolution.ErrInvalid, int64(creditLimit))
	}
	if c.Callback != nil && c.Callback.Organization != c.Organization {
		return 0, fmt.Errorf("%w: the callback belongs to another organization", resolution.ErrInvalid)
	}
	if c.Credits == 0 && c.Reply == nil && c.Callback == nil {
		b, err := s.Balance(ctx, c.Organization)
		return b.Available, err
	}
	err = s.db.writer.Write(ctx, func(t *tx) error {
		a, err := t.account(c.Organization)
		if err != nil {
			return err
		}
		if err := t.mayStore(c.Reply, c.At); err != nil {
			return err
		}
		err = t.enter(entry{organization: c.Organization, kind: state.Capture, credits: c.Credits, key: c.Key, resolution: c.Resolution, operation: c.Operation, at: c.At})
		if err != nil {
			return err
		}
		t.store(c)
		if c.Callback != nil {
			if err := t.outbox.post(*c.Callback); err != nil {
				return err
			}
		}
		available = a.balance.Available
		return nil
	})
	if err != nil {
		return 0, err
	}
	return available, nil
}
