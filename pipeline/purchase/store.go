package purchase

import (
	"context"
	"iter"

	"github.com/leadetl/leadetl/pipeline/answers"
)

// Store keeps what was bought, and the calls that are open. It is safe from
// many goroutines. A method that changes something returns after the change is
// durable. *answers.Store is one, and documents each method.
type Store interface {
	// Look-ups, for the buyer and for plans.
	Lookup(ctx context.Context, scope answers.Scope, keys []string, f answers.Freshness, bodies bool, into []answers.Found) ([]answers.Found, error)
	LookupHashes(ctx context.Context, hashes []answers.Hash, f answers.Freshness, into []answers.Found) ([]answers.Found, error)
	Find(ctx context.Context, h answers.Hash) (answers.OpenCall, error)
	FindByResolution(ctx context.Context, service, id string) (answers.OpenCall, error)

	// The life of a call: an intent first, and then one of the others.
	Intent(ctx context.Context, q answers.Question, send answers.Send) (answers.Call, error)
	Fail(ctx context.Context, q answers.Question, f answers.Failure) error
	Park(ctx context.Context, q answers.Question, p answers.Parking) error
	Place(ctx context.Context, q answers.Question, a answers.Answer, placed func()) error
	Put(ctx context.Context, q answers.Question, a answers.Answer) error

	// What a run has spent, and what may have been billed.
	SumSpent(ctx context.Context, run string) (answers.Spending, error)
	Unknown(ctx context.Context) iter.Seq2[answers.OpenCall, error]
	Parked(ctx context.Context) iter.Seq2[answers.OpenCall, error]
}

var _ Store = (*answers.Store)(nil)
