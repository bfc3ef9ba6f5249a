package world

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/leadetl/leadetl/internal/testkit/worldtest"
	"github.com/leadetl/leadetl/pipeline/answers"
	"github.com/leadetl/leadetl/pipeline/outcome"
	"github.com/leadetl/leadetl/pipeline/purchase"
	"github.com/leadetl/leadetl/resolution"
)

// wrongly notes what broke a promise.
func (h *history) wrongly(format string, args ...any) {
	h.known.mu.Lock()
	defer h.known.mu.Unlock()
	h.known.wrong = append(h.known.wrong, fmt.Sprintf("life %d: ", h.lives)+fmt.Sprintf(format, args...))
}

// check compares what is stored with what the service knows, at a moment without calls.
func (h *history) check(ctx context.Context, s purchase.Store) {
	found, err := s.Lookup(ctx, h.scope, h.plan.keys, answers.Freshness{}, true, nil)
	if err != nil {
		h.unexpected("look up all keys", err)
		return
	}
	listed := map[string]answers.State{}
	for c, err := range s.OpenAnywhere(ctx) {
		if err != nil {
			h.unexpected("list the open calls", err)
		}
		if c.Service == h.scope.Service {
			listed[c.Key] = c.State
		}
	}
	h.service.mu.Lock()
	defer h.service.mu.Unlock()
	var credits int64
	h.open, h.reopened = map[string]bool{}, map[string]bool{}
	for i, f := range found {
		h.open[h.plan.keys[i]] = f.Open != ""
		h.reopened[h.plan.keys[i]] = f.Open != "" && f.Stored && f.Answer.Outcome == answers.Refused
	}
	if h.isReplaced() {
		return
	}
	for i, f := range found {
		r := h.service.records[h.plan.keys[i]]
		if f.Stored {
			if f.Answer.Outcome != answers.Refused {
				credits += h.service.costs(r.number)
			}
			h.checkStored(r, f.Answer)
		}
		switch has := f.Stored && f.Answer.Outcome != answers.Refused; {
		case f.Open == answers.UnderWay:
			h.wrongly("key %d has a call under way", r.number)
		case listed[h.plan.keys[i]] != f.Open:
			h.wrongly("the call of key %d is %q, and listed as %q", r.number, f.Open, listed[h.plan.keys[i]])
		case r.billed > 0 && !has && f.Open == "":
			h.wrongly("key %d is billed, has no answer, and is not listed", r.number)
		case h.cameTooLate(r.number) && !has:
			h.wrongly("the answer of key %d came to a machine that was replaced, and is gone", r.number)
		case h.known.told[r.number] && !has:
			h.wrongly("the answer of key %d was acknowledged, and is gone", r.number)
		case f.Open != "" && !h.known.disturbed && !r.doubtful:
			h.wrongly("key %d is listed, and no request of it may have been billed", r.number)
		}
	}
	h.checkSpending(ctx, s, credits)
}

// checkStored compares a stored answer with the truth.
func (h *history) checkStored(r *record, a answers.Answer) {
	switch is := h.service.truth(r.number); {
	case a.Outcome == answers.Refused:
		if is != refused && !r.failed {
			h.wrongly("key %d is stored as refused", r.number)
		}
	case !r.answered:
		h.wrongly("key %d has an answer that the service never gave", r.number)
	case is == refused, is == match != (a.Outcome == answers.Matched):
		h.wrongly("key %d is stored as %s, and is a %s", r.number, a.Outcome, is)
	case is == match && !strings.Contains(string(a.Body), h.plan.mark(r.number)):
		h.wrongly("key %d has the answer of another", r.number)
	}
}

// checkSpending compares what the store says was spent with the cost of what is stored, and
// with what was billed. The caller holds the service's lock.
func (h *history) checkSpending(ctx context.Context, s purchase.Store, credits int64) {
	remote := &purchase.Remote{Name: h.scope.Service, Answers: s, Price: h.plan.price()}
	var paid, counted int64
	for run := range h.plan.runs {
		spent, err := remote.Spent(ctx, h.payer(runName(run)), h.scope.Operation)
		if err != nil {
			h.unexpected("sum what is spent", err)
			return
		}
		paid += spent.Paid
		counted += spent.Credits()
	}
	if paid != credits && !(h.known.lost && paid > credits) {
		h.wrongly("%d credits are counted as paid, and the stored answers cost %d", paid, credits)
	}
	if billed, _ := h.service.billed(); counted < billed && !h.plan.dear {
		h.wrongly("%d credits are counted, and %d were billed", counted, billed)
	}
}

// checkBuyer compares what a buyer has counted with what was billed, after its calls.
func (h *history) checkBuyer(b *purchase.Buyer) {
	h.service.mu.Lock()
	defer h.service.mu.Unlock()
	calls, credits := b.Spent()
	billed, keys := h.service.billed()
	if h.plan.runs == 1 && (calls < keys || credits < billed && !h.plan.dear) {
		h.wrongly("the buyer counts %d calls and %d credits, and %d keys were billed with %d", calls, credits, keys, billed)
	}
	if all := b.SpentOfAllowance(); h.service.allowance >= 0 && all < billed {
		h.wrongly("%d credits count against the allowance, and %d were billed", all, billed)
	}
}

// take looks at the answers to keys that a row gets.
func (h *history) take(keys []string, got []purchase.Result) {
	if h.world.Awake() != nil {
		return
	}
	for i, a := range got {
		n := h.service.records[keys[i]].number
		h.world.Note("key %d: %s %s", n, a.Outcome, a.Reason)
		h.compare(n, a)
		if a.Outcome == outcome.Matched || a.Outcome == outcome.NoMatch {
			h.acknowledge(n)
		}
	}
}

// compare compares an answer with the truth.
func (h *history) compare(n int, a purchase.Result) {
	is := h.service.truth(n)
	switch {
	case h.plan.operation.IsKeyword() && a.Outcome == outcome.Matched: // its leads are looked at in page
	case a.Outcome == outcome.Matched && (is != match || a.Found.Lead().Phone != phone(n)):
		h.wrongly("key %d is a %s, and gets another answer", n, is)
	case a.Outcome == outcome.NoMatch && is != miss:
		h.wrongly("key %d is a %s, and gets no match", n, is)
	case a.Outcome == outcome.Skipped && a.Reason == outcome.ReasonNotStored && h.open[h.plan.keys[n]]:
		h.wrongly("key %d has an open call, and counts as never asked", n)
	}
}

// answer asks keys as rows do: records together, and pages of searches one by one.
func (h *history) answer(ctx context.Context, b *purchase.Buyer, keys []string, use func(keys []string, got []purchase.Result)) error {
	if !h.plan.operation.IsKeyword() {
		return b.Answer(ctx, keys, len(keys), func(got []purchase.Result) { use(keys, got) })
	}
	for _, key := range keys {
		n := h.service.records[key].number
		page, err := b.Page(ctx, query(n))
		if err != nil {
			return err
		}
		if page.Leads != nil {
			leads, err := page.Leads()
			if err != nil {
				return err
			}
			if leads.Len() != int(h.service.costs(n)) || leads.Len() > 0 && !strings.HasPrefix(string(leads.Texts[resolution.FieldLeadID].At(0)), h.plan.mark(n)) {
				h.wrongly("key %d gets a page of %d leads", n, leads.Len())
			}
		}
		use([]string{key}, []purchase.Result{page.Answer})
	}
	return nil
}

// acknowledge notes that somebody relies on the answer to a key.
func (h *history) acknowledge(n int) {
	h.known.mu.Lock()
	defer h.known.mu.Unlock()
	h.known.told[n] = true
}

// cameTooLate reports whether the answer to a key came to a machine that had been replaced, before
// this one opened the state. A list may lack it for a time.
func (h *history) cameTooLate(n int) bool {
	h.known.mu.Lock()
	defer h.known.mu.Unlock()
	at := h.known.late[n]
	return h.isKept(n) && h.began.Sub(at) > 2*time.Minute
}

// isKept reports whether the answer to a key that came to a machine that had been replaced is kept for
// sure. That machine refuses it behind the end of its call, which is not kept; the service sends it again.
func (h *history) isKept(n int) bool { return !h.known.late[n].IsZero() && !h.known.ended[n] }

// endsTooLate notes that the call of a key ended on a machine that had been replaced.
func (h *history) endsTooLate(n int) {
	h.known.mu.Lock()
	defer h.known.mu.Unlock()
	if h.known.ended == nil {
		h.known.ended = map[int]bool{}
	}
	h.known.ended[n] = true
}

// tooLate notes that the answer to a key is kept for the next machine.
func (h *history) tooLate(n int) {
	h.known.mu.Lock()
	defer h.known.mu.Unlock()
	h.known.late[n] = time.Now()
}

// unexpected notes an error that nothing in the world explains.
func (h *history) unexpected(what string, err error) {
	if err != nil && (strings.Contains(err.Error(), "network.example") || strings.Contains(err.Error(), "keyword-")) {
		h.wrongly("%s: the error has an identifier: %v", what, err)
	}
	switch {
	case err == nil, h.world.Alive() != nil:
	case h.bucket != nil && h.isExpectedOnS3(what, err):
	case errors.Is(err, errInterrupted), errors.Is(err, purchase.ErrBudget):
	case errors.Is(err, purchase.ErrNoCredits), errors.Is(err, purchase.ErrRefused), errors.Is(err, purchase.ErrUnreachable):
	case errors.Is(err, worldtest.ErrCrashed):
		h.wrongly("%s: the error of a crash before the crash: %v", what, err)
	case h.world.Faults() > 0 && (errors.Is(err, resolution.ErrUnavailable) || errors.Is(err, errJournal) || what == "open"):
	default:
		h.wrongly("%s: %v", what, err)
	}
}
