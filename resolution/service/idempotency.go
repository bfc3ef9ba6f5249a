package service

import (
	"crypto/sha256"
	"net/http"
	"sync"
	"time"

	"github.com/leadetl/leadetl/resolution/service/state"
	"github.com/leadetl/leadetl/resolution/service/wire"
)

// heldKey is an Idempotency-Key that a call holds until it is answered.
type heldKey struct {
	key         [32]byte // hash of organization, path and the key
	fingerprint [32]byte // hash of the body's meaning
}

// reply is an answer in the form in which it is stored.
func (k *heldKey) reply(body []byte) *state.Reply {
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
func (h *keysHeld) hold(k heldKey) (fingerprint [32]byte, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if fingerprint, taken := h.held[k.key]; taken {
		return fingerprint, false
	}
	h.held[k.key] = k.fingerprint
	return k.fingerprint, true
}

func (h *keysHeld) release(k heldKey) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.held, k.key)
}

// once calls the handler, unless a call with the same Idempotency-Key was
// answered before or is in progress.
func (s *Service) once(c *call) (*wire.Reply, error) {
	given, ok, err := wire.IdempotencyKey(c.request.Header)
	if err != nil {
		return nil, err
	}
	if !ok {
		return c.route.handle(c)
	}
	k := heldKey{
		key:         sha256.Sum256([]byte(c.account.public + "\n" + c.path + "\n" + given)),
		fingerprint: sha256.Sum256(c.object.Canonical()),
	}
	if other, ok := s.keys.hold(k); !ok {
		if other != k.fingerprint {
			return nil, wire.ErrKeyReused
		}
		p := wire.Refuse(wire.KeyInFlight, "A request with this Idempotency-Key is being answered. Ask again for its answer.")
		p.RetryAfter = time.Second
		return nil, p
	}
	defer s.keys.release(k)

	stored, err := s.state.Reply(c.request.Context(), k.key, c.began)
	switch {
	case err != nil:
		return nil, err
	case stored == nil:
		c.key = &k
		return c.route.handle(c)
	case stored.Fingerprint != k.fingerprint:
		return nil, wire.ErrKeyReused
	}
	again := &wire.Reply{Body: stored.Body, Replayed: true, Billed: c.route.class != result}
	again.Remaining, err = s.balance(c.request.Context(), c.account)
	return again, err
}
