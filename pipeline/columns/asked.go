package columns

import (
	"github.com/leadetl/leadetl/pipeline/outcome"
)

// Asked is an answer of one of several resolvers about the key of a row, or its open call.
type Asked struct {
	Row      int // the first with the key
	Step     int // of the resolver in the order
	Resolver string
	Outcome  outcome.Outcome
	Reason   string          // empty on a match
	Receipt  outcome.Receipt // its resolution is not kept
	Request  string          // the service's id of the call; empty if it sent none
	// Open says that there is no answer: the call is open, and costs MaxCredits at most.
	Open       bool
	MaxCredits int64
	PaidHere   bool // the run pays
}
