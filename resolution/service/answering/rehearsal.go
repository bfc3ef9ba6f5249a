package answering

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/leadetl/leadetl/resolution/service/admission"
	"github.com/leadetl/leadetl/resolution/service/state"
	"github.com/leadetl/leadetl/resolution/service/wire"
)

// With a test key, a caller can rehearse what happens rarely: an identifier or a
// keyword that names an outcome gets it, before anything is looked up.

// The outcomes besides the codes of errors.
const (
	slow         = "slow"          // the answer comes after slowness
	deadCallback = "dead_callback" // the callback is given up at once
	failedSearch = "failed"        // the search ends with an error
)

const slowness = 3 * time.Second

// rehearsed are the errors that a caller cannot cause by its request.
var rehearsed = []*wire.Kind{
	wire.InsufficientCredit, wire.CallbackNotAllowed, wire.InvalidCredentials, wire.ExpiredCredentials, wire.Forbidden, wire.RequestTimeout,
	wire.KeyInFlight, wire.OperationRetired, wire.RateLimited, wire.TooManyActive, wire.InternalError, wire.Unavailable,
}

// byAddress are the outcomes of IP addresses, which cannot hold a name.
var byAddress = map[string]string{
	"2001:db8::400": wire.InsufficientCredit.Code, "2001:db8::401": wire.InvalidCredentials.Code, "2001:db8::403": wire.Forbidden.Code,
	"2001:db8::408": wire.RequestTimeout.Code, "2001:db8::409": wire.KeyInFlight.Code, "2001:db8::410": wire.OperationRetired.Code,
	"2001:db8::429": wire.RateLimited.Code, "2001:db8::500": wire.InternalError.Code, "2001:db8::503": wire.Unavailable.Code,
	"2001:db8::510": slow, "2001:db8::dead": deadCallback,
}

// rehearsal returns the outcome that a call with a test key asks for, "" without one.
func rehearsal(c *admission.Call, identifiers ...string) string {
	if !c.Caller.Account.IsTest() {
		return ""
	}
	for _, of := range identifiers {
		of = strings.ToLower(of)
		if name, is := strings.CutSuffix(of, "@force.test"); is {
			return name
		}
		if _, name, is := strings.Cut(of, "/in/force-"); is {
			return strings.ReplaceAll(name, "-", "_")
		}
		if name, is := strings.CutPrefix(of, "force "); is {
			return name
		}
		if name := byAddress[of]; name != "" {
			return name
		}
	}
	return ""
}

// rehearsalOf returns the outcome that the caller of a search asked for.
func rehearsalOf(job *state.Job) string {
	var todo work
	_ = json.Unmarshal(job.Work, &todo) // search says what is wrong with it
	return todo.Rehearsal
}

// rehearse waits, or returns the error, as an outcome says.
func (d *Desk) rehearse(ctx context.Context, outcome string, price int64) error {
	if outcome == slow {
		select {
		case <-time.After(slowness):
		case <-ctx.Done():
		}
		return ctx.Err()
	}
	for _, kind := range rehearsed {
		if kind.Code != outcome {
			continue
		}
		p := wire.Refuse(kind, "A test key asked for this error.")
		switch {
		case kind == wire.InsufficientCredit:
			p.Required = max(price, 1)
		case kind == wire.InvalidCredentials:
			p.Challenge = admission.ChallengeInvalid
		case kind == wire.ExpiredCredentials:
			p.Challenge = admission.ChallengeExpired
		case kind.Retryable && kind != wire.InternalError && kind != wire.RequestTimeout:
			p.RetryAfter = time.Second
		}
		return p
	}
	return nil
}
