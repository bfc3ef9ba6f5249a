package account

import (
	"net/http"
	"sync"
	"time"

	"github.com/leadetl/leadetl/resolution/service/state"
)

// Requests counts the requests of organizations until they are stored. Its zero
// value is ready, and safe for concurrent use.
type Requests struct {
	mu     sync.Mutex
	counts map[requestsKey]requestsSum
}

type requestsKey struct {
	organization, key, day int64
	operation              string
}

type requestsSum struct{ total, limited int64 }

// Count counts a request. key is 0 for a request without a key.
func (r *Requests) Count(organization, key int64, operation string, at time.Time, status int) {
	n := requestsSum{total: 1}
	if status == http.StatusTooManyRequests {
		n.limited = 1
	}
	r.add(requestsKey{organization, key, at.Unix() / (24 * 60 * 60), operation}, n)
}

func (r *Requests) add(k requestsKey, n requestsSum) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.counts == nil {
		r.counts = map[requestsKey]requestsSum{}
	}
	sum := r.counts[k]
	r.counts[k] = requestsSum{sum.total + n.total, sum.limited + n.limited}
}

// Take returns the counts and resets them to 0.
func (r *Requests) Take() []state.Requests {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []state.Requests
	for k, n := range r.counts {
		all = append(all, state.Requests{
			Organization: k.organization, Key: k.key, Day: k.day, Operation: k.operation, Total: n.total, Limited: n.limited,
		})
	}
	clear(r.counts)
	return all
}

// Return adds back counts that could not be stored.
func (r *Requests) Return(counts []state.Requests) {
	for _, c := range counts {
		r.add(requestsKey{c.Organization, c.Key, c.Day, c.Operation}, requestsSum{c.Total, c.Limited})
	}
}
