package answers

import "time"

// Freshness says how old a stored answer may be. The service is asked again if
// the answer is older.
type Freshness struct {
	// Now is the time of the question.
	Now time.Time
	// Match and NoMatch are the maximum ages; 0 means any age.
	Match, NoMatch time.Duration
}

// Of reports whether an answer is fresh. A refusal never is.
func (f Freshness) Of(o Outcome, received time.Time) bool {
	limit := f.Match
	switch o {
	case Matched:
	case NoMatch:
		limit = f.NoMatch
	default:
		return false
	}
	return limit == 0 || f.Now.Sub(received) <= limit
}
