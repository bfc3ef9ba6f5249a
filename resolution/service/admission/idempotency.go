package admission

import (
	"context"
	"crypto/sha256"
	"net/http"
	"sync"
	"time"

	"github.com/leadetl/leadetl/resolution/service/state"
	"github.com/leadetl/leadetl/resolution/service/wire"
)

// Replies has the stored answers of calls with an Idempotency-Key.
type Replies interface {
	// Reply returns the stored reply of a key, nil without one.
	Reply(ctx context.Context, key [32]byte, now time.Time) (*state.Reply, error)
}

// Key is an Idempotency-Key that a call holds until it is answered.
type Key struct {
	key         [32]byte // hash of organization, path and the key
	fingerprint [32]byte // hash of the body's meaning
}

// Reply is an answer in the form in which it is stored.
func (k *Key) Reply(body []byte) *state.Reply {
	if k == nil {
		return nil
	}
	return &state.Reply{Key: k.key, Fingerprint: k.fingerprint, Status: http.StatusOK, Body: body}
}

// keysHeld are the keys of calls in progress. A call stores its reply in the
// state before it releases its key, so a used key is always in one of the two.
type keysHeld struct {
	mu   sync.Mutex
	held map[[32]byte][32]byte // key: fingerprint
}

// hold returns false, and the fingerprint of the other call, when another call
// has the key.
func (h *keysHeld) hold(k Key) (fingerprint [32]byte, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if fingerprint, taken := h.held[k.key]; taken {
		return fingerprint, false
	}
	h.held[k.key] = k.fingerprint
	return k.fingerprint, true
}

func (h *keysHeld) release(k Key) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.held, k.key)
}

// Once calls the handler, unless a call with the same Idempotency-Key was
// answered before or is in progress.
func (g *Gate) Once(c *Call, handle Handler) (*wire.Reply, error) {
	given, ok, err := wire.IdempotencyKey(c.Request.Header)
	if err != nil {
		return nil, err
	}
	if !ok {
		return handle(c)
	}
	k := Key{
		key:         sha256.Sum256([]byte(c.Caller.Account.Public + "\n" + c.Path + "\n" + given)),
		fingerprint: sha256.Sum256(c.Body.Canonical()),
	}
	if other, ok := g.keys.hold(k); !ok {
		if other != k.fingerprint {
			return nil, wire.ErrKeyReused
		}
		p := wire.Refuse(wire.KeyInFlight, "A request with this Idempotency-Key is being answered. Ask again for its answer.")
		p.RetryAfter = time.Second
		return nil, p
	}
	defer g.keys.release(k)

	stored, err := g.Replies.Reply(c.Request.Context(), k.key, c.Began)
	switch {
	case err != nil:
		return nil, err
	case stored == nil:
		c.Key = &k
		return handle(c)
	case stored.Fingerprint != k.fingerprint:
		return nil, wire.ErrKeyReused
	}
	again := &wire.Reply{Body: stored.Body, Replayed: true, Billed: c.Class != Result}
	again.Remaining, err = g.Roster.Balance(c.Request.Context(), c.Caller.Account)
	return again, err
}
