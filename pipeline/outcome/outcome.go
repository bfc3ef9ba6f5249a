// Package outcome has the words for what became of a row: its outcome, the
// reasons for it, and the receipt of the answer it rests on. It imports nothing
// of ours, so that every part of the pipeline can use it.
package outcome

import "time"

// Outcome is what became of a row.
type Outcome uint8

// The outcomes, in the order of Words.
const (
	Matched Outcome = iota
	NoMatch
	Rejected
	Failed
	Suppressed
	Skipped
)

// Words are the outcomes as datasets write them.
var Words = []string{"matched", "no_match", "rejected", "failed", "suppressed", "skipped"}

func (o Outcome) String() string { return Words[o] }

// Receipt is what is kept of a service's answer beside its data. A row that
// was not asked about has the zero Receipt.
type Receipt struct {
	ResolutionID string    // as the service writes it, empty when it has none
	ResolvedAt   time.Time // when the answer was received
	Credits      int32     // cost of the key's answer
	Priced       bool      // Credits is known
}

// Answered reports whether an answer was received.
func (r Receipt) Answered() bool { return !r.ResolvedAt.IsZero() }

// Share returns share i of n of the cost. The first share includes the remainder.
func (r Receipt) Share(i, n int) Receipt {
	whole := r.Credits
	r.Credits = whole / int32(n)
	if i == 0 {
		r.Credits += whole % int32(n)
	}
	return r
}
