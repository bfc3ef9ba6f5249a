package outcome

import (
	"iter"
	"strings"
)

// The reasons of rows without an answer.
const (
	ReasonUnknownCall = "unknown_call"        // the call may have been billed, and its answer never came
	ReasonNoCallback  = "no_callback"         // the answer was to come by a callback, and did not
	ReasonUnavailable = "unavailable"         // the service kept failing on this question, and did not bill it
	ReasonUnfinished  = "unfinished"          // a page of a search was not finished in time; the next run asks for it again, free of charge
	ReasonRefused     = "refused"             // the service refuses this question
	ReasonNotStored   = "not_stored"          // offline, and nothing is stored
	ReasonBudget      = "budget"              // the budget of a resolver among several is used up
	ReasonNoCredits   = "no_credits"          // so are the credits of its account
	ReasonNotAskable  = "not_askable"         // a provider has no request for a key of this form
	ReasonMinMatch    = "min_match"           // a resolver among several has matched too few of its first keys to be asked about others
	ReasonPerKey      = "max_credits_per_key" // a resolver among several might take what the key costs above this
	ReasonNotFound    = "not_found"           // a search without leads, as the embedded engine says it
)

// The reasons of suppressed rows begin with one of these. The kind of the
// listed identifier follows.
const (
	PrefixListed         = "suppressed:"        // the row's own identifier is listed; no service was asked about it
	PrefixListedInAnswer = "suppressed_answer:" // the answer holds an identifier that is listed
)

// AskedLater yields the names of the resolvers that a row went on without, and that may answer when
// the job is run again; unknown says that the user has to want that. skipped has all that it went on
// without: NAME:reason;NAME:reason
func AskedLater(skipped string) iter.Seq2[string, bool] {
	return func(yield func(name string, unknown bool) bool) {
		for one := range strings.SplitSeq(skipped, ";") {
			name, reason, noted := strings.Cut(one, ":")
			if noted && reason != ReasonMinMatch && reason != ReasonPerKey && !yield(name, reason == ReasonUnknownCall) {
				return
			}
		}
	}
}
