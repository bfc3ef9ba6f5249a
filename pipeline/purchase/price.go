package purchase

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leadetl/leadetl/pipeline/answers"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/transforms/search"
)

// Price is the cost of a call in credits, if the service does not say it.
type Price struct {
	Match int64
	// NoMatch is the price of a record without a match, BadRow of one that the service refuses,
	// and Later of one whose answer comes later, until it is there.
	NoMatch, BadRow, Later int64
	// Company is the price of a deanonymization that found only the company.
	Company int64
	// Special is the highest price of answers that say that they have one of their own.
	Special int64
	// Extra is added to the price of a lead of a search, which is Match, for
	// deanonymize and for super_enrichment.
	Extra int64
}

// Prices are those of the interface.
var Prices = func() map[resolution.Operation]Price {
	all := map[resolution.Operation]Price{}
	for _, f := range resolution.Operations {
		p := Price{Match: f.Credits}
		switch f.Gives {
		case resolution.GivesVisitor:
			p.Company = 1
		case resolution.GivesLeads:
			p.Extra = 1
		}
		all[f.Name] = p
	}
	return all
}()

// Max is the highest cost of a call about a single record or a count.
func (p Price) Max() int64 { return max(p.Match, p.NoMatch, p.BadRow, p.Later, p.Company, p.Special) }

// MaxCost is the highest cost of the answer to a question; for a page of a search the cost of a
// full page, and without a key of the largest one.
func (p Price) MaxCost(q answers.Question) int64 {
	if q.Operation.Gives() != resolution.GivesLeads {
		return p.Max()
	}
	page, err := search.ParseKey(q.Key)
	if err != nil { // no key, or that of another program
		return int64(search.DefaultLimits().PageLimit) * (p.Match + 2*p.Extra)
	}
	return int64(page.Limit) * p.ofLead(page)
}

// ofLead returns the price of a lead of a search.
func (p Price) ofLead(q search.Query) int64 {
	price := p.Match
	if q.Deanonymize {
		price += p.Extra
	}
	if q.SuperEnrichment {
		price += p.Extra
	}
	return price
}

// ofRecord returns the price of an answer about a single record.
func (p Price) ofRecord(op resolution.Operation, r resolution.AnswerRow) int64 {
	switch {
	case !r.Matched():
		return p.NoMatch
	case op.Gives() == resolution.GivesVisitor && string(r.Of.Texts[resolution.FieldMatchLevel].At(r.I)) == "company":
		return p.Company
	}
	return p.Match
}

// ofBadRow returns the cost of a record that the service refused.
func (p Price) ofBadRow(f *resolution.CallError) int64 {
	if f.Spent != nil {
		return *f.Spent
	}
	return p.BadRow
}

// ofPage returns the price of a page of leads.
func (p Price) ofPage(key string, leads int) int64 {
	page, err := search.ParseKey(key)
	if err != nil {
		page.Deanonymize, page.SuperEnrichment = true, true
	}
	return int64(leads) * p.ofLead(page)
}

// costOf returns the cost that the service said, or else the price. A replay says that it is
// free, but its first answer was not.
func costOf(about resolution.About, price int64) int64 {
	if about.Spent != nil && (*about.Spent > 0 || !about.Replayed) {
		return *about.Spent
	}
	return price
}

// Spending is what a run has spent of its budget.
type Spending struct {
	Calls int64 // questions
	Paid  int64 // credits of those with an answer
	// Open is the most that each question without an answer may have cost.
	Open map[answers.Hash]int64
}

// Credits are all that count. A call that may have been billed counts with the
// most it can cost.
func (s Spending) Credits() int64 {
	credits := s.Paid
	for _, most := range s.Open {
		credits += most
	}
	return credits
}

// Spent is what a run has spent on questions of an operation.
func (r *Remote) Spent(ctx context.Context, run string, op resolution.Operation) (Spending, error) {
	s := Spending{Open: map[answers.Hash]int64{}}
	paid, open, err := r.Answers.SumSpent(ctx, run)
	if err != nil {
		return s, err
	}
	s.Calls, s.Paid = paid.Answers+int64(len(open)), paid.Credits+paid.Unpriced*r.Price.MaxCost(answers.Question{Scope: r.Scope(op)})
	for _, c := range open {
		s.Open[c.Hash] = r.Price.MaxCost(c.Question)
	}
	return s, nil
}

// SpentOfAllowance is what all jobs of the state have spent in the days of the allowance; 0
// without one. A call without an answer counts whenever it was sent, with its price; so does an
// answer whose price the service did not say. Such a call to a provider that this job does not ask
// counts as one credit, since its price is not known here.
func (r *Remote) SpentOfAllowance(ctx context.Context, op resolution.Operation, now time.Time) (credits int64, err error) {
	if r.Budget.Allowance.Days == 0 || r.Answers == nil {
		return 0, nil
	}
	priceOf := func(of answers.Scope) Price {
		if of == r.Scope(op) {
			return r.Price
		}
		if price, ours := r.Beside[of]; ours {
			return price
		}
		price, known := Prices[of.Operation]
		if !known { // a question to a provider of another job, whose entry is not here
			price.Match = 1
		}
		return price
	}
	// Open calls come first: an answer that comes meanwhile counts twice, and not never.
	for c, err := range r.Answers.OpenAnywhere(ctx) {
		if err != nil {
			return 0, err
		}
		credits += priceOf(c.Scope).MaxCost(c.Question)
	}
	spent, err := r.Answers.SpentSince(ctx, answers.DayOf(now.AddDate(0, 0, 1-r.Budget.Allowance.Days)))
	for _, d := range spent {
		credits += d.Credits + d.Unpriced*priceOf(d.Scope).MaxCost(answers.Question{Scope: d.Scope})
	}
	return credits, err
}

// reservedEarlier are the questions of earlier processes of the run that had no answer
// when this one began, and what the account counts for each.
type reservedEarlier struct {
	mu    sync.Mutex
	price map[answers.Hash]int64
}

func (s *reservedEarlier) isEmpty() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.price) == 0
}

// take takes a question out.
func (s *reservedEarlier) take(h answers.Hash) (price int64, found bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	price, found = s.price[h]
	delete(s.price, h)
	return price, found
}

// surcharge learns that calls cost more than their price.
type surcharge struct {
	most   atomic.Int64 // the highest cost of a call above its price; 0 without one
	warned sync.Once
}

// learn makes later calls expect a cost.
func (s *surcharge) learn(cost int64) {
	for most := s.most.Load(); cost > most && !s.most.CompareAndSwap(most, cost); most = s.most.Load() {
	}
}

// OverPriceError says that an answer cost more than its price, which a Remote is strict about.
type OverPriceError struct{ Price, Cost int64 }

func (e *OverPriceError) Error() string {
	return fmt.Sprintf("an answer cost %d credits, more than its price of %d, and strict stops then; correct the price in the entry of the provider, or leave out strict", e.Cost, e.Price)
}

func (e *OverPriceError) Unwrap() error { return ErrBudget }

// learnCost learns what an answer to a question cost. It was booked in full.
func (b *Buyer) learnCost(q answers.Question, cost int64) {
	price := b.remote.Price.MaxCost(q)
	if cost <= price {
		return
	}
	b.counters.OverPrice(1)
	b.surcharge.learn(cost)
	b.surcharge.warned.Do(func() {
		where := "credit_cost says what calls cost at most"
		if b.remote.Judged {
			where = "the entry of the provider says what calls cost at most"
		}
		b.log.Warn("a call cost more than was expected; "+where, "resolver", b.remote.Name, "expected", price, "credits", cost)
	})
	if b.remote.Strict {
		b.Stop(&OverPriceError{price, cost})
	}
}

// book counts what a stored answer cost, if it has come since this
// process began, by a callback, to a call of an earlier one.
func (s *reservedEarlier) book(b *Buyer, q answers.Question, a answers.Answer) {
	if s.isEmpty() { // the usual case, without a hash
		return
	}
	price, found := s.take(q.Hash())
	if !found {
		return
	}
	cost := price
	if a.Credits != nil {
		cost = *a.Credits
	}
	b.account.adjust(0, cost-price, 0, 0)
	b.counters.Settled(cost)
}
