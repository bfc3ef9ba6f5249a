package sqlite

import (
	"github.com/google/uuid"

	"github.com/leadetl/leadetl/internal/groupcommit"
	"github.com/leadetl/leadetl/resolution/service/state"
)

// tx is the transaction of one group.
//
// Balances, ledger entries, replies, callbacks and lanes are collected and
// written together when the group ends. Inside a group, use account, enter,
// mayStore, store, post and updateLane for them. A query of those tables does
// not see the changes of the group.
type tx struct {
	sql *groupcommit.Tx

	accounts       map[int64]*account
	reservations   map[uuid.UUID]int64 // open reservations, of those read
	ledger         *groupcommit.Batch
	usage          map[usageRow]usageSum
	keys           map[[32]byte]bool // of the replies below
	replies        *groupcommit.Batch
	outbox, bodies *groupcommit.Batch   // of callbacks
	webhooks       map[string]bool      // of outbox
	lastDelivery   int64                // the highest id; 0 while it is not known
	undelivered    map[string]int64     // by how much the number of deliveries in a state changed
	posted         map[state.Lane]int64 // lanes that got deliveries, and when the first is due
	changed        map[state.Lane]bool  // lanes with a delivery that changed
}

func newTx(t *groupcommit.Tx) *tx {
	return &tx{
		sql:          t,
		accounts:     map[int64]*account{},
		reservations: map[uuid.UUID]int64{},
		usage:        map[usageRow]usageSum{},
		ledger:       groupcommit.NewBatch("INSERT INTO ledger(at, organization, kind, credits, available, reserved, resolution, operation, note, key) VALUES ", 10, ""),
		keys:         map[[32]byte]bool{},
		replies:      groupcommit.NewBatch("INSERT OR REPLACE INTO replies(at, key, fingerprint, status, body) VALUES ", 5, ""),
		outbox:       groupcommit.NewBatch("INSERT INTO outbox(id, webhook, organization, resolution, receiver, url, created, state, due) VALUES ", 9, ""),
		webhooks:     map[string]bool{},
		undelivered:  map[string]int64{},
		bodies:       groupcommit.NewBatch("INSERT INTO bodies(delivery, body) VALUES ", 2, ""),
		posted:       map[state.Lane]int64{},
		changed:      map[state.Lane]bool{},
	}
}

// Reset starts a group.
func (t *tx) Reset() {
	clear(t.accounts)
	clear(t.reservations)
	clear(t.usage)
	clear(t.keys)
	t.ledger.Reset()
	t.replies.Reset()
	t.bodies.Reset()
	t.outbox.Reset()
	t.lastDelivery = 0
	clear(t.webhooks)
	clear(t.undelivered)
	clear(t.posted)
	clear(t.changed)
}

// Flush writes what the group collected.
func (t *tx) Flush() error {
	if err := t.replies.Flush(t.sql); err != nil {
		return err
	}
	if err := t.ledger.Flush(t.sql); err != nil {
		return err
	}
	if err := t.writeUsage(); err != nil {
		return err
	}
	if err := t.writeOutbox(); err != nil {
		return err
	}
	return t.writeAccounts()
}
