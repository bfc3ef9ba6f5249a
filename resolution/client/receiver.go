package client

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/leadetl/leadetl/resolution"
)

const (
	// maxCallback bounds the body of a callback, in bytes: it is held in memory
	// before its signature is checked.
	maxCallback = 1 << 20
	// rememberedCallbacks is how many of the last callbacks are recognized when they
	// come again.
	rememberedCallbacks = 4096
	// storeTimeout is how long storing an answer may take: less than the 15 s that
	// services wait.
	storeTimeout = 10 * time.Second
)

// Receiver takes the callbacks of a service, on any path. It delivers a signed
// callback and answers 204 once it is stored; after any other status the service
// sends it again. It refuses a callback without a valid signature, and uses it at
// most as a hint to ask the service for the result.
//
// It is safe for concurrent use. The server limits connections and times.
type Receiver struct {
	options ReceiverOptions
	stored  memory
	told    rate.Sometimes // limits log lines: anybody can post
}

// ReceiverOptions say what a Receiver does with callbacks. Only Hint may be nil.
type ReceiverOptions struct {
	// Verify checks the signature over the raw body and returns the webhook's
	// id, which is the same when it is sent again.
	Verify func(h http.Header, body []byte) (id string, err error)
	// Deliver stores a callback before it returns. Its error is
	// resolution.ErrNotAsked, resolution.ErrInvalid for a callback that can never be understood, or any
	// other error when another attempt may succeed. It is called concurrently.
	Deliver func(ctx context.Context, d resolution.Delivery) error
	// Hint receives the id of the resolution that an unverified callback names.
	Hint func(ctx context.Context, id string)
	// Log gets what happened to callbacks, never their contents.
	Log *slog.Logger
}

// NewReceiver makes a Receiver.
func NewReceiver(o ReceiverOptions) *Receiver {
	return &Receiver{options: o, told: rate.Sometimes{Interval: 10 * time.Second}}
}

// ServeHTTP takes one callback.
func (r *Receiver) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	if q.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, q.Body, maxCallback))
	if err != nil {
		var large *http.MaxBytesError
		if errors.As(err, &large) {
			r.told.Do(func() { r.options.Log.Warn("a callback was refused: it is too large", "most_bytes", maxCallback) })
			w.WriteHeader(http.StatusRequestEntityTooLarge)
		} else {
			w.WriteHeader(http.StatusBadRequest) // the caller may be gone
		}
		return
	}
	w.WriteHeader(r.take(q.Context(), q.Header, body))
}

// take handles a callback and returns the status to answer.
func (r *Receiver) take(ctx context.Context, h http.Header, body []byte) int {
	d, unread := ReadDelivery(h, body)
	id, err := r.options.Verify(h, body)
	if err != nil {
		r.told.Do(func() { r.options.Log.Warn("a callback was refused", "why", err) })
		if unread == nil && d.ID != "" && r.options.Hint != nil {
			r.options.Hint(ctx, d.ID)
		}
		return http.StatusUnauthorized
	}
	known := id + " " + d.ClientRef // ids of two services may be equal
	if r.stored.has(known) {
		return http.StatusNoContent
	}
	if unread != nil {
		r.options.Log.Warn("a callback cannot be understood", "webhook", id)
		return http.StatusUnprocessableEntity
	}
	// The callback is stored even if its sender no longer waits.
	ctx, done := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer done()
	switch err = r.options.Deliver(ctx, d); {
	case err == nil:
		r.stored.remember(known)
		r.options.Log.Debug("a callback was stored", "webhook", id)
		return http.StatusNoContent
	case errors.Is(err, resolution.ErrNotAsked):
		r.options.Log.Warn("a callback answers nothing that was asked", "webhook", id)
		return http.StatusNotFound
	case errors.Is(err, resolution.ErrInvalid):
		r.options.Log.Warn("a callback cannot be understood", "webhook", id, "why", err)
		return http.StatusUnprocessableEntity
	}
	r.options.Log.Error("a callback could not be stored; the service is to send it again", "webhook", id, "error", err)
	return http.StatusServiceUnavailable
}

// memory holds the last ids added to it. The zero value is empty and ready.
type memory struct {
	mu    sync.Mutex
	known map[string]bool
	order [rememberedCallbacks]string // a ring
	next  int
}

func (m *memory) has(id string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.known[id]
}

func (m *memory) remember(id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.known == nil {
		m.known = make(map[string]bool, len(m.order))
	}
	if m.known[id] {
		return
	}
	delete(m.known, m.order[m.next])
	m.known[id], m.order[m.next] = true, id
	m.next = (m.next + 1) % len(m.order)
}
