package world

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/leadetl/leadetl/internal/testkit/worldtest"
	"github.com/leadetl/leadetl/resolution/service/callback"
)

// patient is how often a receiver may refuse a callback: after some more it is given up.
const patient = 3

// post is a callback that arrived.
type post struct {
	number   int // of the call
	id       string
	of       string // resolution
	body     []byte
	accepted bool
}

var _ http.RoundTripper = (*history)(nil)

// RoundTrip posts a callback to its receiver. One that is out when its process dies may still
// arrive.
func (h *history) RoundTrip(r *http.Request) (*http.Response, error) {
	w := h.world
	if err := w.Alive(); err != nil {
		return nil, err
	}
	number, err := strconv.Atoi(r.URL.Path[1:])
	body, read := io.ReadAll(r.Body)
	p := post{number: number, id: r.Header.Get(callback.HeaderID), body: body}
	if err = errors.Join(err, read); err != nil {
		return nil, err
	}
	h.mu.Lock()
	signed := h.clock.Now()
	try := 1
	for _, before := range h.posts {
		if before.number == p.number {
			try++
		}
	}
	h.mu.Unlock()
	select {
	case <-time.After(time.Duration(1 + w.Draw("travels", p.number, try)%uint64(time.Second))):
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	if err := w.Alive(); err != nil && w.Below(2, "on its way", p.number, try) == 0 {
		return nil, err
	}
	return h.receive(r, p, try, signed)
}

// receive is the receiver of a callback.
func (h *history) receive(r *http.Request, p post, try int, signed time.Time) (*http.Response, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	answer := &http.Response{StatusCode: http.StatusNoContent, Header: http.Header{}, Body: http.NoBody}
	p.accepted = true
	if try <= patient && h.world.Chance(h.plan.ill, "ill", p.number, try) {
		answer.StatusCode = http.StatusServiceUnavailable
		answer.Header.Set("Retry-After", "400") // more than any jitter, which is not drawn from the seed
		p.accepted = h.world.Below(2, "its answer is lost", p.number, try) == 0
	}
	if id, err := callback.Verify(r.Header, p.body, []callback.Secret{h.secret}, signed); err != nil || id != p.id {
		h.note("a callback is not signed: " + p.id)
	}
	var said struct{ Resolution struct{ ID string } }
	if err := json.Unmarshal(p.body, &said); err != nil {
		h.note("a callback is not JSON: " + p.id)
	}
	p.of = said.Resolution.ID
	for _, before := range h.posts {
		if before.id == p.id && !bytes.Equal(before.body, p.body) {
			h.note("a callback changes its body: " + p.id)
		}
	}
	h.posts = append(h.posts, p)
	h.world.Note("post of call %d: %d", p.number, answer.StatusCode)
	if h.world.Alive() != nil {
		return nil, worldtest.ErrCrashed
	}
	return answer, nil
}
