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

// ErrNotAsked says that a callback answers nothing that was asked.
var ErrNotAsked = errors.New("the callback answers nothing that was asked")

const (
	// maxCallback bounds a callback's body: it is held in memory before
	// anybody knows who sent it.
	maxCallback = 1 << 20
	// rememberedCallbacks is how many of the last callbacks are known again.
	rememberedCallbacks = 4096
	// storeTimeout is how long an answer may take to be stored: less than the
	// 15 s for which services wait.
	storeTimeout = 10 * time.Second
)

// Receiver takes a service's callbacks, on any path. What is signed is handed
// on, and has its 204 once it is kept: a service that hears anything else sends
// it again. What is not signed, or not well, proves nothing; it is refused, and
// at most a hint that there is something to ask for.
//
// It is safe from many goroutines. Limits of connections and times are its
// server's.
type Receiver struct {
	options ReceiverOptions
	stored  memory
	told    rate.Sometimes // anybody can post, and need not fill the log
}

// ReceiverOptions say what a Receiver does with callbacks. Hint alone may be
// nil.
type ReceiverOptions struct {
	// Verify checks the signature over the raw body and returns the webhook's
	// id, which is the same when it is sent again.
	Verify func(h http.Header, body []byte) (id string, err error)
	// Deliver stores a callback before it returns. Its error is ErrNotAsked, a
	// resolution.ErrInvalid for what will never be understood, or any other
	// for what may work the next time. It is called from many goroutines.
	Deliver func(ctx context.Context, d Delivery, body []byte) error
	// Hint hears of the resolution that an unproven callback names.
	Hint func(ctx context.Context, id string)
	// Log tells what came of callbacks, never what they hold.
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
			w.WriteHeader(http.StatusBadRequest) // nobody may be there to read it
		}
		return
	}
	w.WriteHeader(r.take(q.Context(), q.Header, body))
}

// take is what becomes of a callback, as the status it is answered with.
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
	if r.stored.has(id) {
		return http.StatusNoContent
	}
	if unread != nil {
		r.options.Log.Warn("a callback cannot be understood", "webhook", id)
		return http.StatusUnprocessableEntity
	}
	// Whoever gives up on its answer has sent it all the same.
	ctx, done := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer done()
	switch err = r.options.Deliver(ctx, d, body); {
	case err == nil:
		r.stored.add(id)
		r.options.Log.Debug("a callback was stored", "webhook", id)
		return http.StatusNoContent
	case errors.Is(err, ErrNotAsked):
		r.options.Log.Warn("a callback answers nothing that was asked", "webhook", id)
		return http.StatusNotFound
	case errors.Is(err, resolution.ErrInvalid):
		r.options.Log.Warn("a callback cannot be understood", "webhook", id)
		return http.StatusUnprocessableEntity
	}
	r.options.Log.Error("a callback could not be stored; the service is to send it again", "webhook", id, "error", err)
	return http.StatusServiceUnavailable
}

// memory knows the last ids it was given. The zero memory is empty and ready.
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

func (m *memory) add(id string) {
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
