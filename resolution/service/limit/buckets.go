package limit

import (
	"hash/maphash"
	"math"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	shardCount = 64 // a power of two

	// minSweep is how many keys come to a shard, at least, before it looks
	// for idle ones.
	minSweep = 64

	// defaultMaxKeys bounds the keys of a shard.
	defaultMaxKeys = 4096
)

// Buckets holds a token bucket for each key. It is safe from many goroutines,
// and exact: of any number of simultaneous calls for one key, those allowed
// are as many as there were tokens.
//
// Memory is bounded by the keys that are busy, not by those ever seen: a
// bucket that is full again is as good as a new one, and is dropped after as
// many new keys have come to its shard of the map as it held. Where more than
// 262,144 keys (about 50 MB) are busy at once, one of them is forgotten for
// each that comes, and begins again full. So let no caller choose its keys
// freely: key an IPv6 address by its /64.
type Buckets struct {
	rate    Rate
	maxKeys int // of a shard
	seed    maphash.Seed
	shards  [shardCount]shard
}

type shard struct {
	mu      sync.Mutex
	buckets map[string]*bucket
	room    int      // keys that may come until the next sweep
	_       [64]byte // the next shard's lock is in another cache line
}

// bucket is a limiter with the latest time it was asked about: a caller whose
// time is older, because another overtook it, must not turn the limiter back,
// which would give out the time between twice.
type bucket struct {
	limiter *rate.Limiter
	latest  time.Time
}

// New makes empty Buckets. With None, everything is allowed. It panics on a
// rate that Validate refuses.
func New(r Rate) *Buckets {
	if err := r.Validate(); err != nil {
		panic(err)
	}
	b := &Buckets{rate: r, maxKeys: defaultMaxKeys, seed: maphash.MakeSeed()}
	for i := range b.shards {
		b.shards[i].buckets = map[string]*bucket{}
		b.shards[i].room = minSweep
	}
	return b
}

// Take takes a token from the key's bucket if there is one, and says what is
// left. A refused call takes nothing, so that asking again and again does not
// keep a caller out.
func (b *Buckets) Take(key string, now time.Time) Decision {
	return b.decide(key, now, true)
}

// Peek says what Take would, but for Remaining and Reset, which are as they
// stand. It takes nothing and remembers no key.
func (b *Buckets) Peek(key string, now time.Time) Decision {
	return b.decide(key, now, false)
}

func (b *Buckets) decide(key string, now time.Time, take bool) Decision {
	if b.rate == None {
		return Decision{Allowed: true}
	}
	s := &b.shards[maphash.String(b.seed, key)%shardCount]
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.buckets[key]
	if known == nil {
		if !take {
			return Decision{Allowed: true, Rate: b.rate, Remaining: b.rate.Burst}
		}
		known = s.add(key, b.rate, b.maxKeys, now)
	}
	if now.Before(known.latest) {
		now = known.latest
	}
	return known.decide(b.rate, now, take)
}

// add makes room for a key, and its bucket.
func (s *shard) add(key string, r Rate, maxKeys int, now time.Time) *bucket {
	if s.room == 0 {
		s.sweep(r, now)
	}
	s.room--
	if len(s.buckets) >= maxKeys {
		for one := range s.buckets { // the first of a random order
			delete(s.buckets, one)
			break
		}
	}
	b := &bucket{limiter: rate.NewLimiter(r.limit(), r.Burst), latest: now}
	s.buckets[key] = b
	return b
}

// sweep keeps the buckets that are not full, in a new map: one that shrinks
// does not give its memory back. The next is due after as many new keys as
// this one kept, so that a key's share of the work does not grow.
func (s *shard) sweep(r Rate, now time.Time) {
	busy := make(map[string]*bucket, len(s.buckets)/2)
	for key, b := range s.buckets {
		if b.tokens(now) < float64(r.Burst) {
			busy[key] = b
		}
	}
	s.buckets, s.room = busy, max(len(busy), minSweep)
}

// Sweep forgets the keys whose buckets are full. Take does so by itself when
// keys become many; a service that calls this now and then also gets the
// memory of a past rush back.
func (b *Buckets) Sweep(now time.Time) {
	for i := range b.shards {
		s := &b.shards[i]
		s.mu.Lock()
		s.sweep(b.rate, now)
		s.mu.Unlock()
	}
}

// tokens is what is in the bucket, not looking back past its latest time.
func (b *bucket) tokens(now time.Time) float64 {
	if now.Before(b.latest) {
		now = b.latest
	}
	return b.limiter.TokensAt(now)
}

func (b *bucket) decide(r Rate, now time.Time, take bool) Decision {
	tokens := b.limiter.TokensAt(now)
	d := Decision{Allowed: tokens >= 1, Rate: r}
	if take && d.Allowed {
		b.latest = now
		b.limiter.AllowN(now, 1)
		tokens--
	}
	d.Remaining = int(tokens)
	d.Reset = b.until(r, float64(r.Burst), tokens, now)
	if !d.Allowed {
		d.RetryAfter = b.until(r, 1, tokens, now)
	}
	return d
}

// until is how long it takes until the bucket, which now holds tokens, holds
// at least want, which is at most Burst.
func (b *bucket) until(r Rate, want, tokens float64, now time.Time) time.Duration {
	if tokens >= want {
		return 0
	}
	wait := time.Duration(math.Ceil((want - tokens) * float64(r.Per) / float64(r.Events)))
	// What is true of real numbers may fail by the last bit of a float64: ask
	// the limiter itself, as it will be asked then.
	for step := time.Duration(1); b.limiter.TokensAt(now.Add(wait)) < want; step *= 2 {
		wait += step
	}
	return wait
}

// limit is the rate in events a second.
func (r Rate) limit() rate.Limit { return rate.Limit(float64(r.Events) / r.Per.Seconds()) }
