// Package state has the types of everything a service must not forget:
// organizations and their credentials, the credit ledger, stored replies,
// keyword jobs and callbacks. Stores of these are packages beside it.
package state

import "errors"

// The errors of a store, besides resolution.ErrUnavailable,
// resolution.ErrInvalid and *InsufficientError. A method that returns one
// changed nothing.
var (
	ErrNotFound      = errors.New("not found")
	ErrExists        = errors.New("exists already")
	ErrReplyStored   = errors.New("the idempotency key has a stored reply") // a mistake of the caller, who holds the key while it answers
	ErrTooManyActive = errors.New("too many unfinished jobs")
	ErrFinished      = errors.New("already finished")
	ErrLeaseLost     = errors.New("another attempt has taken over")
	ErrExpired       = errors.New("result no longer kept")
	ErrGone          = errors.New("body no longer kept")
	// ErrDamaged is not temporary: the database is damaged, or not one of SQLite.
	ErrDamaged = errors.New("the state is damaged; stop the service and put a backup back with leadetl admin restore")
)
