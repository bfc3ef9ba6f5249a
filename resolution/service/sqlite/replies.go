package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/leadetl/leadetl/resolution"
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

// store stores the reply of a charge, if it has one and mayStore allowed it. Answer can
// find it if the charge has a resolution.
func (t *tx) store(c state.Charge) {
	r := c.Reply
	if r == nil {
		return
	}
	t.sql.Wrote = true
	t.keys[r.Key] = true
	unknown := c.Resolution == uuid.Nil
	t.replies.Add(millis(c.At), r.Key[:], r.Fingerprint[:], r.Status, nonNil(pack(r.Body)),
		orNull(c.Organization, unknown), orNull(c.Resolution[:], unknown), orNull(string(c.Operation), unknown))
}

// Answer returns the stored answer to a single-record call of an organization, and
// the operation. ErrNotFound means that it is not kept, or not any more.
func (s *Credits) Answer(ctx context.Context, organization int64, id uuid.UUID, now time.Time) (body []byte, of resolution.Operation, err error) {
	err = s.db.reads.QueryRowContext(ctx, "SELECT body, operation FROM replies WHERE resolution = ? AND organization = ? AND at > ?",
		id[:], organization, millis(now.Add(-state.ReplyLife))).Scan(&body, &of)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, "", fmt.Errorf("answer: %w", state.ErrNotFound)
	}
	if err == nil {
		body, err = unpack(body)
	}
	return body, of, unavailable(err)
}
