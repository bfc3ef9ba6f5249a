package service

import (
	"crypto/sha256"
	"net/http"
	"strings"
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

// keysHeld are the keys of calls in progress. A finished call has its reply in
// the state before its key is released, so a key is always in one of the two.
type keysHeld struct {
	mu   sync.Mutex
	held map[[32]byte][32]byte // key: fingerprint
}

// hold returns false when another call has the key, with its fingerprint.
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
	given, ok, err := idempotencyKey(c.request.Header)
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
			return nil, errReused
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
		return nil, errReused
	}
	again := &wire.Reply{Body: stored.Body, Replayed: true, Billed: c.route.class != result}
	again.Remaining, err = s.balance(c.request.Context(), c.account)
	return again, err
}

var errReused = wire.Refuse(wire.KeyReused, "This Idempotency-Key was used with another body. Use a new key for a new request.")

// idempotencyKey reads the header Idempotency-Key: 1 to 255 printable ASCII
// characters, bare or as a string of RFC 8941. Both spellings mean the same key.
func idempotencyKey(h http.Header) (key string, given bool, err error) {
	values := h["Idempotency-Key"]
	if len(values) == 0 {
		return "", false, nil
	}
	key, ok := strings.Trim(values[0], " \t"), len(values) == 1
	if ok && strings.HasPrefix(key, `"`) {
		key, ok = unquote(key)
	}
	if !ok || key == "" || len(key) > 255 || strings.ContainsFunc(key, func(r rune) bool { return r < ' ' || r > '~' }) {
		return "", false, wire.Refuse(wire.ValidationError, "The header Idempotency-Key has to be 1 to 255 printable ASCII characters, bare or in quotes.")
	}
	return key, true, nil
}

// unquote reads a string of RFC 8941, 3.3.3, without parameters.
func unquote(s string) (string, bool) {
	if len(s) < 2 || s[len(s)-1] != '"' {
		return "", false
	}
	var b strings.Builder
	for i := 1; i < len(s)-1; i++ {
		if s[i] == '"' {
			return "", false
		}
		if s[i] == '\\' {
			if i++; i == len(s)-1 || s[i] != '"' && s[i] != '\\' {
				return "", false
			}
		}
		b.WriteByte(s[i])
	}
	return b.String(), true
}
