package state

import (
	"time"

	"github.com/google/uuid"
)

// The states of a delivery.
const (
	Pending   = "pending"   // not delivered yet
	Delivered = "delivered" // the receiver has it
	Dead      = "dead"      // given up
)

// Callback is a body to be posted to a receiver.
type Callback struct {
	WebhookID    string // msg_…, the same for all attempts; without a full stop
	Organization int64  // whose secrets sign it
	Resolution   uuid.UUID
	Receiver     string // host:port
	URL          string
	Body         []byte    // JSON; must not be changed
	Due          time.Time // when the next attempt is to be made
	GivenUp      bool      // dead from the start, because a test key asked for that
}

// Delivery is a callback and its progress.
type Delivery struct {
	ID int64

	// As in its Callback.
	WebhookID     string
	Organization  int64
	Resolution    uuid.UUID
	Receiver, URL string
	Body          []byte // nil in lists
	Due           time.Time

	Created  time.Time
	State    string    // Pending, Delivered or Dead
	Attempts int       // made so far
	Status   int       // of the receiver's last answer; 0 before one
	Failure  string    // error code of the last attempt; empty if it did not fail
	Finished time.Time // zero while it is pending
}

// Attempt is how one attempt at a delivery ended.
type Attempt struct {
	ID      int64
	State   string    // Pending for another attempt at Due, or how it ended
	Due     time.Time // of the next attempt
	Status  int       // of the receiver's answer; 0 without one
	Failure string    // a code, never text from the receiver; "" when delivered
	At      time.Time
	Took    time.Duration // not stored
}

// Lane is an organization's deliveries to one receiver.
type Lane struct {
	Organization int64
	Receiver     string
}

// Scope selects deliveries that are due.
type Scope struct {
	Only []Lane  // if not nil, only these lanes
	Busy []Lane  // not these lanes
	Full []int64 // not these organizations
	Each int     // at most this many of one lane, so that a long lane does not hide others
	// Begun are deliveries to leave out, because an attempt is in progress or not
	// settled yet.
	Begun map[int64]struct{}
	// Bytes is after how many bytes of bodies to stop; 0 is no limit.
	Bytes int
}
