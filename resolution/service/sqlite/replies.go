package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/leadetl/leadetl/resolution/service/state"
)

// Reply returns the reply stored under a key in the 24 hours before now, nil
// without one.
func (s *Credits) Reply(ctx context.Context, key [32]byte, now time.Time) (*state.Reply, error) {
	r := state.Reply{Key: key}
	var fingerprint []byte
	err := s.reply.QueryRowContext(ctx, key[:], millis(now.Add(-state.ReplyLife))).Scan(&fingerprint, &r.Status, &r.Body)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err == nil {
		r.Body, err = unpack(r.Body)
	}
	if err != nil {
		return nil, unavailable(err)
	}
	copy(r.Fingerprint[:], fingerprint)
	return &r, nil
}

// mayStore returns ErrReplyStored when the reply's key already has a stored
// reply. A nil reply can always be stored.
func (t *tx) mayStore(r *state.Reply, at time.Time) error {
	if r == nil {
		return nil
	}
	found := t.keys[r.Key]
	if !found {
		var err error
		if found, err = t.sql.Row("SELECT 1 FROM replies WHERE key = ? AND at > ?", []any{r.Key[:], millis(at.Add(-state.ReplyLife))}, new(int)); err != nil {
			return err
		}
	}
	if found {
		return state.ErrReplyStored
	}
	return nil
}

// store stores a reply that mayStore allowed. It ignores nil.
func (t *tx) store(r *state.Reply, at time.Time) {
	if r == nil {
		return
	}
	t.sql.Wrote = true
	t.keys[r.Key] = true
	t.replies.Add(millis(at), r.Key[:], r.Fingerprint[:], r.Status, nonNil(pack(r.Body)))
}
