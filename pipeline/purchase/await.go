package purchase

import (
	"context"
	"errors"
	"time"

	"github.com/leadetl/leadetl/pipeline/answers"
	"github.com/leadetl/leadetl/pipeline/outcome"
	"github.com/leadetl/leadetl/resolution"
)

// later is until when an answer is waited for that comes by a callback. Where
// nobody listens, it is not waited for.
func (p *purchase) later() (until time.Time, v Answer) {
	if p.buyer.remote.Deliveries == nil {
		return time.Time{}, failed(outcome.ReasonNoCallback)
	}
	return time.Now().Add(p.buyer.remote.Patience), Answer{}
}

// park stores that an answer comes later. What it will cost is counted with
// its price until then.
func (p *purchase) park(about resolution.About, until time.Time) error {
	if until.IsZero() {
		until = time.Now() // a later run may listen, and is not told to wait
	}
	err := p.buyer.remote.Answers.Park(context.WithoutCancel(p.buyer.ctx), p.question, answers.Parking{
		Resolution: about.ID, Request: about.RequestID, Deadline: until,
	})
	p.clearUnknown()
	p.charge.settle(p.charge.price)
	p.maybeBilled = true
	if errors.Is(err, answers.ErrNoCall) {
		return nil // the callback was faster
	}
	return err
}

// await waits for the answer to a parked call, which Later stores.
func (p *purchase) await(until time.Time) (Answer, error) {
	p.buyer.counters.Parked(1)
	defer p.buyer.counters.Parked(-1)
	arrived, forget := p.buyer.remote.Deliveries.Listen(p.question.Hash())
	defer forget()
	wait := time.NewTimer(time.Until(until))
	defer wait.Stop()
	for late := false; ; {
		found, err := p.buyer.remote.Answers.Lookup(context.WithoutCancel(p.buyer.ctx), p.buyer.scope, []string{p.question.Key}, p.buyer.remote.Freshness(p.buyer.began), true, nil)
		switch {
		case err != nil:
			return Answer{}, p.buyer.stopFor(err)
		case found[0].Open == "" && found[0].Stored && found[0].Fresh:
			cost := p.charge.price
			if found[0].Answer.Credits != nil {
				cost = *found[0].Answer.Credits
			}
			p.charge.settle(cost)
			p.buyer.counters.Settled(cost)
			return p.buyer.codec.answer(found[0].Answer)
		case found[0].Open == "":
			return failed(outcome.ReasonUnavailable), nil // the service gave it up
		case late:
			return failed(outcome.ReasonNoCallback), nil
		}
		select {
		case <-arrived:
		case <-wait.C:
			late = true
		case <-p.buyer.ctx.Done():
			return Answer{}, context.Cause(p.buyer.ctx)
		}
	}
}
