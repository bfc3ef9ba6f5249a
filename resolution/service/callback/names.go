package callback

import (
	"context"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
)

const (
	lookupTimeout = 2 * time.Second  // a request waits for it
	foundFor      = time.Minute      // how long an answer is used again
	lostFor       = 10 * time.Second // and how long none: a dead name server is not waited for in every request
	maxNames      = 4096
)

// names remembers the addresses of names for a short while, so that a caller
// who gives the same address in every request costs one look-up a minute. The
// zero value is empty.
type names struct {
	mu     sync.Mutex
	known  map[string]known
	flight singleflight.Group // callers who ask for one name at once ask once
}

// known is what a look-up found; no addresses when it failed.
type known struct {
	addrs []netip.Addr
	until time.Time
}

// find returns the addresses of a name; none when they cannot be found in
// time. It does not end early with ctx: others may wait for the same answer.
func (n *names) find(ctx context.Context, r *net.Resolver, name string) []netip.Addr {
	if addrs, found := n.remembered(name, time.Now()); found {
		return addrs
	}
	addrs, _, _ := n.flight.Do(name, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookupTimeout)
		defer cancel()
		addrs, err := r.LookupNetIP(ctx, "ip", absolute(name))
		if err != nil {
			addrs = nil
		}
		n.remember(name, addrs, time.Now())
		return addrs, nil
	})
	return addrs.([]netip.Addr)
}

func (n *names) remembered(name string, now time.Time) (addrs []netip.Addr, found bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	k, found := n.known[name]
	return k.addrs, found && now.Before(k.until)
}

// remember keeps what was found. When there is no room, any other goes: what
// is forgotten is looked up again.
func (n *names) remember(name string, addrs []netip.Addr, now time.Time) {
	until := now.Add(foundFor)
	if len(addrs) == 0 {
		until = now.Add(lostFor)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.known == nil {
		n.known = map[string]known{}
	}
	for other := range n.known {
		if len(n.known) < maxNames {
			break
		}
		delete(n.known, other)
	}
	n.known[name] = known{addrs, until}
}

// absolute returns a name that is not tried with the system's search domains
// behind it first: they are the operator's own network. A single label, which
// only opened addresses have, means nothing without them.
func absolute(name string) string {
	if strings.Contains(name, ".") {
		return name + "."
	}
	return name
}
