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

	// minSweep is the least number of new keys in a shard between two sweeps
	// for idle keys.
	minSweep = 64

	// defaultMaxKeys bounds the keys of one shard.
	defaultMaxKeys = 4096
)

// Buckets holds a token bucket for each key. It is safe for concurrent use and
// exact: of simultaneous calls for one key, it allows as many as there were
// tokens.
//
// Memory is bounded by the keys in use, not by all keys ever seen. A bucket that
// is full again equals a new one, so sweeps drop it. Above 262,144 keys in use at
// once (about 50 MB), each new key drops a random other one, which starts full
// when it comes back. So callers must not choose their keys freely: key an IPv6
// address by its /64.
type Buckets struct {
	rate    Rate
	maxKeys int // of a shard
	seed    maphash.Seed
	shards  [shardCount]shard
}

type shard struct {
	mu      sync.Mutex
	buckets map[string]*bucket
	room    int      // new keys until the next sweep
	_       [64]byte // keeps the locks of two shards in different cache lines
}

// bucket is a limiter with the latest time it was used at. Callers may arrive out
// of order; an older time must not turn the limiter back, or the tokens of the
// time between would be given out twice.
type bucket struct {
	limiter *rate.Limiter
	latest  time.Time
}

// New makes Buckets without keys. With None, everything is allowed. It panics on
// a rate that Validate refuses.
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

// Take takes a token from the bucket of the key if there is one, and returns what
// is left. A refused call takes nothing, so repeated calls do not prolong the wait.
func (b *Buckets) Take(key string, now time.Time) Decision {
	return b.decide(key, now, true)
}

// Peek returns what Take would return, with Remaining and Reset before the call.
// It takes nothing and stores no key.
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
		known = s.newBucket(key, b.rate, b.maxKeys, now)
	}
	if now.Before(known.latest) {
		now = known.latest
	}
	return known.decide(b.rate, now, take)
}

// newBucket makes a bucket for a new key, and room for it.
func (s *shard) newBucket(key string, r Rate, maxKeys int, now time.Time) *bucket {
	if s.room == 0 {
		s.sweep(r, now)
	}
	s.room--
	if len(s.buckets) >= maxKeys {
		for one := range s.buckets { // map iteration starts at a random key
			delete(s.buckets, one)
			break
		}
	}
	b := &bucket{limiter: rate.NewLimiter(r.limit(), r.Burst), latest: now}
	s.buckets[key] = b
	return b
}

// sweep moves the buckets that are not full to a new map, because deleting from
// a map does not free its memory. The next sweep is due after as many new keys
// as this one kept, so the cost for each key stays constant.
func (s *shard) sweep(r Rate, now time.Time) {
	busy := make(map[string]*bucket, len(s.buckets)/2)
	for key, b := range s.buckets {
		if b.tokens(now) < float64(r.Burst) {
			busy[key] = b
		}
	}
	s.buckets, s.room = busy, max(len(busy), minSweep)
}

// Sweep drops the keys whose buckets are full. Take does so by itself as new keys
// come; calling Sweep now and then also frees the memory of a past peak.
func (b *Buckets) Sweep(now time.Time) {
	for i := range b.shards {
		s := &b.shards[i]
		s.mu.Lock()
		s.sweep(b.rate, now)
		s.mu.Unlock()
	}
}

// tokens returns the tokens in the bucket at now, or at its latest time if that is
// later.
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

// until returns how long it takes until a bucket that holds tokens now holds at
// least want, which is at most Burst.
func (b *bucket) until(r Rate, want, tokens float64, now time.Time) time.Duration {
	if tokens >= want {
		return 0
	}
	wait := time.Duration(math.Ceil((want - tokens) * float64(r.Per) / float64(r.Events)))
	// A float64 may be off by its last bit: ask the limiter itself.
	for step := time.Duration(1); b.limiter.TokensAt(now.Add(wait)) < want; step *= 2 {
		wait += step
	}
	return wait
}

// limit is the rate in events a second.
func (r Rate) limit() rate.Limit { return rate.Limit(float64(r.Events) / r.Per.Seconds()) }
