package account

import (
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/leadetl/leadetl/resolution/service/state"
)

// Requests counts the requests of organizations until they are stored. Its zero
// value is ready, and safe for concurrent use.
type Requests struct {
	mu     sync.Mutex
	counts map[state.Requests]state.Requests // by what they have besides numbers
}

// Count counts a request. key is 0 for a request without a key.
func (r *Requests) Count(organization, key int64, operation string, at time.Time, status int) {
	n := state.Requests{Organization: organization, Key: key, Day: at.Unix() / (24 * 60 * 60), Operation: operation, Total: 1}
	if status == http.StatusTooManyRequests {
		n.Limited = 1
	}
	r.Return([]state.Requests{n})
}

// Take returns the counts and resets them to 0.
func (r *Requests) Take() []state.Requests {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := slices.Collect(maps.Values(r.counts))
	clear(r.counts)
	return all
}

// Return adds back counts that could not be stored.
func (r *Requests) Return(counts []state.Requests) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.counts == nil {
		r.counts = map[state.Requests]state.Requests{}
	}
	for _, n := range counts {
		key := n
		key.Total, key.Limited = 0, 0
		n.Total += r.counts[key].Total
		n.Limited += r.counts[key].Limited
		r.counts[key] = n
	}
}
