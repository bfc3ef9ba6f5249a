package state

import (
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/leadetl/leadetl/resolution"
)

// Balance is the credits of an organization. Reserved credits belong to
// unfinished jobs and are not available.
type Balance struct {
	Available, Reserved int64
}

// InsufficientError says that an organization has fewer available credits, or its key
// may spend fewer, than a change takes. Nothing was changed.
type InsufficientError struct {
	Required, Balance int64
	OfKey             bool // Balance is what the key's spending limit leaves
}

func (e *InsufficientError) Error() string {
	return fmt.Sprintf("%d credits required, %d available", e.Required, e.Balance)
}

// Is makes it a resolution.ErrDenied.
func (e *InsufficientError) Is(target error) bool { return target == resolution.ErrDenied }

// Kind is the kind of a ledger entry.
type Kind string

// The kinds of entries. The ledger keeps, at every moment and for every
// organization,
//
//	available = grants + adjustments − captures − open reservations ≥ 0
//	reserved  = open reservations ≥ 0
const (
	Grant   Kind = "grant"   // available + credits
	Adjust  Kind = "adjust"  // available + credits, which may be negative
	Reserve Kind = "reserve" // available − credits, reserved + credits
	Capture Kind = "capture" // available − credits; of a reservation: reserved − credits
	Release Kind = "release" // reserved − credits, available + credits
)

// Entry is one line of the ledger.
type Entry struct {
	Seq        int64
	At         time.Time
	Kind       Kind
	Credits    int64
	Available  int64                // what the entry adds to the available credits
	Reserved   int64                // what it adds to the reserved credits
	Resolution uuid.UUID            // uuid.Nil when it belongs to none
	Operation  resolution.Operation // "" when it belongs to none
	Note       string
	Key        string // public id of the key that called, "" when none is known
	KeyLabel   string
}

// Entries selects entries of a ledger, the newest first. Zero fields select all.
type Entries struct {
	Kind      Kind
	Operation resolution.Operation
	Single    bool  // only charges of single-record calls
	Before    int64 // only those with a lower Seq
}

// Usage is what one key of an organization used of one operation on one day.
type Usage struct {
	Organization int64 // set in the usage of all

	Day       time.Time // midnight UTC
	Operation string
	Key       string // public id, "" when none is known
	KeyLabel  string

	Requests int64 // not exact: the last seconds before a kill are missing
	Limited  int64 // of these, refused with 429
	Charges  int64 // those that cost credits
	Credits  int64 // what they cost, as in the ledger
}

// Requests counts the requests of one organization, key and operation on a day.
type Requests struct {
	Organization, Key int64 // Key is 0 when none is known
	Day               int64 // since 1970 UTC
	Operation         string
	Total, Limited    int64
}

// Charge is what a finished call costs, and what is stored with it.
type Charge struct {
	Organization int64
	Key          int64     // API key of the call, 0 for none
	Resolution   uuid.UUID // of a single-record call
	Operation    resolution.Operation
	Credits      int64     // 0 for a call that is not billed
	Reply        *Reply    // to store, or nil
	Callback     *Callback // to post, or nil
	At           time.Time
}

// CreditChange grants credits, or takes them back when Credits is negative.
type CreditChange struct {
	Organization int64
	Credits      int64 // not 0
	Note         string
	At           time.Time
	Reply        *Reply               // to store, without its body; or nil
	Body         func(Balance) []byte // makes the body of Reply from the new balance; must have no side effects
}

// Reply is the stored answer to a call with an Idempotency-Key.
type Reply struct {
	Key         [32]byte // hash of organization, path and Idempotency-Key
	Fingerprint [32]byte // hash of the request's body
	Status      int
	Body        []byte
}
