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
func (s *Store) within(r request) time.Duration {
	return 2*s.patience() + time.Duration(r.size/minSpeed)*time.Second
}

// tryWithin is how long one more try may take of a request that has failed for so long.
func (s *Store) tryWithin(r request, failing time.Duration) time.Duration {
	transfer := s.within(r) - 2*s.patience()
	return transfer + min(2*s.patience(), max(s.options.GiveUpAfter-failing, time.Second))
}

// patience is how long a store may be silent: until its answer begins, in the middle
// of it, or while it takes a request. It leaves time for a second try.
func (s *Store) patience() time.Duration {
	return min(answerWithin, max(s.options.GiveUpAfter/2, time.Second))
}

// do repeats a request until the store answers, refuses, or has not answered for
// too long. ctx ends the current try; the store's own context ends the waits
// between tries.
func (s *Store) do(ctx context.Context, r request, try func(ctx context.Context, c *s3.Client, in func(*s3.Options)) error) error {
	return s.progress(ctx, r, func(ctx context.Context, c *s3.Client, in func(*s3.Options)) (int, error) {
		return 0, try(ctx, c, in)
	})
}

// operation is one of the operations of a client.
type operation[In, Out any] = func(*s3.Client, context.Context, *In, ...func(*s3.Options)) (*Out, error)

// send is do for an operation whose input can be sent again as it is.
func send[In, Out any](ctx context.Context, s *Store, r request, in *In, op operation[In, Out]) (out *Out, err error) {
	err = s.do(ctx, r, func(ctx context.Context, c *s3.Client, region func(*s3.Options)) (err error) {
		out, err = op(c, ctx, in, region)
		return err
	})
	return out, err
}

// progress is do for requests whose tries can each read some bytes. As long as they
// do, at minSpeed, it does not give up.
func (s *Store) progress(ctx context.Context, r request, try func(ctx context.Context, c *s3.Client, in func(*s3.Options)) (read int, err error)) error {
	client, err := s.connect(ctx)
	if err != nil {
		return at(r, err)
	}
	if s.isSilent() {
		return s.gaveUpOn(fmt.Errorf("%s %s: %w", r.verb, r, ErrUnavailable), answerWithin)
	}
	failures, moves := 0, 0
	for waiting := time.Now(); ; {
		asked, began := s.region(r.Bucket), time.Now()
		attempt, cancel := context.WithTimeout(ctx, s.tryWithin(r, began.Sub(waiting)))
		read, err := try(attempt, client, s.inRegion(r.Bucket))
		cancel()
		if ctx.Err() != nil && err != nil {
			return ctx.Err()
		}
		verdict := s.judge(r, asked, err)
		if verdict == nil || !errors.Is(verdict, ErrUnavailable) {
			s.answered(verdict)
			return verdict
		}
		if isElsewhere(asked, err) && moves < maxMoves {
			moves++
			s.moved(r.Bucket, regionOf(err))
			continue
		}
		now := time.Now()
		slept := now.Sub(began) > 2*s.within(r) // the process did: the store was not away all that time
		if slept || float64(read) > minSpeed*now.Sub(began).Seconds() {
			waiting, failures = now, 0
		}
		if slept {
			s.isBack()
		}
		left := s.patienceLeft(now, waiting, verdict)
		if left <= 0 {
			return s.gaveUpOn(verdict, now.Sub(began))
		}
		failures++
		timer := time.NewTimer(min(backoff.Jittered(failures, s.machine.Random()), left))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case <-s.until.Done():
			timer.Stop()
			return fmt.Errorf("%w; %w", s.until.Err(), verdict)
		}
	}
}

// answered records that the store answered.
func (s *Store) answered(verdict error) {
	var refused *RefusedError
	if errors.As(verdict, &refused) && refused.Code == "" {
		return // no answer arrived
	}
	s.reached.Store(true)
	s.isBack()
}

// isBack ends the time in which no request was answered.
func (s *Store) isBack() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.downSince = time.Time{}
}

// closing is how long after a request was given up others do not wait: those that end the work.
const closing = 30 * time.Second

// isSilent reports whether a request to a store that says nothing was given up just now. Another
// one would take its time, too.
func (s *Store) isSilent() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.silent && !s.downSince.IsZero() && time.Since(s.gaveUp) < closing
}

// gaveUpOn is the error of a request that was given up, whose last try took so long.
func (s *Store) gaveUpOn(verdict error, took time.Duration) error {
	s.mu.Lock()
	s.silent = took > time.Second
	if time.Since(s.gaveUp) >= closing {
		s.gaveUp = time.Now()
	}
	s.mu.Unlock()
	return fmt.Errorf("%w; gave up after %s; check that %s is up and reachable from here", verdict, s.options.GiveUpAfter, cmp.Or(s.endpoint().String(), "the store"))
}

// patienceLeft records a failure, and returns how long to go on: this request may fail for so
// long, and no request be answered. Where another one was given up just now, there is no patience
// left: what is closed in the end does not wait anew.
func (s *Store) patienceLeft(now, failing time.Time, why error) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.downSince.IsZero() {
		s.downSince = failing
	}
	if now.Sub(s.gaveUp) < closing {
		return 0
	}
	left := s.options.GiveUpAfter - max(now.Sub(failing), now.Sub(s.downSince))
	if left > 0 && now.Sub(failing) > 2*time.Second && now.Sub(s.warnedAt) > warnEvery {
		s.warnedAt = now
		s.options.Log.Warn("the store does not answer; trying again", "reason", why.Error(), "for_another", max(left.Round(time.Second), time.Second).String())
	}
	return left
}
