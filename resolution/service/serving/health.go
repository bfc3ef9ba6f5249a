package serving

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leadetl/leadetl/resolution/service/wire"
)

// Health says whether a service can take requests. Its fields are required.
type Health struct {
	// Check tests whether the state can be read and written.
	Check func(ctx context.Context) error
	Now   func() time.Time

	draining atomic.Bool
	damaged  atomic.Bool
	doubted  atomic.Bool
	mu       sync.Mutex
	checked  time.Time
	err      error // of the last check
}

const (
	// checkEvery bounds how often the state is checked, because anyone may ask.
	checkEvery = 250 * time.Millisecond
	// checkTimeout is how long a check waits for its turn.
	checkTimeout = 2 * time.Second
)

// Draining reports whether later calls should go to another instance.
func (h *Health) Draining() bool { return h.draining.Load() }

// Doubt makes the next Ready check the state, however short ago it did: a request has failed.
func (h *Health) Doubt() { h.doubted.Store(true) }

// SetDamaged notes whether damage was found in the state.
func (h *Health) SetDamaged(damaged bool) { h.damaged.Store(damaged) }

var errDamaged = wire.Refuse(wire.Unavailable, "The state is damaged. Stop the service and put a backup back with leadetl admin restore.")

// Ready returns why the service cannot take requests, nil when it can.
func (h *Health) Ready(ctx context.Context) error {
	if h.Draining() {
		return wire.Refuse(wire.Unavailable, "The service is stopping.")
	}
	if h.damaged.Load() {
		return errDamaged
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.Now()
	if age := now.Sub(h.checked); !h.doubted.Swap(false) && age >= 0 && age < checkEvery {
		return h.err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), checkTimeout)
	defer cancel()
	err := h.Check(ctx)
	switch {
	case err != nil && h.damaged.Load():
		return errDamaged
	case err != nil:
		err = &wire.Problem{Kind: wire.Unavailable, Detail: "The state cannot be read and written.", RetryAfter: checkEvery, Cause: err}
	}
	h.checked, h.err = now, err
	return err
}
