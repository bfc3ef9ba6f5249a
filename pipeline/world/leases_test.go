package world

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/leadetl/leadetl/internal/filelock"
	"github.com/leadetl/leadetl/internal/objects"
	"github.com/leadetl/leadetl/internal/testkit/s3test"
	"github.com/leadetl/leadetl/internal/testkit/worldtest"
)

// firstHolder is the number of the first machine that takes a lease.
const firstHolder = 3000

// leased is a lease on S3 that some machines take from each other.
type leased struct {
	world  *worldtest.World
	bucket *worldtest.Bucket

	mu     sync.Mutex
	holder int          // the machine that was sure of it last
	since  time.Time    // when it was
	sure   map[int]bool // machines that were sure of it
	wrong  []string
}

// liveLeasing lets some machines take a lease from each other, while some of them sleep.
func liveLeasing(w *worldtest.World, machines int) (wrong []string, lives int) {
	l := &leased{world: w, bucket: worldtest.NewBucket(w, s3test.NewMemory(nil)), sure: map[int]bool{}}
	l.bucket.Failing = float64(w.Below(8, "lease", "fails")) / 10
	if w.Below(3, "lease", "slow requests") == 0 {
		l.bucket.Slow = 0.1
	}
	var living sync.WaitGroup
	for i := range machines {
		living.Go(func() { l.machine(firstHolder + i) })
	}
	living.Wait()
	return l.wrong, machines
}

// machine takes the lease, renews it for some time, and releases it. It sleeps after one of its
// first requests.
func (l *leased) machine(number int) {
	m := l.world.Another(number)
	draw := func(of ...any) int { return l.world.Below(1_000_000, append(of, "lease", number)...) }
	m.SleepsFor(time.Minute + time.Duration(draw("sleeps"))*time.Minute/200_000)
	ctx := m.Begin(context.Background(), 1+draw("last step")%12)
	defer m.Crash()
	time.Sleep(time.Duration(draw("begins")) * time.Minute / 200_000)
	waits := 0
	store := objects.New(ctx, objects.Options{Endpoint: "http://store.example", PathStyle: true, Machine: &objects.Machine{
		Host: fmt.Sprint("machine-", number), HTTP: l.bucket.From(m),
		Random: func() float64 {
			waits++
			return float64(draw("wait", waits)) / 1_000_000
		},
	}})
	at := objects.Location{Bucket: "leads", Key: "lock"}
	lock, err := store.Lock(ctx, at, objects.Holder{Name: fmt.Sprint("machine-", number)})
	if err != nil {
		l.unexpected(number, err)
		return
	}
	for i := range 8 {
		time.Sleep(time.Duration(draw("works", i)) * time.Minute / 1_000_000)
		l.renew(ctx, lock, number, time.Duration(draw("patience", i))*time.Minute/1_000_000)
	}
	l.unexpected(number, lock.Release())
}

// renew makes sure of the lease, for as long as the user waits. Who was sure before must not be when
// another machine was sure meanwhile.
func (l *leased) renew(ctx context.Context, lock *objects.Lock, number int, patience time.Duration) {
	asked := time.Now()
	ctx, stop := context.WithTimeout(ctx, patience)
	defer stop()
	if err := lock.Renew(ctx); err != nil {
		l.unexpected(number, err)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.sure[number] && l.holder != number && l.since.Before(asked) {
		l.wrong = append(l.wrong, fmt.Sprintf("machine %d is sure of a lease that machine %d was sure of %s before", number, l.holder, asked.Sub(l.since)))
	}
	l.holder, l.since, l.sure[number] = number, time.Now(), true
}

// unexpected notes an error that neither the store nor another machine explains.
func (l *leased) unexpected(number int, err error) {
	switch {
	case err == nil, errors.Is(err, filelock.ErrLocked), errors.Is(err, objects.ErrLockLost), errors.Is(err, objects.ErrUnavailable), errors.Is(err, context.DeadlineExceeded):
	default:
		l.mu.Lock()
		defer l.mu.Unlock()
		l.wrong = append(l.wrong, fmt.Sprintf("machine %d: %v", number, err))
	}
}
