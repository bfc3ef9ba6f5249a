package sqlite

import (
	"github.com/google/uuid"

	"github.com/leadetl/leadetl/internal/groupcommit"
)

// tx is the transaction of one group.
//
// Balances, ledger entries, replies, callbacks and lanes are collected and
// written together when the group ends. Inside a group, use account, enter,
// mayStore, store, outbox.post and outbox.updateLane for them. A query of those tables does
// not see the changes of the group.
type tx struct {
	sql *groupcommit.Tx

	accounts     map[int64]*account
	reservations map[uuid.UUID]int64 // open reservations, of those read
	spenders     map[int64]*spender  // by key
	ledger       *groupcommit.Batch
	usage        map[usageRow]usageSum
	keys         map[[32]byte]bool // of the replies below
	replies      *groupcommit.Batch
	outbox       outboxChanges
}

func newTx(t *groupcommit.Tx) *tx {
	return &tx{
		sql:          t,
		accounts:     map[int64]*account{},
		reservations: map[uuid.UUID]int64{},
		spenders:     map[int64]*spender{},
		usage:        map[usageRow]usageSum{},
		ledger:       groupcommit.NewBatch("INSERT INTO ledger(at, organization, kind, credits, available, reserved, resolution, operation, note, key) VALUES ", 10, ""),
		keys:         map[[32]byte]bool{},
		replies:      groupcommit.NewBatch("INSERT OR REPLACE INTO replies(at, key, fingerprint, status, body, organization, resolution, operation) VALUES ", 8, ""),
		outbox:       newOutboxChanges(t),
	}
}

// Reset starts a group.
func (t *tx) Reset() {
	clear(t.accounts)
	clear(t.reservations)
	clear(t.spenders)
	clear(t.usage)
	clear(t.keys)
	t.ledger.Reset()
	t.replies.Reset()
	t.outbox.reset()
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
	if err := t.outbox.write(); err != nil {
		return err
	}
	if err := t.writeSpenders(); err != nil {
		return err
	}
	return t.writeAccounts()
}
