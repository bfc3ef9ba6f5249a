package purchase

import (
	"context"
	"errors"
	"time"

	"github.com/leadetl/leadetl/pipeline/answers"
	"github.com/leadetl/leadetl/pipeline/outcome"
)

// resume waits for an answer that was promised to an earlier process.
func (c *call) resume() (Answer, error) {
	if c.page != nil {
		return c.page.resume()
	}
	return c.await()
}

// await waits for the answer of a parked call, until its deadline.
func (c *call) await() (Answer, error) {
	b := c.buyer
	if b.codec.poll == nil && b.remote.Deliveries == nil {
		return failed(b.codec.late), nil
	}
	b.counters.Parked(1)
	defer b.counters.Parked(-1)
	var news <-chan struct{}
	if d := b.remote.Deliveries; d != nil {
		listen, forget := d.Listen(c.question.Hash())
		defer forget()
		news = listen
	}
	a, err := c.watch(news)
	if c.state == parked {
		_, _ = c.conclude(answers.Answer{}, overdue) // changes nothing on disk
	}
	return a, err
}

// watch looks for the answer until it is there: in the store, where a callback
// brings it.
func (c *call) watch(news <-chan struct{}) (Answer, error) {
	b := c.buyer
	for {
		_, err := b.remote.Answers.Find(context.WithoutCancel(b.ctx), c.question.Hash())
		switch {
		case errors.Is(err, answers.ErrNoCall):
			return c.takeDelivered()
		case err != nil:
			return Answer{}, b.stopFor(err)
		}
		wait := time.Until(c.deadline)
		if wait <= 0 {
			return failed(b.codec.late), nil
		}
		if err := sleep(b.ctx, wait, news); err != nil {
			return Answer{}, err
		}
	}
}

// takeDelivered takes the answer that a callback has brought.
func (c *call) takeDelivered() (Answer, error) {
	f, err := c.buyer.lookUp(c.question.Key)
	if err != nil {
		return Answer{}, c.buyer.stopFor(err)
	}
	if !f.Stored || !f.Fresh {
		_, err := c.conclude(answers.Answer{}, abandoned)
		return failed(outcome.ReasonUnavailable), err
	}
	if _, err := c.conclude(f.Answer, delivered); err != nil {
		return Answer{}, err
	}
	return c.buyer.codec.answer(f.Answer)
}
