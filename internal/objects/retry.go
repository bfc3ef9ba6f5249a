package objects

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/leadetl/leadetl/internal/retry"
)

// backoff is the wait between tries.
var backoff = retry.Backoff{Initial: 100 * time.Millisecond, Max: 10 * time.Second}

const (
	// maxMoves is how often a request follows a bucket to another region.
	maxMoves = 3
	// warnEvery is the minimum time between warnings about a store that does not
	// answer.
	warnEvery = 30 * time.Second
)

// request is one kind of call about one object or prefix.
type request struct {
	verb       string // as messages have it: "read", "list"
	permission string // that the request needs
	Location
	size int64 // bytes to transfer
}

// minSpeed is that of the slowest connection that is worth waiting for, 1 Mbit/s,
// in bytes a second.
const minSpeed = 128 << 10

// within is how long one try may take.
func (c *connection) within(r request) time.Duration {
	return 2*c.patience() + time.Duration(r.size/minSpeed)*time.Second
}

// tryWithin is how long one more try may take of a request that has failed for so long.
func (c *connection) tryWithin(r request, failing time.Duration) time.Duration {
	transfer := c.within(r) - 2*c.patience()
	return transfer + min(2*c.patience(), max(c.options.GiveUpAfter-failing, time.Second))
}

// patience is how long a store may be silent: until its answer begins, in the middle
// of it, or while it takes a request. It leaves time for a second try.
func (c *connection) patience() time.Duration {
	return min(answerWithin, max(c.options.GiveUpAfter/2, time.Second))
}

// do repeats a request until the store answers, refuses, or has not answered for
// too long. ctx ends the current try; the store's own context ends the waits
// between tries.
func (c *connection) do(ctx context.Context, r request, try func(ctx context.Context, client *s3.Client, in func(*s3.Options)) error) error {
	return c.progress(ctx, r, func(ctx context.Context, client *s3.Client, in func(*s3.Options)) (int, error) {
		return 0, try(ctx, client, in)
	})
}

// operation is one of the operations of a client.
type operation[In, Out any] = func(*s3.Client, context.Context, *In, ...func(*s3.Options)) (*Out, error)

// send is do for an operation whose input can be sent again as it is.
func send[In, Out any](ctx context.Context, c *connection, r request, in *In, op operation[In, Out]) (out *Out, err error) {
	err = c.do(ctx, r, func(ctx context.Context, client *s3.Client, region func(*s3.Options)) (err error) {
		out, err = op(client, ctx, in, region)
		return err
	})
	return out, err
}

// progress is do for requests whose tries can each read some bytes. As long as they
// do, at minSpeed, it does not give up.
func (c *connection) progress(ctx context.Context, r request, try func(ctx context.Context, client *s3.Client, in func(*s3.Options)) (read int, err error)) error {
	client, err := c.connect(ctx)
	if err != nil {
		return at(r, err)
	}
	if c.isSilent() {
		return c.gaveUpOn(fmt.Errorf("%s %s: %w", r.verb, r, ErrUnavailable), answerWithin)
	}
	failures, moves := 0, 0
	for waiting := time.Now(); ; {
		asked, began := c.region(r.Bucket), time.Now()
		attempt, cancel := context.WithTimeout(ctx, c.tryWithin(r, began.Sub(waiting)))
		read, err := try(attempt, client, c.inRegion(r.Bucket))
		cancel()
		if ctx.Err() != nil && err != nil {
			return ctx.Err()
		}
		verdict := c.judge(r, asked, err)
		if verdict == nil || !errors.Is(verdict, ErrUnavailable) {
			c.answered(verdict)
			return verdict
		}
		if isElsewhere(asked, err) && moves < maxMoves {
			moves++
			c.moved(r.Bucket, regionOf(err))
			continue
		}
		now := time.Now()
		slept := now.Sub(began) > 2*c.within(r) // the process did: the store was not away all that time
		if slept || float64(read) > minSpeed*now.Sub(began).Seconds() {
			waiting, failures = now, 0
		}
		if slept {
			c.isBack()
		}
		left := c.patienceLeft(now, waiting, verdict)
		if left <= 0 {
			return c.gaveUpOn(verdict, now.Sub(began))
		}
		failures++
		timer := time.NewTimer(min(backoff.Jittered(failures, c.machine.Random()), left))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case <-c.until.Done():
			timer.Stop()
			return fmt.Errorf("%w; %w", c.until.Err(), verdict)
		}
	}
}

// answered records that the store answered.
func (c *connection) answered(verdict error) {
	var refused *RefusedError
	if errors.As(verdict, &refused) && refused.Code == "" {
		return // no answer arrived
	}
	c.reached.Store(true)
	c.isBack()
}

// isBack ends the time in which no request was answered.
func (c *connection) isBack() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.downSince = time.Time{}
}

// closing is how long after a request was given up others do not wait: those that end the work.
const closing = 30 * time.Second

// isSilent reports whether a request to a store that says nothing was given up just now. Another
// one would take its time, too.
func (c *connection) isSilent() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.silent && !c.downSince.IsZero() && time.Since(c.gaveUp) < closing
}

// gaveUpOn is the error of a request that was given up, whose last try took so long.
func (c *connection) gaveUpOn(verdict error, took time.Duration) error {
	c.mu.Lock()
	c.silent = took > time.Second
	if time.Since(c.gaveUp) >= closing {
		c.gaveUp = time.Now()
	}
	c.mu.Unlock()
	return fmt.Errorf("%w; gave up after %s; check that %s is up and reachable from here", verdict, c.options.GiveUpAfter, cmp.Or(c.endpoint().String(), "the store"))
}

// patienceLeft records a failure, and returns how long to go on: this request may fail for so
// long, and no request be answered. Where another one was given up just now, there is no patience
// left: what is closed in the end does not wait anew.
func (c *connection) patienceLeft(now, failing time.Time, why error) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.downSince.IsZero() {
		c.downSince = failing
	}
	if now.Sub(c.gaveUp) < closing {
		return 0
	}
	left := c.options.GiveUpAfter - max(now.Sub(failing), now.Sub(c.downSince))
	if left > 0 && now.Sub(failing) > 2*time.Second && now.Sub(c.warnedAt) > warnEvery {
		c.warnedAt = now
		c.options.Log.Warn("the store does not answer; trying again", "reason", why.Error(), "for_another", max(left.Round(time.Second), time.Second).String())
	}
	return left
}
