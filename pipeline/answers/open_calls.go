package answers

import (
	"context"
	"encoding/binary"
	"errors"
	"iter"
	"time"

	"github.com/google/uuid"

	"github.com/leadetl/leadetl/resolution"
)

// OpenCall is a call without an answer.
type OpenCall struct {
	Hash Hash
	Question
	// Address is that of resolution.Call. On disk it is behind the key.
	Address string
	// Run made the last attempt.
	Run            string
	IdempotencyKey string
	Attempts       int
	// Sent is when the last attempt's intent was stored.
	Sent  time.Time
	State State
	// Reason and Status say how the last attempt that may have been billed
	// ended. Both are zero if the process died during that attempt.
	Reason string
	Status int
	// MaybeBilled means that an attempt before the last one may have been
	// billed or, for an unknown call, the last one.
	MaybeBilled bool
	// Resolution and Request are the service's identifiers, empty if it sent
	// none.
	Resolution, Request string
	// Deadline is how long to wait for the answer to a parked call. Of another call it
	// is when the service forgets its idempotency key; zero if the service does not
	// say.
	Deadline time.Time
	// Body is the kept body. Only Contents, Store.OpenCalls and Snapshots have it.
	Body KeptBody
}

// Asked returns the key and the address as they are on disk.
func (c *OpenCall) Asked() string { return resolution.WithAddress(c.Key, c.Address) }

// SetAsked undoes Asked.
func (c *OpenCall) SetAsked(asked string) { c.Key, c.Address = resolution.CutAddress(asked) }

// abandoned is the call after its process has died.
func (c *OpenCall) abandoned() *OpenCall {
	if c.State != UnderWay {
		return c
	}
	now := *c
	now.State, now.MaybeBilled = Unknown, true
	return &now
}

// SentKey is the idempotency key that was sent; "" to a provider, which is sent none.
func (c *OpenCall) SentKey() string {
	if c.IsProvider() {
		return ""
	}
	return c.IdempotencyKey
}

// FirstSent returns when the call was first sent under its idempotency key, at
// the earliest; zero if that is not known. The key has the time of its intent.
func (c *OpenCall) FirstSent() time.Time {
	key, err := uuid.Parse(c.IdempotencyKey)
	if err != nil || key.Version() != 7 {
		return time.Time{}
	}
	made := time.Unix(key.Time().UnixTime()).UTC()
	if c.Sent.Before(made) {
		return c.Sent
	}
	return made
}

// forgottenAfter is when a service that remembers idempotency keys so long forgets
// that of the call.
func (c *OpenCall) forgottenAfter(window time.Duration) time.Time {
	return fromMillis(toMillis(c.FirstSent().Add(window)))
}

// Rekeyed reports whether an earlier attempt had another idempotency key, or may have had one.
func (c *OpenCall) Rekeyed() bool {
	key, err := uuid.Parse(c.IdempotencyKey)
	return err != nil || key.Version() != 7 || key[6]&0xf != 0 || key[7] != 0
}

// newIdempotencyKey makes a UUIDv7 with the time of an intent, whatever the clock
// said when the process made another one. The twelve bits that a maker of keys may use say
// whether the call had another one before.
func newIdempotencyKey(at time.Time, rekeyed bool) (string, error) {
	key, err := uuid.NewV7()
	if err != nil {
		return "", err
	}
	ms := binary.BigEndian.AppendUint64(nil, uint64(at.UnixMilli()))
	copy(key[:], ms[2:])
	key[6], key[7] = key[6]&0xf0, byte(boolToInt(rekeyed))
	return key.String(), nil
}

// Unknown lists the calls that may have been billed and have no answer: they
// failed that way, or were under way when an earlier process died. They are
// ordered by their hashes. The store may be used at the same time.
func (m *memtable) Unknown(ctx context.Context) iter.Seq2[OpenCall, error] {
	return m.openCalls(ctx, Unknown)
}

// Parked lists the calls whose answers come later, ordered by their hashes.
func (m *memtable) Parked(ctx context.Context) iter.Seq2[OpenCall, error] {
	return m.openCalls(ctx, Parked)
}

func (m *memtable) openCalls(ctx context.Context, state State) iter.Seq2[OpenCall, error] {
	return func(yield func(OpenCall, error) bool) {
		for _, c := range m.callsOf(inState(state)) {
			if err := ctx.Err(); err != nil {
				yield(OpenCall{}, err)
				return
			}
			if !yield(c, nil) {
				return
			}
		}
	}
}

// FindByResolution returns the open call to a service that will be answered
// under the service's identifier id. It returns ErrNoCall if no call waits for
// that answer, for example because it is already stored.
func (m *memtable) FindByResolution(ctx context.Context, service, id string) (OpenCall, error) {
	m.mu.RLock()
	h, found := m.parked[parkedID{service, id}]
	m.mu.RUnlock()
	if !found {
		return OpenCall{}, ErrNoCall
	}
	return m.Find(ctx, h)
}

// Find returns the open call of the question with hash h, or ErrNoCall.
func (m *memtable) Find(_ context.Context, h Hash) (OpenCall, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if c := m.calls[h]; c != nil {
		return *c, nil
	}
	return OpenCall{}, ErrNoCall
}

// Knows reports whether any match or miss of a scope is stored, and whether a match is.
func (s *recent) Knows(_ context.Context, of Scope) (known, matched bool, err error) {
	count := func(o Outcome) {
		known, matched = known || o != Refused, matched || o == Matched
	}
	set, err := s.acquire()
	if err != nil {
		return false, false, err
	}
	for _, f := range set.files {
		for _, t := range f.Scopes {
			for o := range t.Outcomes {
				if t.Scope == of {
					count(o)
				}
			}
		}
	}
	s.memtable.mu.RLock()
	for _, g := range []*generation{s.memtable.previous, s.memtable.current} {
		if g != nil {
			for _, i := range g.answers {
				if i.Scope == of {
					count(i.Outcome)
				}
			}
		}
	}
	s.memtable.mu.RUnlock()
	return known, matched, set.release()
}

// Scopes lists the scopes of all questions, in order. The same key in two scopes is two
// questions.
func (s *Store) Scopes(ctx context.Context) ([]Scope, error) {
	c, err := s.Contents()
	if err != nil {
		return nil, err
	}
	scopes, err := c.Scopes(ctx)
	return scopes, errors.Join(err, c.Close())
}
